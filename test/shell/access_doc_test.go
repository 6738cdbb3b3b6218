package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/test/internal/tools"
)

// TestCommandsInTheAccessPageWork runs the shell blocks of docs/access.md in their order, in one folder. A block that
// starts a service runs until the next one that does.
func TestCommandsInTheAccessPageWork(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 8 {
		t.Fatalf("%d blocks are there", len(blocks))
	}
	dir, address := t.TempDir(), ""
	path := filepath.Dir(paddock.Path(t)) + ":" + tools.SearchPath(t, "curl", "openssl")
	env := append(os.Environ(), "PATH="+path, "PADDOCK_DATABASE_URL="+pgtest.URL(t))
	var serving *proctest.Process
	for _, block := range blocks {
		script := strings.ReplaceAll(block[1], "localhost:8443", address)
		if strings.HasPrefix(script, "paddock serve") {
			if serving != nil {
				serving.Kill(t)
			}
			serving = shell(dir, env, "exec "+strings.Replace(script, "--listen :8443", "--listen 127.0.0.1:0", 1))
			serving.Start(t)
			address = serving.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
			continue
		}
		mustRun(t, shell(dir, env, script))
		if strings.Contains(script, "\ncurl ") {
			checkVersions(t, dir, env, strings.TrimSuffix(script, "\n"))
		}
	}
}

// checkVersions runs a script that ends with curl once more with each version of HTTP.
func checkVersions(t *testing.T, dir string, env []string, script string) {
	t.Helper()
	for version, want := range map[string]string{"--http2": "2 200", "--http1.1": "1.1 200"} {
		// The last line that is printed has the version and the status instead of the answer.
		p := shell(dir, env, script+" -sS -o /dev/null "+version+` -w '\n%{http_version} %{http_code}'`)
		mustRun(t, p)
		if got := p.Stdout.String(); !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("curl %s printed %q, want %s at the end", version, got, want)
		}
	}
}

// mustRun runs a script, which must succeed.
func mustRun(t *testing.T, p *proctest.Process) {
	t.Helper()
	p.Start(t)
	if code := p.Exit(t); code != 0 {
		t.Fatalf("exit code %d of\n%s\n%s%s", code, p.Cmd.Args, p.Stdout, p.Stderr)
	}
}

// shell returns a process that runs the script in the folder. It is not started yet.
func shell(dir string, env []string, script string) *proctest.Process {
	p := proctest.New(exec.Command("bash", "-ec", script))
	p.Cmd.Dir, p.Cmd.Env = dir, env
	return p
}
