package supervise

import (
	"io"
	"os/exec"
	"testing"
	"time"
)

// A heldLease is not lost.
type heldLease struct{}

func (heldLease) Done() <-chan struct{} { return nil }

func (heldLease) Err() error { return nil }

func (heldLease) GraceEnds() time.Time { return time.Time{} }

func (heldLease) Deadline() time.Time { return time.Now().Add(time.Hour) }

// TestOneCommandAfterAnotherBesideAChildFromBefore: the wait for the children of one must not outlive it, and take the
// end of the next one.
func TestOneCommandAfterAnotherBesideAChildFromBefore(t *testing.T) {
	t.Parallel()
	before := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := before.Start(); err != nil {
		t.Fatal(err)
	}
	signals := Listen()
	defer signals.Stop()
	stderr := NewAsyncStderr(io.Discard)
	defer stderr.Close()
	for range 8 {
		c := &Command{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 3"}, Lease: heldLease{}, Signals: signals, Stderr: stderr}
		if result, err := c.Run(); err != nil || result.ExitCode() != 3 {
			t.Fatalf("%v, %v", result, err)
		}
	}
	if err := before.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := before.Wait(); err == nil {
		t.Error("the child from before has ended by itself")
	}
}
