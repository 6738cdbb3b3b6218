package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// TestTwoTerminalsInOppositeOrder: each runs a command under one account's lock, which runs paddock for the other
// account. One of them is refused, with a sentence about the deadlock, and the other one goes on.
func TestTwoTerminalsInOppositeOrder(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	dir, paddock := t.TempDir(), start(t, "version").Cmd.Path
	var all sync.WaitGroup
	var outputs [2]string
	var errs [2]error
	for i, names := range [][]string{{"accounts:1", "accounts:2"}, {"accounts:2", "accounts:1"}} {
		c := exec.CommandContext(t.Context(), paddock, "run", "--wait=30s", names[0], "--", "sh", "-c", `
			touch "$1/$2"
			until [ -e "$1/$3" ]; do sleep 0.05; done
			"$0" run --wait=30s "$3" -- echo transferred`, paddock, dir, names[0], names[1])
		c.Env = []string{actAsPaddock + "=1", "PADDOCK_URL=" + d.base, "PATH=/usr/bin:/bin", "HOME=" + filepath.Clean(dir)}
		all.Go(func() {
			out, err := c.CombinedOutput()
			outputs[i], errs[i] = string(out), err
		})
	}
	all.Wait()
	refused := 0
	if errs[1] != nil {
		refused = 1
	}
	if errs[refused] == nil || errs[1-refused] != nil || outputs[1-refused] != "transferred\n" {
		t.Fatalf("the terminals ended with %v and %v:\n%s\n%s", errs[0], errs[1], outputs[0], outputs[1])
	}
	for _, want := range []string{"Deadlock: ", "waits for accounts:1, and ", "waits for accounts:2, and ", "This call gives way. Release what you hold"} {
		if !strings.Contains(outputs[refused], want) {
			t.Errorf("it says\n%swant %s", outputs[refused], want)
		}
	}
	if code := exitCodeOf(errs[refused]); code != exitNotAcquired {
		t.Errorf("exit code %d", code)
	}
}

// TestTwoSessionsInOppositeOrder: each acquires two locks one after the other, as the help of paddock session shows.
// One acquire is refused, and its session ends; the other one goes on.
func TestTwoSessionsInOppositeOrder(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	dir := t.TempDir()
	var sessions [2]*process
	for i, names := range [][]string{{"a", "b"}, {"b", "a"}} {
		sessions[i] = d.startSession("--", "sh", "-c", `
			"$PADDOCK" acquire "$1" >/dev/null && touch "$0/$1" || exit 1
			until [ -e "$0/$2" ]; do sleep 0.05; done
			"$PADDOCK" acquire "$2" --wait 30s && echo done`, dir, names[0], names[1])
	}
	refused := 0
	for _, p := range sessions {
		switch code := p.Exit(t); code {
		case exitOK:
		case exitNotAcquired:
			refused++
			if text := p.Stderr.String(); !strings.Contains(text, "Deadlock: ") || !strings.Contains(text, "This call gives way.") {
				t.Errorf("it says\n%s", text)
			}
		default:
			t.Errorf("exit code %d:\n%s", code, p.Stderr.String())
		}
	}
	if refused != 1 {
		t.Errorf("%d sessions were refused a lock, want 1", refused)
	}
}

// TestARunInASessionIsOfItsThreadOfWork, and says that it does not join the session.
func TestARunInASessionIsOfItsThreadOfWork(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startSession("--", "sh", "-c", `"$PADDOCK" acquire a >/dev/null && "$PADDOCK" run --wait=30s a -- true`)
	p.expectExit(t, exitNotAcquired, "would wait for itself")
	p = d.startSession("--", "sh", "-c", `"$PADDOCK" run b -- sh -c '"$PADDOCK" acquire --wait=30s b'`)
	p.expectExit(t, exitNotAcquired, "would wait for itself", "does not join the session")
	p = d.startSession("--", "sh", "-c", `"$PADDOCK" acquire c >/dev/null && PADDOCK_TASK=$PADDOCK_TASK.1 "$PADDOCK" acquire d &&
		PADDOCK_TASK=$PADDOCK_TASK.2 "$PADDOCK" acquire --wait=50ms d`)
	p.expectExit(t, exitNotAcquired, "holds the lock")
}

// TestAHolderWithoutATaskIsShownAsUnknown: a lease that was acquired by hand.
func TestAHolderWithoutATaskIsShownAsUnknown(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectExit(exitOK, "acquire", "a")
	d.enqueue(lock.Acquire{Name: "a", Holder: "waiter"})
	q, err := d.locks.Queue(t.Context(), "a")
	if err != nil || q.Chain == nil || q.Chain.End != lock.ChainUnknown {
		t.Errorf("the chain is %+v, %v", q.Chain, err)
	}
}

func exitCodeOf(err error) int {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as CombinedOutput returns it
		return exit.ExitCode()
	}
	return -1
}
