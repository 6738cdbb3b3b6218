package main

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestSignalEndsTheWaitAndGivesUpThePlace(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "another holder"})
			p := d.startRun("--wait=forever", nightly, "--", "/bin/sh")
			d.awaitEvent(nightly, lock.Queued, "me")
			if err := p.Cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			p.expectExit(t, exitSignalled+int(s), "before "+nightly+" was acquired")
			d.awaitEvent(nightly, lock.Dequeued, "me")
		})
	}
}

// TestIgnoredSignalDoesNotEndTheWait sends an ignored signal and then SIGTERM: the first would end the wait first.
func TestIgnoredSignalDoesNotEndTheWait(t *testing.T) {
	t.Parallel()
	for s, name := range map[syscall.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGINT: "INT"} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "another holder"})
			p := d.prepareIgnoring(name, "--wait=forever jobs:nightly -- /bin/sh")
			p.Start(t)
			d.awaitEvent(nightly, lock.Queued, "me")
			for _, s := range []syscall.Signal{s, syscall.SIGTERM} {
				if err := p.Cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			p.expectExit(t, exitSignalled+int(syscall.SIGTERM), "stopped by SIGTERM before "+nightly+" was acquired")
		})
	}
}

// TestSecondSignalKillsAWaitingRun uses a service that stops answering, so that the place cannot be given up.
func TestSecondSignalKillsAWaitingRun(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "another holder"})
	line := d.useProxy()
	p := d.startRun("--wait=forever", nightly, "--", "true")
	d.awaitEvent(nightly, lock.Queued, "me")
	line.Stall()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for over := false; !over; {
		if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		select {
		case <-p.Ended():
			over = true
		case <-again.C:
		}
	}
	if status := p.Cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("it has ended with %v", p.Cmd.ProcessState)
	}
}
