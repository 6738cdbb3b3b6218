package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// runOnce runs a command once an hour and returns what paddock said.
func (d *harness) runOnce(code int, args ...string) (stderr string) {
	d.Helper()
	p := d.startRun(append([]string{"--once-per=1h"}, args...)...)
	p.expectExit(d.T, code)
	return p.Stderr.String()
}

func TestWorkIsDoneOncePerPeriod(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	file := t.TempDir() + "/runs"
	work := []string{nightly, "--", "sh", "-c", "echo >>" + file}
	d.runOnce(3, nightly, "--", "sh", "-c", "exit 3")
	d.expectFree()
	if said := d.runOnce(exitOK, work...); strings.Contains(said, "paddock: ") {
		t.Errorf("the first run says %s", said)
	}
	said := d.runOnce(exitOK, work...)
	for _, want := range []string{nightly + " is not run: me has done the work at 2", "it counts as done for another 59m"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in %s", want, said)
		}
	}
	if said := d.runOnce(exitOK, append([]string{"--log-level=warn"}, work...)...); said != "" {
		t.Errorf("it says %s", said)
	}
	if runs, err := os.ReadFile(file); err != nil || string(runs) != "\n" {
		t.Errorf("the runs are %q, %v", runs, err)
	}
	d.expectFailure(exitNotAcquired, []string{"not acquired: me has done the work at 2", "wait with --wait"}, "acquire", nightly)
	d.expectFailure(exitNotAcquired, []string{"not acquired: me has done the work at 2"}, "run", nightly, "--", "/bin/true")
	got, _ := d.expectExit(exitOK, "get", nightly)
	listed, _ := d.expectExit(exitOK, "list")
	if !strings.Contains(got, "me did the work, done at 2") || !strings.Contains(listed, "NO GRANTS") ||
		!strings.Contains(listed, "done, closed until 2") {
		t.Errorf("they show\n%s%s", got, listed)
	}
	d.enqueue(lock.Acquire{Locks: lock.One(nightly), Holder: "waiter"})
	if queue, _ := d.expectExit(exitOK, "queue", nightly); !strings.Contains(queue, "the lock is closed or frozen; paddock get shows why") {
		t.Errorf("the queue is\n%s", queue)
	}
}

// TestWorkThatWasToldToStopIsNotDone, whatever its exit code.
func TestWorkThatWasToldToStopIsNotDone(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--once-per=day", "--tz=Europe/Berlin", "--at-least=1m", nightly, "--", "sh", "-c", `trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done`)
	p.Stdout.Await(t, "(ready)")
	if err := p.Cmd.Process.Signal(os.Interrupt); err == nil {
		err = p.Cmd.Process.Signal(stopSignals()[0])
		if err != nil {
			t.Fatal(err)
		}
	}
	p.Exit(t)
	if l := d.expectFree(); l.Closed != nil {
		t.Errorf("it is closed: %+v", l.Closed)
	}
}

// TestOneThatWaitsTakesOverAfterAFailure, and is told when the work is done.
func TestOneThatWaitsTakesOverAfterAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  string
		want string
	}{
		"after a failure": {"1", "taken over"}, "when it is done": {"0", "is not run: first has done the work"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			first := d.prepareRun("--holder=first", "--once-per=1h", nightly, "--", "sh", "-c", "read line; exit "+c.end)
			end, err := first.Cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			first.Start(t)
			d.awaitEvent(nightly, lock.Granted, "first")
			second := d.startRun("--holder=second", "--once-per=1h", "--wait=1h", nightly, "--", "sh", "-c", "echo taken over >&2")
			d.awaitEvent(nightly, lock.Queued, "second")
			if err := end.Close(); err != nil {
				t.Fatal(err)
			}
			second.expectExit(t, exitOK, c.want)
		})
	}
}

func TestThePeriodIsGivenInWordsOrAsADuration(t *testing.T) {
	t.Parallel()
	for given, want := range map[onceFlags]lock.Closing{
		{}:                                      {},
		{OncePer: "day", TZ: "Europe/Berlin"}:   {Period: lock.Day, Zone: "Europe/Berlin"},
		{OncePer: "week", AtLeast: time.Minute}: {Period: lock.Week, For: time.Minute},
		{OncePer: "1d12h"}:                      {For: 36 * time.Hour},
		{OncePer: "1s", AtLeast: time.Minute}:   {For: time.Minute},
	} {
		if got, err := given.closing(lock.One("x")); err != nil || got != want {
			t.Errorf("%+v means %+v, %v; want %+v", given, got, err, want)
		}
	}
}
