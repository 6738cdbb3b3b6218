package proctest

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A Process is a program in its own process, to be signalled and killed.
type Process struct {
	Cmd            *exec.Cmd
	Stdout, Stderr *Transcript
	ended          chan struct{} // closed once it has been waited for
}

// New returns a Process that runs cmd and collects its output. It is not started yet.
func New(cmd *exec.Cmd) *Process {
	p := &Process{Cmd: cmd, Stdout: new(Transcript), Stderr: new(Transcript), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.Stdout, p.Stderr
	cmd.WaitDelay = 10 * time.Second
	return p
}

// Start starts the program, which is killed when the test ends.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		if err := p.Cmd.Wait(); err != nil && p.Cmd.ProcessState == nil {
			t.Errorf("waiting for %v: %v", p.Cmd.Args, err)
		}
	}()
	t.Cleanup(func() {
		p.Kill(t)
		if t.Failed() {
			t.Logf("%v\n%s%s", p.Cmd.Args[1:], p.Stdout, p.Stderr)
		}
	})
}

// Ended returns a channel that is closed once the process has ended and has been waited for.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Signal sends s and returns the exit code, -1 if a signal ended the process.
func (p *Process) Signal(t testing.TB, s syscall.Signal) int {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	return p.Exit(t)
}

// Exit waits for the exit code, which is -1 if a signal ended the process.
func (p *Process) Exit(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.Cmd.ProcessState.ExitCode()
	case <-time.After(Patience):
		t.Fatalf("%v has not ended", p.Cmd.Args)
		return -1
	}
}

// Kill ends the process, unless it has just ended by itself.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if err := p.Cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	p.Exit(t)
}
