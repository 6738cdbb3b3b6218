package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

// useProxy has what is run at the desk find the service by a line that can be broken.
func (d *harness) useProxy() *tcpproxy.Proxy {
	d.Helper()
	line := tcpproxy.New(d.T, strings.TrimPrefix(d.base, "http://"))
	d.env["PADDOCK_URL"] = "http://" + line.Address
	return line
}

// acquireNext has somebody wait for the lock who has no trouble to reach the service, and
// returns the grant.
func (d *harness) acquireNext() lock.Grant {
	d.Helper()
	g, err := d.locks.Acquire(d.Context(), lock.Acquire{
		Name: nightly, LeaseID: lock.LeaseID(uuid.New()), Holder: "the next", TTL: time.Hour, Wait: lock.MaxWait,
	})
	if err != nil {
		d.Fatal(err)
	}
	return g
}

// revoke has an operator take the lock away.
func (d *harness) revoke(reason string) {
	d.Helper()
	l, err := d.locks.Lock(d.Context(), nightly)
	if err == nil {
		_, err = d.locks.Revoke(d.Context(), lock.Revoke{Name: nightly, Token: l.Token, Reason: reason})
	}
	if err != nil {
		d.Fatal(err)
	}
}

// ignoresSIGTERM says when it is there, and when it is told to end, and does not.
const ignoresSIGTERM = `trap 'echo told' TERM; echo ready; while :; do sleep 0.02; done`

func TestCommandWithARevokedLeaseIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl=3s", nightly, "--", "sh", "-c", ignoresSIGTERM)
	p.stdout.await(t, `(ready)`)
	d.revoke("the disk is full")
	p.expectExit(t, exitLeaseLost, "was stopped (SIGKILL)", "lease_lost", "the disk is full")
	if strings.Contains(p.stdout.String(), "told") {
		t.Error("it was told to end, and given time for that, while somebody else might have the lock")
	}
	d.expectFree()
}

func TestCommandGetsSIGTERMBeforeMaxHoldEnds(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl=3s", "--max-hold=3s", nightly, "--", "sh", "-c", `trap 'echo told; exit 0' TERM; while :; do sleep 0.02; done`)
	p.expectExit(t, exitLeaseLost, "was stopped (exit code 0)", "MaxHold")
	if p.stdout.String() != "told\n" {
		t.Errorf("it was not told to end: %q", p.stdout)
	}
	d.awaitEvent(nightly, lock.Released, "me")
}

func TestOutageShorterThanTheLeaseDoesNotStopTheCommand(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	line := d.useProxy()
	p := d.prepareRun("--ttl=8s", "--kill-after=500ms", nightly, "--", "sh", "-c", "echo ready; read line; exit 4")
	hold, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.run(t)
	p.stdout.await(t, `(ready)`)
	line.Stall()
	p.stderr.await(t, `(is at risk)`)
	line.Restore()
	p.stderr.await(t, `(is held again)`)
	mustClose(t, hold)
	p.expectExit(t, 4)
	d.expectFree()
}

func TestFailedReleaseIsReported(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	line := d.useProxy()
	p := d.prepareRun(nightly, "--", "sh", "-c", "echo ready; read line; exit 4")
	hold, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.run(t)
	p.stdout.await(t, `(ready)`)
	line.Stall()
	mustClose(t, hold)
	p.expectExit(t, 4, nightly+" was not released", "free when the lease ends")
}

// TestPossiblyOverlappingWorkIsAFailure has the lease be revoked when the command
// has ended, or is about to, and before anybody has noticed.
func TestPossiblyOverlappingWorkIsAFailure(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.prepareRun("--ttl=1h", nightly, "--", "sh", "-c", "echo ready; read line; exit 0")
	hold, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.run(t)
	p.stdout.await(t, `(ready)`)
	d.revoke("no reason")
	mustClose(t, hold)
	p.expectExit(t, exitLeaseLost, "has ended (exit code 0)", "may have overlapped", "no reason")
}

// TestRunThatWasSuspendedTooLongKillsAtOnce has paddock run be stopped, not its command,
// which nobody can know of: meanwhile only the token guards.
func TestRunThatWasSuspendedTooLongKillsAtOnce(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl=2s", nightly, "--", "sh", "-c", ignoresSIGTERM)
	p.stdout.await(t, `(ready)`)
	send := func(s syscall.Signal) {
		if err := p.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGSTOP)
	d.acquireNext()
	send(syscall.SIGCONT)
	p.expectExit(t, exitLeaseLost, "was stopped (SIGKILL)", "lease_lost")
	if strings.Contains(p.stdout.String(), "told") {
		t.Error("it was given time while somebody else has the lock")
	}
}

// TestRunSurvivesAClosedStandardError has it speak to a pipe that nobody reads
// any more, of which others die.
func TestRunSurvivesAClosedStandardError(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	line := d.useProxy()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := d.prepareRun("--ttl=2s", nightly, "--", "sh", "-c", ignoresSIGTERM)
	p.cmd.Stderr = writer
	p.run(t)
	mustClose(t, writer)
	p.stdout.await(t, `(ready)`)
	mustClose(t, reader)
	line.Stall()
	p.expectExit(t, exitLeaseLost)
}
