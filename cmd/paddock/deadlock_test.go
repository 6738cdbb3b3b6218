package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
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

func exitCodeOf(err error) int {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as CombinedOutput returns it
		return exit.ExitCode()
	}
	return -1
}
