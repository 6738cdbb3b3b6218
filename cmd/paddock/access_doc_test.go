package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
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
	path := binary(t) + ":" + os.Getenv("PATH")
	env := append(os.Environ(), "PATH="+path, "PADDOCK_DATABASE_URL="+pgtest.URL(t), actAsPaddock+"=1")
	var serving *process
	for _, block := range blocks {
		if strings.HasPrefix(block[1], "paddock serve") {
			if serving != nil {
				serving.Kill(t)
			}
			serving = shell(t, dir, env, "exec "+strings.Replace(block[1], "--listen :8443", "--listen 127.0.0.1:0", 1))
			serving.Start(t)
			address = serving.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
			continue
		}
		p := shell(t, dir, env, strings.ReplaceAll(block[1], "localhost:8443", address))
		p.Start(t)
		if code := p.Exit(t); code != exitOK {
			t.Fatalf("exit code %d of\n%s\n%s%s", code, block[1], p.Stdout, p.Stderr)
		}
	}
}

// shell returns a process that runs the script in the folder. It is not started yet.
func shell(t *testing.T, dir string, env []string, script string) *process {
	t.Helper()
	p := &process{proctest.New(exec.Command("bash", "-ec", script))}
	p.Cmd.Dir, p.Cmd.Env = dir, env
	return p
}

// binary returns a folder in which paddock is this test binary.
func binary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "paddock")); err != nil {
		t.Fatal(err)
	}
	return dir
}
