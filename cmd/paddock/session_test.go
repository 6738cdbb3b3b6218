package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// startSession starts paddock session. Its command finds this binary in $PADDOCK.
func (d *harness) startSession(args ...string) *process {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	p := d.prepare(exec.Command(self, append([]string{"session"}, args...)...), self)
	p.Start(d.T)
	return p
}

// theSession returns the only open session.
func (d *harness) theSession() lock.SessionInfo {
	d.Helper()
	page, err := d.locks.Sessions(d.Context(), paddock.SessionQuery{})
	if err != nil || len(page.Items) != 1 {
		d.Fatalf("the sessions are %+v, %v", page.Items, err)
	}
	return page.Items[0]
}

const acquiresThree = `for n in a b c; do "$PADDOCK" acquire $n >/dev/null || exit 9; done; echo ready; `

func TestACommandAcquiresLocksInItsSession(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startSession("--ttl=30s", "--", "sh", "-c", acquiresThree+`sleep 0.2; exit 4`)
	p.Stdout.Await(t, `(ready)`)
	p.expectExit(t, 4)
	for _, name := range []string{"a", "b", "c"} {
		d.awaitEvent(name, lock.Released, "me")
		if l, err := d.locks.Lock(t.Context(), name); err != nil || l.State != lock.Free {
			t.Errorf("%s is %+v, %v", name, l, err)
		}
	}
	if page, err := d.locks.Sessions(t.Context(), paddock.SessionQuery{}); err != nil || len(page.Items) != 0 {
		t.Errorf("the sessions are %+v, %v", page.Items, err)
	}
}

func TestACommandWithARevokedSessionIsKilled(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startSession("--ttl=12s", "--", "sh", "-c", acquiresThree+ignoresSIGTERM)
	p.Stdout.Await(t, `(ready)`)
	ref := d.theSession().Ref
	if shown, _ := d.expectExit(exitOK, "get", "--session", ref.String()); !strings.Contains(shown, "LEASES   3") || !strings.Contains(shown, "c     exclusive") {
		t.Errorf("it is shown as\n%s", shown)
	}
	if listed, _ := d.expectExit(exitOK, "list", "--sessions", "--holder", "me"); strings.Count(listed, ref.String()) != 1 {
		t.Errorf("it is listed as\n%s", listed)
	}
	shown, _ := d.expectExit(exitOK, "revoke", "--session", ref.String(), "--reason", "the disk is full")
	if !strings.Contains(shown, "revoked") || !strings.Contains(shown, "the disk is full") {
		t.Errorf("it is shown as\n%s", shown)
	}
	p.expectExit(t, exitLeaseLost, "was stopped (SIGKILL)", "session_lost", "the disk is full")
	if strings.Contains(p.Stdout.String(), "told") {
		t.Error("the command got SIGTERM and time to end, while others might have its locks")
	}
}

func TestACommandWithARevokedSessionHasItsGrace(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startSession("--ttl=1m", "--kill-after=500ms", "--grace=30s", "--", "sh", "-c",
		`trap 'sleep 2; echo cleaned up; exit 3' TERM; echo ready; `+goesOn)
	p.Stdout.Await(t, `(ready)`)
	d.expectExit(exitOK, "revoke", "--session", d.theSession().Ref.String(), "--reason", "the disk is full")
	p.expectExit(t, exitLeaseLost, "was stopped (exit code 3)", "session_lost", "the disk is full")
	if !strings.Contains(p.Stdout.String(), "cleaned up") {
		t.Error("the command did not get the grace of its session")
	}
}

func TestMissingSessionsAndCommandsAreReported(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectFailure(127, []string{"no-such-command"}, "session", "--", "no-such-command")
	d.expectExit(exitFailed, "get", "--session", "0000000000000001")
	d.expectFailure(exitLeaseLost, []string{"session_lost"}, "acquire", "a", "--session", uuid.NewString())
}
