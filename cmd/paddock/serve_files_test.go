//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// TestServeWarnsOfALowOpenFileLimit runs the service with a low limit.
func TestServeWarnsOfALowOpenFileLimit(t *testing.T) {
	t.Parallel()
	const limit = 512
	databaseURL := pgtest.URL(t)
	for connections, warnings := range map[int]int{limit - reservedFiles: 0, limit - reservedFiles + 1: 1, 20_000: 1} {
		p := startWithFileLimit(t, limit, "serve", "--listen=127.0.0.1:0", "--database-url="+databaseURL,
			fmt.Sprint("--max-connections=", connections))
		expectReady(t, "http://"+p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`))
		said := p.Stderr.String()
		if got := strings.Count(said, "open-file limit is below --max-connections"); got != warnings {
			t.Errorf("%d connections: %d warnings, want %d:\n%s", connections, got, warnings, said)
		}
		numbers := fmt.Sprintf(`"open_files":%d,"max_connections":%d,"reserve":%d`, limit, connections, reservedFiles)
		if strings.Contains(said, numbers) != (warnings > 0) {
			t.Errorf("%d connections: want the numbers %s:\n%s", connections, numbers, said)
		}
	}
}

// startWithFileLimit starts paddock with that limit of open files.
func startWithFileLimit(t *testing.T, limit int, args ...string) *process {
	t.Helper()
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, limit), "sh", self(t)}
	p := &process{proctest.New(exec.Command("sh", append(limited, args...)...))}
	p.Cmd.Env = append(os.Environ(), actAsPaddock+"=1")
	p.Start(t)
	return p
}
