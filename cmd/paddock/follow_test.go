package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// startHere runs a command of paddock in this process until the test ends, or until stop is called, which returns the exit
// code.
func (d *harness) startHere(args ...string) (stdout, stderr *proctest.Transcript, stop func() int) {
	ctx, cancel := context.WithCancel(d.Context())
	stdout, stderr = new(proctest.Transcript), new(proctest.Transcript)
	code, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		code = run(ctx, args, variablesOf(d.env), stdout, stderr)
	}()
	stop = func() int {
		cancel()
		<-ended
		return code
	}
	d.Cleanup(func() { stop() })
	return stdout, stderr, stop
}

func TestWatchPrintsEventsAsTheyHappen(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "before"})
	stdout, _, stop := d.startHere("watch", "--prefix=jobs:")
	stdout.Await(t, `(?m)^(AT  +ID  +KIND  +LOCK  +TOKEN  +HOLDER  +BY  +REASON)$`)
	d.hold(lock.Acquire{Locks: lock.One("another"), Holder: "me"})
	grant := d.hold(lock.Acquire{Locks: lock.One("jobs:other"), Holder: "it's me"})
	stdout.Await(t, fmt.Sprintf(`(?m)T\S+ +\d+ +granted +jobs:other +%d +it's me +(-)$`, grant.Token))
	if _, err := d.locks.Revoke(t.Context(), lock.Revoke{Name: grant.Name, Token: grant.Token,
		Reason: "for a reason"}); err != nil {
		t.Fatal(err)
	}
	stdout.Await(t, fmt.Sprintf(`(?m)T\S+ +\d+ +revoked +jobs:other +%d +it's me +- +(for a reason)$`, grant.Token))
	if code := stop(); code != exitOK || strings.Count(stdout.String(), "\n") != 3 {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
}

func TestWatchStartsAtFrom(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for i := range 5 {
		d.hold(lock.Acquire{Locks: lock.One(fmt.Sprintf("jobs:%d", i)), Holder: "me"})
	}
	page, err := d.locks.Events(t.Context(), paddock.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		first int
		n     int
	}{
		{[]string{"--from=oldest", "--count=5"}, 0, 5},
		{[]string{"--from=oldest", "--count=2"}, 0, 2},
		{[]string{fmt.Sprintf("--from=%d", page.Items[2].ID), "--count=2"}, 3, 2},
		{[]string{"jobs:3", "--from=oldest", "--count=1"}, 3, 1},
		{[]string{"--for=1ns"}, 0, 0},
		{[]string{"--from=now", "--for=300ms"}, 0, 0},
	} {
		stdout, stderr := d.expectExit(exitOK, append([]string{"watch", "-o", "json"}, c.args...)...)
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		if stdout == "" {
			lines = nil
		}
		if len(lines) != c.n || stderr != "" {
			t.Errorf("%v: output\n%s%s", c.args, stdout, stderr)
			continue
		}
		for i, line := range lines {
			var e api.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.ID != page.Items[c.first+i].ID || e.Kind != "granted" {
				t.Errorf("%v: line %d is %s, %v", c.args, i, line, err)
			}
		}
	}
}

// TestWatchContinuesAfterAnOutage uses the lock while the connection is down.
func TestWatchContinuesAfterAnOutage(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	line, lost := d.loseAnswers()
	stdout, stderr, stop := d.startHere("watch", "-o", "json", "--from=oldest")
	d.hold(lock.Acquire{Locks: lock.One("jobs:0"), Holder: "me"})
	for i := range 3 {
		stdout.Await(t, fmt.Sprintf(`"lock":"(jobs:%d)"`, i))
		lost.Store(math.MaxInt32)
		line.Restore() // closes the connections
		d.hold(lock.Acquire{Locks: lock.One(fmt.Sprintf("jobs:%d", i+1)), Holder: "me"})
		stderr.Await(t, strings.Repeat(`(?s)"(call failed; retrying)".*`, i+1))
		lost.Store(0)
	}
	stdout.Await(t, `"lock":"(jobs:3)"`)
	if code := stop(); code != exitOK || strings.Count(stdout.String(), "\n") != 4 {
		t.Errorf("exit code %d, want each event once:\n%s%s", code, stdout, stderr)
	}
	stderr.Await(t, `"(service answers again; continuing)"`)
}

// An eventPages is a paddock.Service that only returns events, in pages.
type eventPages struct {
	paddock.Service
	pages []paddock.Page[lock.Event]
}

func (h *eventPages) Events(_ context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	page := h.pages[0]
	h.pages = h.pages[1:]
	return page, nil
}

func TestWatchReportsMissingEvents(t *testing.T) {
	t.Parallel()
	past := &eventPages{pages: []paddock.Page[lock.Event]{
		{Next: "7"}, {Items: []lock.Event{{ID: 41, Name: "jobs:nightly", Kind: lock.Dequeued, Holder: "me"}}, Next: "41",
			Gap: true},
	}}
	var printed, said bytes.Buffer
	p := &program{stdout: &printed, log: newLog(&said, slog.LevelInfo)}
	w := &watcher{program: p, locks: past, out: p.stream(asJSON, eventColumns()...),
		remain: 1}
	if err := w.follow(t.Context(), paddock.EventQuery{Cursor: "7"}, noLimit); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), `"msg":"events missing: no longer retained","after":"7"`) {
		t.Errorf("stderr %s", said.String())
	}
	if !strings.Contains(printed.String(), `"id":41`) || strings.Contains(printed.String(), "fencing_token") {
		t.Errorf("stdout %s", printed.String())
	}
}

// TestWatchEndsOnASignal sends a real signal to a process.
func TestWatchEndsOnASignal(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := start(t, "watch", "--url", d.base)
		p.Stdout.Await(t, `(HOLDER)`)
		if code := p.Signal(t, s); code != exitOK || p.Stderr.String() != "" {
			t.Errorf("%v: exit code %d: %s", s, code, p.Stderr)
		}
	}
}
