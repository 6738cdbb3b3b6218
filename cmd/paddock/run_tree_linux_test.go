package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// processTreeScript starts a child in the process group and one in a session of its own. All three print their
// process ids and ignore SIGTERM.
const processTreeScript = `trap '' TERM
sh -c 'echo pid $$; ` + goesOn + `' &
setsid sh -c 'echo pid $$; ` + goesOn + `' &
echo pid $$
` + goesOn

// pids returns the process ids that processTreeScript prints.
func (p *process) pids(t *testing.T) []int {
	t.Helper()
	var pids []int
	text := p.Stdout.Await(t, `(?s)^((?:pid \d+\n){3})`)
	for line := range strings.Lines(text) {
		pids = append(pids, pidIn(t, line))
	}
	return pids
}

func pidIn(t *testing.T, line string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid ")))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// alive reports whether the process exists and has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z"))
}

// whenGone waits until each process has ended, and sends the beginning of the last check that found it alive, or of
// the first check. A busy machine finds out late that a process has ended, so the time of that proves nothing.
func whenGone(t *testing.T, pids []int) <-chan time.Time {
	gone := make(chan time.Time, len(pids))
	for _, pid := range pids {
		go func() {
			again := time.NewTicker(5 * time.Millisecond)
			defer again.Stop()
			seen := time.Now()
			for now := seen; alive(pid) && t.Context().Err() == nil; now = time.Now() {
				seen = now
				<-again.C
			}
			gone <- seen
		}()
	}
	return gone
}

// areGone waits until all processes have ended.
func areGone(t *testing.T, pids ...int) {
	t.Helper()
	gone, enough := whenGone(t, pids), time.After(proctest.Patience)
	for range pids {
		select {
		case <-gone:
		case <-enough:
			t.Fatalf("not all of %v have ended", pids)
		}
	}
}

func TestNoDescendantOutlivesALostLease(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl=9s", nightly, "--", "sh", "-c", processTreeScript)
	pids := p.pids(t)
	d.revoke("no reason")
	p.expectExit(t, exitLeaseLost)
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d of %v is still there", pid, pids)
		}
	}
}

func TestNoDescendantOutlivesTheCommand(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--kill-after=100ms", nightly, "--", "sh", "-c",
		strings.TrimSuffix(processTreeScript, goesOn)+"read line; exit 3")
	pids := p.pids(t)
	p.expectExit(t, 3, "stopping the processes that the command left running")
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d of %v is still there", pid, pids)
		}
	}
	d.expectFree()
}

func TestDescendantMayEndSoonAfterTheCommand(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun(nightly, "--", "sh", "-c", "(sleep 0.1; echo the end) & exit 3")
	p.expectExit(t, 3)
	p.expectNoMessages(t)
	if p.Stdout.String() != "the end\n" {
		t.Errorf("the output was cut off: %q", p.Stdout)
	}
}

func TestCommandDiesWithPaddock(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun(nightly, "--", "sh", "-c", "echo pid $$; exec sleep 1000")
	pid := pidIn(t, p.Stdout.Await(t, `(pid \d+)\n`))
	if code := p.Signal(t, syscall.SIGKILL); code != -1 {
		t.Errorf("exit code %d", code)
	}
	areGone(t, pid)
}

// TestEarlierChildrenAreNotStopped starts paddock by exec from a shell, whose background processes become paddock's
// children.
func TestEarlierChildrenAreNotStopped(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := d.prepare(exec.Command("sh", "-c", `sleep 1000 >/dev/null 2>&1 & echo pid $!
		exec "$PADDOCK" run --kill-after=0s jobs:nightly -- sh -c 'setsid sleep 1000 & echo pid $!; exit 3'`), self)
	p.Start(t)
	p.expectExit(t, 3, "stopping the processes that the command left running")
	before, after, _ := strings.Cut(strings.TrimSpace(p.Stdout.String()), "\n")
	others, ours := pidIn(t, before), pidIn(t, after)
	if !alive(others) || alive(ours) {
		t.Errorf("alive: the earlier child %t, the command's %t", alive(others), alive(ours))
	}
	if err := syscall.Kill(others, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}
