package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process is paddock in its own process, to be killed and signalled. It is this test binary, so that the race
// detector covers it.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *transcript
	ended          chan struct{} // closed once it has been waited for
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(self, args...), stdout: newTranscript(), stderr: newTranscript(),
		ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), actAsPaddock+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.run(t)
	return p
}

// newProcess returns a process that runs the current test, with variables that select its role. It is not started yet.
func newProcess(t *testing.T, env ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	p := &process{cmd: exec.Command(self, "-test.run=^"+test+"$"), stdout: newTranscript(), stderr: newTranscript(),
		ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	return p
}

// run starts the command, which is killed when the test ends.
func (p *process) run(t *testing.T) {
	t.Helper()
	p.cmd.WaitDelay = 10 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState == nil {
			t.Errorf("waiting for %v: %v", p.cmd.Args, err)
		}
	}()
	t.Cleanup(func() {
		p.kill(t)
		if t.Failed() {
			t.Logf("%v\n%s%s", p.cmd.Args[1:], p.stdout, p.stderr)
		}
	})
}

// startServe starts paddock serve, and returns its base URL, too.
func startServe(t *testing.T, databaseURL string, args ...string) (*process, string) {
	t.Helper()
	p := start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--database-url", databaseURL}, args...)...)
	return p, "http://" + p.stderr.await(t, `"msg":"listening","address":"([^"]+)"`)
}

// signal sends s and returns the exit code, -1 if a signal ended the process.
func (p *process) signal(t *testing.T, s syscall.Signal) int {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	return p.exit(t)
}

// exit waits for the exit code, which is -1 if a signal ended the process.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("%v has not ended", p.cmd.Args)
		return -1
	}
}

// kill ends the process.
func (p *process) kill(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	default:
		p.signal(t, syscall.SIGKILL)
	}
}
