package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestASignalEndsTheWaitAndGivesThePlaceUp(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			d := sitDown(t)
			d.holds(lock.Acquire{Name: nightly, Holder: "somebody else"})
			p := d.lets("--wait=forever", nightly, "--", "/bin/sh")
			d.hears(nightly, lock.Queued, "me")
			if err := p.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			p.ends(t, exitSignalled+int(s), "before it had "+nightly)
			d.hears(nightly, lock.Dequeued, "me")
		})
	}
}

// TestASecondSignalKills has the service take what it is sent and never say a word, so
// that the place cannot be given up.
func TestASecondSignalKills(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	g := newGate(t, d.base, mute)
	d.env["PADDOCK_URL"] = g.url()
	p := d.lets("--wait=forever", nightly, "--", "true")
	<-g.arrived
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for over := false; !over; {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		select {
		case <-p.ended:
			over = true
		case <-again.C:
		}
	}
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("it has ended with %v", p.cmd.ProcessState)
	}
}

func TestWhoWaitsRunsWhenTheOneBeforeHasEnded(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	first := d.prepares(nightly, "--", "sh", "-c", "echo $PADDOCK_FENCING_TOKEN; read line; exit 9")
	hold, err := first.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	first.run(t)
	first.stdout.await(t, `(\d)\n`)
	d.env["PADDOCK_HOLDER"] = "the second"
	second := d.lets("--wait=forever", nightly, "--", "sh", "-c", "echo $PADDOCK_FENCING_TOKEN")
	d.hears(nightly, lock.Queued, "the second")
	closed(t, hold)
	first.ends(t, 9)
	second.ends(t, exitOK)
	if before, after := tokenOf(t, first), tokenOf(t, second); after <= before {
		t.Errorf("token %d was followed by %d", before, after)
	}
}

// tokenOf returns the number that the process has printed.
func tokenOf(t *testing.T, p *process) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(p.stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
