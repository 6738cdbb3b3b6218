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

// onALine has what is run at the desk find the service by a line that can be broken.
func (d *desk) onALine() *tcpproxy.Proxy {
	d.Helper()
	line := tcpproxy.New(d.T, strings.TrimPrefix(d.base, "http://"))
	d.env["PADDOCK_URL"] = "http://" + line.Address
	return line
}

// next has somebody wait for the lock who has no trouble to reach the service, and
// returns the grant.
func (d *desk) next() lock.Grant {
	d.Helper()
	g, err := d.locks.Acquire(d.Context(), lock.Acquire{
		Name: nightly, LeaseID: lock.LeaseID(uuid.New()), Holder: "the next", TTL: time.Hour, Wait: lock.MaxWait,
	})
	if err != nil {
		d.Fatal(err)
	}
	return g
}

// revokes has an operator take the lock away.
func (d *desk) revokes(reason string) {
	d.Helper()
	l, err := d.locks.Lock(d.Context(), nightly)
	if err == nil {
		_, err = d.locks.Revoke(d.Context(), lock.Revoke{Name: nightly, Token: l.Token, Reason: reason})
	}
	if err != nil {
		d.Fatal(err)
	}
}

// stubborn says when it is there, and when it is told to end, and does not.
const stubborn = `trap 'echo told' TERM; echo ready; while :; do sleep 0.02; done`

func TestARevokedCommandIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	p := d.lets("--ttl=3s", nightly, "--", "sh", "-c", stubborn)
	p.stdout.await(t, `(ready)`)
	d.revokes("the disk is full")
	p.ends(t, exitLeaseLost, "was stopped (SIGKILL)", "lease_lost", "the disk is full")
	if strings.Contains(p.stdout.String(), "told") {
		t.Error("it was told to end, and given time for that, while somebody else might have the lock")
	}
	d.free()
}

func TestACommandThatHasItsTimeIsToldToEndFirst(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	p := d.lets("--ttl=3s", "--max-hold=3s", nightly, "--", "sh", "-c", `trap 'echo told; exit 0' TERM; while :; do sleep 0.02; done`)
	p.ends(t, exitLeaseLost, "was stopped (exit code 0)", "MaxHold")
	if p.stdout.String() != "told\n" {
		t.Errorf("it was not told to end: %q", p.stdout)
	}
	d.hears(nightly, lock.Released, "me")
}

func TestAnOutageShorterThanTheLeaseStopsNobody(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	line := d.onALine()
	p := d.prepares("--ttl=8s", "--kill-after=500ms", nightly, "--", "sh", "-c", "echo ready; read line; exit 4")
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
	closed(t, hold)
	p.ends(t, 4)
	d.free()
}

func TestWhoCannotReleaseSaysSo(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	line := d.onALine()
	p := d.prepares(nightly, "--", "sh", "-c", "echo ready; read line; exit 4")
	hold, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.run(t)
	p.stdout.await(t, `(ready)`)
	line.Stall()
	closed(t, hold)
	p.ends(t, 4, nightly+" was not released", "free when the lease ends")
}

// TestWorkThatMayHaveOverlappedIsNoSuccess has the lease be revoked when the command
// has ended, or is about to, and before anybody has noticed.
func TestWorkThatMayHaveOverlappedIsNoSuccess(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	p := d.prepares("--ttl=1h", nightly, "--", "sh", "-c", "echo ready; read line; exit 0")
	hold, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.run(t)
	p.stdout.await(t, `(ready)`)
	d.revokes("no reason")
	closed(t, hold)
	p.ends(t, exitLeaseLost, "has ended (exit code 0)", "may have overlapped", "no reason")
}

// TestWhoWasStoppedForTooLongKillsAtOnce has paddock run be stopped, not its command,
// which nobody can know of: meanwhile only the token guards.
func TestWhoWasStoppedForTooLongKillsAtOnce(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	p := d.lets("--ttl=2s", nightly, "--", "sh", "-c", stubborn)
	p.stdout.await(t, `(ready)`)
	send := func(s syscall.Signal) {
		if err := p.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGSTOP)
	d.next()
	send(syscall.SIGCONT)
	p.ends(t, exitLeaseLost, "was stopped (SIGKILL)", "lease_lost")
	if strings.Contains(p.stdout.String(), "told") {
		t.Error("it was given time while somebody else has the lock")
	}
}

// TestTheGuardOutlivesWhoeverReadsItsWords has it speak to a pipe that nobody reads
// any more, of which others die.
func TestTheGuardOutlivesWhoeverReadsItsWords(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	line := d.onALine()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := d.prepares("--ttl=2s", nightly, "--", "sh", "-c", stubborn)
	p.cmd.Stderr = writer
	p.run(t)
	closed(t, writer)
	p.stdout.await(t, `(ready)`)
	closed(t, reader)
	line.Stall()
	p.ends(t, exitLeaseLost)
}
