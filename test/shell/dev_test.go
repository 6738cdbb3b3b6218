package shell_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/test/internal/tools"
)

// TestCommandsThatDevPrintsWork runs the lines with curl, and fetches the page.
func TestCommandsThatDevPrintsWork(t *testing.T) {
	t.Parallel()
	curl := tools.Path(t, "curl")
	p := paddock.Start(t, "dev", "--ephemeral", "--listen=127.0.0.1:0")
	p.Stdout.Await(t, `paddock demo --url (.*)\n`)
	said := p.Stdout.String()
	lines := regexp.MustCompile(`(?m)^ *curl .*$`).FindAllString(said, -1)
	if len(lines) != 3 {
		t.Fatalf("%d lines for curl in:\n%s", len(lines), said)
	}
	for i, want := range []string{"201", "200", "204"} {
		// The appended options make curl print the status instead of the answer.
		shell := exec.CommandContext(t.Context(), "bash", "-c", lines[i]+` -s -o /dev/null -w '%{http_code}'`)
		shell.Env = append(os.Environ(), "PATH="+tools.SearchPath(t, "curl"))
		if got, err := shell.Output(); err != nil || string(got) != want {
			t.Errorf("%s\n%s (%v), want %s", lines[i], got, err, want)
		}
	}
	page := p.Stdout.Await(t, `page: (\S+)`)
	if got, err := exec.CommandContext(t.Context(), curl, "-sfL", page).Output(); err != nil ||
		!strings.Contains(string(got), "<html") {
		t.Errorf("%s: %v\n%s", page, err, got)
	}
	if code := p.Signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
