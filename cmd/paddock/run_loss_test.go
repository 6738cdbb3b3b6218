package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

// useProxy lets paddock reach the service through a proxy that can be broken.
func (d *harness) useProxy() *tcpproxy.Proxy {
	d.Helper()
	line := tcpproxy.New(d.T, strings.TrimPrefix(d.base, "http://"))
	d.env["PADDOCK_URL"] = "http://" + line.Address
	return line
}

// acquireNext waits for the lock over a connection of its own, and returns the grant.
func (d *harness) acquireNext() lock.Grant {
	d.Helper()
	g, err := d.locks.Acquire(d.Context(), lock.Acquire{
		Locks: lock.One(nightly), LeaseID: lock.LeaseID(uuid.New()), Holder: "the next", TTL: time.Hour, Wait: lock.MaxWait,
	})
	if err != nil {
		d.Fatal(err)
	}
	return g
}

// revoke revokes the lease.
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

// goesOn is a loop of a shell that does not end. A signal to the process group ends the sleep; a shorter one would
// start many processes.
const goesOn = "while :; do sleep 0.5; done"

// ignoresSIGTERM prints when it starts and when it gets SIGTERM, and does not end.
const ignoresSIGTERM = `trap 'echo told' TERM; echo ready; ` + goesOn

// TestALockThatHoldsIsSuspectAfterTheCommandWasStopped, also if the service answers again before paddock run ends.
func TestALockThatHoldsIsSuspectAfterTheCommandWasStopped(t *testing.T) {
	t.Parallel()
	d := newHarness(t, "--allow-hold")
	line := d.useProxy()
	p := d.startRun("--ttl=6s", "--on-expiry=hold", nightly, "--", "sh", "-c", `trap 'echo told' TERM; echo ready; `+goesOn)
	p.Stdout.Await(t, `(ready)`)
	line.Stall()
	p.Stdout.Await(t, `(told)`)
	line.Restore()
	p.expectExit(t, exitLeaseLost, "was stopped", "until an operator has looked at the work and revokes the lease")
	await.Until(t, "the lock is suspect", func() bool {
		l, err := d.locks.Lock(d.Context(), nightly)
		return err == nil && l.State == lock.Suspect
	})
	d.expectFailure(exitNotAcquired, []string{"so it is suspect since 2", "paddock revoke " + nightly}, "acquire", nightly)
	d.revoke("the state is sound")
	d.expectFree()
}

func TestCommandWithARevokedLeaseIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl=9s", nightly, "--", "sh", "-c", ignoresSIGTERM)
	p.Stdout.Await(t, `(ready)`)
	d.revoke("the disk is full")
	p.expectExit(t, exitLeaseLost, "was stopped (SIGKILL)", "lease_lost", "the disk is full")
	if strings.Contains(p.Stdout.String(), "told") {
		t.Error("the command got SIGTERM and time to end, while another holder might have the lock")
	}
	d.expectFree()
}

// TestCommandWithARevokedLeaseHasItsGrace: the command takes longer to end than --kill-after.
func TestCommandWithARevokedLeaseHasItsGrace(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl=1m", "--kill-after=500ms", "--grace=30s", nightly, "--", "sh", "-c",
		`trap 'sleep 2; echo cleaned up; exit 3' TERM; echo ready; `+goesOn)
	p.Stdout.Await(t, `(ready)`)
	d.revoke("the disk is full")
	p.expectExit(t, exitLeaseLost, "was stopped (exit code 3)", "lease_lost", "the disk is full")
	if !strings.Contains(p.Stdout.String(), "cleaned up") {
		t.Error("the command did not get the grace of its lease")
	}
}

// TestCommandIsKilledBeforeTheGraceOfItsRevokedLeaseEnds: the next holder waits for the end of the grace.
func TestCommandIsKilledBeforeTheGraceOfItsRevokedLeaseEnds(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl=1m", "--kill-after=500ms", "--grace=4s", nightly, "--", "sh", "-c", "echo pid $$; "+ignoresSIGTERM)
	pid, err := strconv.Atoi(p.Stdout.Await(t, `pid (\d+)`))
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout.Await(t, `(ready)`)
	d.revoke("the disk is full")
	d.acquireNext()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command still exists when the next holder has the lock: %v", err)
	}
	p.expectExit(t, exitLeaseLost, "was stopped (SIGKILL)")
	if !strings.Contains(p.Stdout.String(), "told") {
		t.Error("the command did not get SIGTERM")
	}
}

func TestCommandGetsSIGTERMBeforeMaxHoldEnds(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl=9s", "--max-hold=9s", nightly, "--", "sh", "-c", // long enough for the shell to set its trap
		`trap 'echo told; exit 0' TERM; `+goesOn)
	p.expectExit(t, exitLeaseLost, "was stopped (exit code 0)")
	if text := p.Stderr.String(); !strings.Contains(text, "MaxHold") && !strings.Contains(text, "its renewals failed") { // on a busy machine
		t.Errorf("the end of its lease is not the reason: %s", text)
	}
	if p.Stdout.String() != "told\n" {
		t.Errorf("the command did not get SIGTERM: %q", p.Stdout)
	}
	d.awaitEvent(nightly, lock.Released, "me")
}

func TestFailedReleaseIsReported(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	line := d.useProxy()
	p := d.prepareRun(nightly, "--", "sh", "-c", "echo ready; read line; exit 4")
	hold, err := p.Cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Start(t)
	p.Stdout.Await(t, `(ready)`)
	line.Stall()
	mustClose(t, hold)
	p.expectExit(t, 4, nightly+" was not released", "free when the lease ends")
}

// deafen lets paddock reach the service through a proxy that lets no events pass.
func (d *harness) deafen() {
	d.Helper()
	to, err := url.Parse(d.base)
	if err != nil {
		d.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", httputil.NewSingleHostReverseProxy(to))
	mux.Handle("/v1/events/", http.NotFoundHandler())
	proxy := httptest.NewServer(mux)
	d.Cleanup(proxy.Close)
	d.env["PADDOCK_URL"] = proxy.URL
}

// TestPossiblyOverlappingWorkIsAFailure revokes the lease at about the time the command ends, before paddock notices.
func TestPossiblyOverlappingWorkIsAFailure(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.deafen()
	p := d.prepareRun("--ttl=1h", nightly, "--", "sh", "-c", "echo ready; read line; exit 0")
	hold, err := p.Cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Start(t)
	p.Stdout.Await(t, `(ready)`)
	d.revoke("no reason")
	mustClose(t, hold)
	p.expectExit(t, exitLeaseLost, "has ended (exit code 0)", "may have overlapped", "no reason")
}

// TestRunThatWasSuspendedTooLongKillsAtOnce suspends paddock but not its command; meanwhile only the token protects
// the data.
func TestRunThatWasSuspendedTooLongKillsAtOnce(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl=6s", nightly, "--", "sh", "-c", ignoresSIGTERM)
	p.Stdout.Await(t, `(ready)`)
	send := func(s syscall.Signal) {
		if err := p.Cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGSTOP)
	d.acquireNext()
	send(syscall.SIGCONT)
	p.expectExit(t, exitLeaseLost, "was stopped (SIGKILL)", "lease_lost")
	if strings.Contains(p.Stdout.String(), "told") {
		t.Error("the command got time to end while another holder has the lock")
	}
}

// TestRunSurvivesAClosedStandardError writes to a pipe whose reader has gone, which kills other processes.
func TestRunSurvivesAClosedStandardError(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	line := d.useProxy()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := d.prepareRun("--ttl=6s", nightly, "--", "sh", "-c", ignoresSIGTERM)
	p.Cmd.Stderr = writer
	p.Start(t)
	mustClose(t, writer)
	p.Stdout.Await(t, `(ready)`)
	mustClose(t, reader)
	line.Stall()
	p.expectExit(t, exitLeaseLost)
}
