package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

func TestEventsOfAllLocksArePrinted(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	past := d.past("jobs:nightly")
	d.hold(lock.Acquire{Locks: lock.One("uploads"), Holder: "b"})
	for _, c := range []struct{ args, want string }{
		{"", "granted a, released a, granted b, queued c, revoked b, granted c, granted b"},
		{"--limit=2", "granted c, granted b"},
		{"--kind=revoked,queued", "queued c, revoked b"},
		{"--holder=b", "granted b, revoked b, granted b"},
		{"--prefix=jobs: --holder=b", "granted b, revoked b"},
		{"--prefix=up --since=1h", "granted b"},
		{"--until=1h", ""},
		{"--around=1s", "granted a, released a, granted b, queued c, revoked b, granted c, granted b"},
		{"--around=1h", ""},
		{"--deadlock", ""},
		{"--since=" + past[4].At.Format("2006-01-02T15:04:05.999999999Z07:00") + " --kind=revoked,granted --limit=1000", "revoked b, granted c, granted b"},
	} {
		stdout, stderr := d.expectExit(exitOK, append([]string{"events", "-o", "json"}, strings.Fields(c.args)...)...)
		var events []api.Event
		if err := json.Unmarshal([]byte(stdout), &events); err != nil || stderr != "" {
			t.Errorf("%s: %v: %s%s", c.args, err, stdout, stderr)
		}
		var got []string
		for _, e := range events {
			got = append(got, fmt.Sprintf("%s %s", e.Kind, e.Holder))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %s", c.args, got, c.want)
		}
	}
	stdout, _ := d.expectExit(exitOK, "events", "--kind=revoked,queued")
	want := []string{
		`AT +ID +KIND +LOCK +TOKEN +HOLDER +BY +REASON`,
		`\S+ +\d+ +queued +jobs:nightly +- +c +- +-`,
		`\S+ +\d+ +revoked +jobs:nightly +\d+ +b +- +host is dead`,
	}
	if !regexp.MustCompile("^" + strings.Join(want, "\n") + "\n$").MatchString(stdout) {
		t.Errorf("printed\n%s", stdout)
	}
}

// TestEventsThatTheLimitLeavesOutAreMentioned, if a time was asked for: the newest ones are shown, or those nearest to the
// instant.
func TestEventsThatTheLimitLeavesOutAreMentioned(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	past := d.past("jobs:nightly")
	around := "--around=" + past[3].At.Format(time.RFC3339Nano)
	const cut = "not all events of that time are shown; give a greater --limit"
	for _, c := range []struct{ args, want, warning string }{
		{"--since=1h --limit=2", "revoked b, granted c", cut},
		{"--since=1h --limit=6", "granted a, released a, granted b, queued c, revoked b, granted c", ""},
		{around + " --limit=1", "queued c", cut},
		{around + " --limit=2", "granted b, queued c", cut},
		{around + " --limit=5", "released a, granted b, queued c, revoked b, granted c", cut},
		{around + " --limit=6", "granted a, released a, granted b, queued c, revoked b, granted c", ""},
	} {
		for _, command := range []string{"events", "history jobs:nightly"} {
			stdout, stderr := d.expectExit(exitOK, append(strings.Fields(command+" -o json"), strings.Fields(c.args)...)...)
			var events []api.Event
			if err := json.Unmarshal([]byte(stdout), &events); err != nil {
				t.Fatalf("%v: %s", err, stdout)
			}
			var got []string
			for _, e := range events {
				got = append(got, fmt.Sprintf("%s %s", e.Kind, e.Holder))
			}
			if strings.Join(got, ", ") != c.want || !strings.Contains(stderr, c.warning) || (stderr == "") != (c.warning == "") {
				t.Errorf("%s %s: %v, want %s\n%s", command, c.args, got, c.want, stderr)
			}
		}
	}
}

func TestEventsGoOnWithFollow(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for i := range 3 {
		d.hold(lock.Acquire{Locks: lock.One(fmt.Sprintf("jobs:%d", i)), Holder: "me"})
	}
	d.hold(lock.Acquire{Locks: lock.One("jobs:other"), Holder: "other"})
	stdout, _, stop := d.startHere("events", "--follow", "--prefix=jobs:", "--holder=me", "--kind=granted,revoked", "--limit=2")
	stdout.Await(t, `(?m) (jobs:2) `)
	d.hold(lock.Acquire{Locks: lock.One("jobs:another"), Holder: "other"})
	d.hold(lock.Acquire{Locks: lock.One("uploads"), Holder: "me"})
	gone := d.hold(lock.Acquire{Locks: lock.One("jobs:4"), Holder: "me"})
	mustBeNil(t, d.locks.Release(t.Context(), lock.Release{Locks: []string{"jobs:4"}, LeaseID: gone.ID}))
	d.hold(lock.Acquire{Locks: lock.One("jobs:5"), Holder: "me"})
	stdout.Await(t, `(?m) (jobs:5) `)
	if code := stop(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	want := `^AT .*\n.* jobs:1 .*\n.* jobs:2 .*\n.* granted +jobs:4 .*\n.* jobs:5 .*\n$`
	if !regexp.MustCompile(want).MatchString(stdout.String()) {
		t.Errorf("printed\n%s", stdout)
	}
	stdout, _, stop = d.startHere("events", "--follow", "--since=0s") // no event is so late
	stdout.Await(t, `(AT) `)
	d.hold(lock.Acquire{Locks: lock.One("jobs:6"), Holder: "me"})
	stdout.Await(t, `(jobs:6)`)
	if code := stop(); code != exitOK || strings.Count(stdout.String(), "\n") != 2 {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
}

// TestCursorsAreCompared: the later one is that of the greater number.
func TestCursorsAreCompared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"9", "10", -1}, {"10", "9", 1}, {"10", "10", 0}, {"11", "10", 1}} {
		if got := compareCursors(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
