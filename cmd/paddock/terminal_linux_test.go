package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/pgserver"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// startOnScreen starts paddock on a terminal of that many columns.
func (d *harness) startOnScreen(columns int, args ...string) *terminalSession {
	d.Helper()
	d.env["TERM"] = "xterm"
	exe := self(d.T)
	return d.startOnColumns(columns, d.prepare(exec.Command(exe, args...), exe))
}

// controls matches what moves the cursor, erases, or sets a colour.
var controls = regexp.MustCompile("\x1b\\[[?0-9;]*[A-Za-z]")

// expectNarrow checks that nothing on the terminal was wider than it, so that nothing has wrapped.
func (k *terminalSession) expectNarrow(columns int) {
	k.t.Helper()
	shown := strings.ReplaceAll(controls.ReplaceAllString(k.Stdout.String(), ""), "\b", "")
	for _, line := range strings.FieldsFunc(shown, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if width := screen.StringWidth(strings.TrimRight(line, " ")); width > columns {
			k.t.Errorf("a line has %d of %d columns: %q", width, columns, line)
		}
	}
}

func TestWaitShowsWhoIsInTheWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		columns int
		want    string // a pattern
		args    []string
	}{
		{80, `waiting for jobs:nightly, held by db-1 for \ds, 1 ahead`, []string{"run", "--wait=forever", nightly, "--", "echo", "done"}},
		{80, `waiting for jobs:nightly, held by db-1 for \ds, 1 ahead`, []string{"acquire", "--wait=1h", nightly}},
		{40, `waiting, held by db-1 for \ds, 1 ahead`, []string{"run", "--wait=forever", nightly, "--", "echo", "done"}},
	} {
		t.Run(fmt.Sprint(c.args[0], c.columns), func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			held := d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "db-1"})
			ctx := t.Context()
			gone := make(chan error, 1)
			go func() {
				_, err := d.locks.Acquire(ctx, lock.Acquire{Locks: lock.One(nightly), Holder: "first", TTL: lock.MinTTL, Wait: lock.MaxWait, LeaseID: lock.LeaseID{1: 7}})
				gone <- err
			}()
			d.awaitEvent(nightly, lock.Queued, "first")
			k := d.startOnScreen(c.columns, c.args...)
			k.Stdout.Await(t, "("+c.want+")")
			d.useLease(held)
			d.expectExit(exitOK, "release", nightly)
			mustBeNil(t, <-gone)
			k.Stdout.Await(t, `(waiting[^\r]+\r +\r(?:done|LOCK ))`) // the line of progress is erased
			k.expectExit(t, exitOK)
			k.expectNarrow(c.columns)
		})
	}
}

func TestProgressIsOnlyForATerminalThatWantsIt(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "db-1"})
	for _, args := range [][]string{
		{"run", "-q", "--wait=1500ms", nightly, "--", "true"}, {"acquire", "--quiet", "--wait=1500ms", nightly},
	} {
		k := d.startOnScreen(80, args...)
		k.expectExit(t, exitNotAcquired)
		if shown := k.Stdout.String(); shown != "" {
			t.Errorf("%q shows %q", args, shown)
		}
	}
	_, stderr := d.expectExit(exitNotAcquired, "acquire", "--wait=1500ms", nightly)
	if strings.Contains(stderr, "waiting") || strings.Contains(stderr, "\r") {
		t.Errorf("without a terminal it shows %q", stderr)
	}
}

// TestMessagesStandAboveTheProgress writes messages while a line of progress is shown.
func TestMessagesStandAboveTheProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c := &console{w: &out}
	c.show("12 calls")
	c.show("9 calls")
	fmt.Fprintln(c, "a message")
	c.show("10 calls")
	c.show("10 calls")
	c.show("")
	want := "\r\r12 calls"[1:] + "\r9 calls \b" + "\r         \ra message\n9 calls" + "\r10 calls" + "\r          \r"
	if out.String() != want {
		t.Errorf("it writes %q, want %q", out.String(), want)
	}
}

func TestVerifyShowsItsProgress(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	k := d.startOnScreen(40, "verify", "--url="+d.base, "--clients=2", "--locks=1", "--for=2s", "--ttl=100ms")
	k.Stdout.Await(t, `(\ds left, \d+ calls, \d+ a second)`)
	k.expectExit(t, exitOK)
	k.expectNarrow(40)
}

func TestVerifyShowsAViolationWithinTheTerminal(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{80, 40} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			url := replica.Serve(t, server.Options{Locks: brokenService{memlock.New().Replica(1)}})
			d := &harness{T: t, env: map[string]string{}}
			k := d.startOnScreen(columns, "verify", "--url="+url, "--operations=200", "--ttl=100ms")
			k.expectExit(t, exitFailed)
			k.Stdout.Await(t, `(events of the lock:)`)
			k.expectNarrow(columns)
		})
	}
}

// TestCommandsShowWhatTheyWaitFor in the database, and erase that line when they are done.
func TestCommandsShowWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, lock, shown, done string }{
		{"--log-level=error migrate up", "select pg_advisory_lock(x'706164646f636b'::bigint)",
			`migrating the schema paddock f[^\r]*… \(\ds\)`, `The schema paddock was at version`},
		{"--log-level=error migrate down --to=0 --yes", "select pg_advisory_lock(x'706164646f636b'::bigint)",
			`migrating the schema paddock f[^\r]*… \(\ds\)`, `The schema paddock is already`},
		{"fence install", "select pg_advisory_lock(hashtextextended('paddock_fences', 0))",
			`installing paddock_fence \(\ds\)`, `Installed paddock_fence in schema public`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			url := pgtest.EmptyURL(t)
			conn := pgtest.Connect(t, url)
			d := &harness{T: t, env: map[string]string{"DATABASE_URL": url, "PADDOCK_FENCE_DATABASE_URL": url}}
			pgtest.Exec(t, conn, c.lock)
			k := d.startOnScreen(40, strings.Fields(c.args)...)
			k.Stdout.Await(t, "("+c.shown+")")
			pgtest.Exec(t, conn, "select pg_advisory_unlock_all()")
			k.Stdout.Await(t, `(\r +\r`+c.done+`)`)
			k.expectExit(t, exitOK)
			k.expectNarrow(40)
		})
	}
}

// TestLogOnATerminalIsText above the line of progress.
func TestLogOnATerminalIsText(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"migrate up", "fence install"} {
		d := &harness{T: t, env: map[string]string{
			"DATABASE_URL": "postgres://127.0.0.1:1/x", "PADDOCK_FENCE_DATABASE_URL": "postgres://127.0.0.1:1/x",
		}}
		k := d.startOnScreen(80, strings.Fields(args)...)
		k.Stdout.Await(t, `(level=WARN msg="database not reachable; retrying"[^\r]*\r\n(?s:.*)waiting for the database \(\ds\))`)
		k.typeAndAwait(ctrlC, "interrupt")
	}
}

// TestDevShowsThatPostgreSQLStarts: its programs are scripts, so that it does not start before that.
func TestDevShowsThatPostgreSQLStarts(t *testing.T) {
	t.Parallel()
	programs, err := pgserver.Find(t.Context())
	mustBeNil(t, err)
	dir := filepath.Dir(sharedTempDir(t))
	begin := filepath.Join(dir, "begin")
	for name, before := range map[string]string{"postgres": "", "initdb": "until [ -e " + begin + " ]; do sleep 0.1; done\n"} {
		script := "#!/bin/sh\n" + before + "exec " + filepath.Join(programs, name) + ` "$@"` + "\n"
		mustBeNil(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	d := &harness{T: t, env: map[string]string{"PATH": dir + ":" + os.Getenv("PATH")}}
	k := d.startOnScreen(40, "dev", "--ephemeral", "--listen=127.0.0.1:0")
	k.Stdout.Await(t, `(starting PostgreSQL \(\ds\))`)
	mustBeNil(t, os.WriteFile(begin, nil, 0o600))
	k.Stdout.Await(t, `(\r +\rPaddock is ready: )`)
	k.typeAndAwait(ctrlC, "")
	k.expectExit(t, exitOK)
}

func TestViewFollowsALockAndTheTerminal(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"get", nightly, "--watch"}, {"list", "-w", "--prefix=jobs:"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			d.env["NO_COLOR"] = "1"
			held := d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "db-1" + strings.Repeat("x", 60), Metadata: []byte(`{"a":"` + strings.Repeat("long ", 60) + `"}`)})
			k := d.startOnScreen(40, args...)
			k.Stdout.Await(t, `(?s)(held.*db-1)`)
			k.expectNarrow(39) // see view.lines
			k.Stdout.Clear()
			k.Stdout.Await(t, `(59m5)`) // time passes, without a call
			d.useLease(held)
			d.expectExit(exitOK, "release", nightly)
			k.Stdout.Await(t, `(free)`)
			k.resize(20)
			k.typeAndAwait(ctrlC, regexp.QuoteMeta(leaveScreen)+`(?s:.*)free`)
			k.expectExit(t, exitOK)
			k.expectNarrow(39)
		})
	}
}

func TestViewIsDrawnInPlaceAndOnlyWhenItChanges(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &program{stdout: &out, env: variablesOf(map[string]string{"TERM": "xterm"})}
	v := &view{program: p, format: asTable, show: showLocks}
	l := lock.Lock{Name: "a", State: lock.Free}
	for range 3 {
		mustBeNil(t, v.update(t.Context(), []lock.Lock{l}, nil))
	}
	if n := strings.Count(out.String(), toTheTop); n != 1 || strings.Contains(out.String(), "\x1b[2J") {
		t.Errorf("it is drawn %d times: %q", n, out.String())
	}
	mustBeNil(t, v.update(t.Context(), nil, &lock.Error{Code: lock.ErrUnavailable}))
	if !strings.Contains(out.String(), "call failed; retrying") || strings.Count(out.String(), "free") != 2 {
		t.Errorf("during an outage: %q", out.String())
	}
}

// TestWatchInAPipePrintsALineForEachChange uses a list whose filter a lock leaves.
func TestWatchInAPipePrintsALineForEachChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args       []string
		held, free string
	}{
		{[]string{"get", nightly, "-w"}, `(?m)^(jobs:nightly) +held +exclusive +\d+ +me `, `(?m)^(jobs:nightly) +free +-`},
		{[]string{"list", "-w", "--state=held"}, `(?m)^(jobs:nightly) +held +exclusive +\d+ +me `, `(?m)^(jobs:nightly) +free +-`},
		{[]string{"list", "-w", "-o", "json"}, `"name":"(jobs:nightly)","revision":\d+,"state":"held"`, `"name":"(jobs:nightly)","revision":\d+,"state":"free"`},
		{[]string{"list", "-w", "-o", "name"}, `(?m)^(jobs:nightly)$`, `(?m)^(jobs:nightly)\njobs:nightly$`},
		{[]string{"get", nightly, "-w", "-o", "yaml"}, `(?m)^---\n(?:.+\n)+name: (jobs:nightly)\n(?:.+\n)+?state: held$`, `(?m)^---\n(?:.+\n)+name: (jobs:nightly)\n(?:.+\n)+?state: free$`},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			held := d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "me"})
			stdout, stderr, stop := d.startHere(c.args...)
			stdout.Await(t, c.held)
			d.useLease(held)
			d.expectExit(exitOK, "release", nightly)
			stdout.Await(t, c.free)
			lines := stdout.Count("\n")
			d.expectExit(exitOK, "acquire", nightly)
			await.Until(t, "another line", func() bool { return stdout.Count("\n") > lines })
			if code := stop(); code != exitOK || stderr.String() != "" {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}

func TestWatchPollsNoFasterThanLeasesEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left []time.Duration
		want time.Duration
	}{
		{nil, pollTime}, {[]time.Duration{time.Hour}, pollTime}, {[]time.Duration{8 * time.Second, 4 * time.Second}, 2 * time.Second},
		{[]time.Duration{time.Second}, minReread}, {[]time.Duration{0}, pollTime},
	} {
		l := lock.Lock{}
		for _, left := range c.left {
			l.Leases = append(l.Leases, lock.LeaseInfo{Remaining: left})
		}
		if got := rereadAfter([]lock.Lock{l}); got != c.want {
			t.Errorf("with %v left it waits for %v, want %v", c.left, got, c.want)
		}
	}
}
