package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// A process is paddock in its own process, to be killed and signalled. It is this test binary, so that the race
// detector covers it.
type process struct{ *proctest.Process }

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{proctest.New(exec.Command(self(t), args...))}
	p.Cmd.Env = append(os.Environ(), actAsPaddock+"=1")
	p.Start(t)
	return p
}

// self returns the path of this test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// newProcess returns a process that runs the current test, with variables that select its role. It is not started yet.
func newProcess(t *testing.T, env ...string) *process {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	p := &process{proctest.New(exec.Command(self(t), "-test.run=^"+test+"$"))}
	p.Cmd.Env = append(os.Environ(), env...)
	return p
}

// startServe starts paddock serve, and returns its base URL, too.
func startServe(t *testing.T, databaseURL string, args ...string) (*process, string) {
	t.Helper()
	p := start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--database-url", databaseURL}, args...)...)
	return p, "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
}
