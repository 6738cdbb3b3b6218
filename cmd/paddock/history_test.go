package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// past lets a hold the lock and release it, b hold it until it is revoked, and c hold it, which waited for it.
func (d *harness) past(name string) (events []lock.Event) {
	d.Helper()
	a := d.hold(lock.Acquire{Locks: lock.One(name), Holder: "a"})
	mustBeNil(d.T, d.locks.Release(d.Context(), lock.Release{Locks: []string{name}, LeaseID: a.ID}))
	b := d.hold(lock.Acquire{Locks: lock.One(name), Holder: "b"})
	d.enqueue(lock.Acquire{Locks: lock.One(name), Holder: "c"})
	_, err := d.locks.Revoke(d.Context(), lock.Revoke{Name: name, Token: b.Token, Reason: "host is dead"})
	mustBeNil(d.T, err)
	d.awaitEvent(name, lock.Granted, "c")
	page, err := d.locks.Events(d.Context(), paddock.EventQuery{Names: []string{name}})
	mustBeNil(d.T, err)
	return page.Items
}

func TestHistoryPrintsWhatHappened(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.past("jobs:nightly")
	stdout, _ := d.expectExit(exitOK, "history", "jobs:nightly")
	want := []string{
		`AT +EVENT +TOKEN +MODE +HOLDER +DETAILS`,
		`\S+ +granted +\d+ +exclusive +a +-`,
		`\S+ +released +\d+ +exclusive +a +held for \S+`,
		`\S+ +granted +\d+ +exclusive +b +-`,
		`\S+ +queued +- +exclusive +c +-`,
		`\S+ +revoked +\d+ +exclusive +b +held for \S+: host is dead`,
		`\S+ +granted +\d+ +exclusive +c +waited \S+`,
	}
	if !regexp.MustCompile("^" + strings.Join(want, "\n") + "\n$").MatchString(stdout) {
		t.Errorf("printed\n%s", stdout)
	}
	stdout, _ = d.expectExit(exitOK, "history", "jobs:nightly", "--limit=2", "-o", "json")
	var events []api.Event
	if err := json.Unmarshal([]byte(stdout), &events); err != nil || len(events) != 2 || events[0].Reason == nil || events[1].Holder != "c" {
		t.Errorf("%v: %s", err, stdout)
	}
	stdout, _ = d.expectExit(exitOK, "history", "jobs:nightly", "--kind=granted,revoked", "--holder=b", "--since=1h", "-o", "json")
	if n := strings.Count(stdout, `"kind"`); n != 2 {
		t.Errorf("%d events:\n%s", n, stdout)
	}
	if stdout, _ = d.expectExit(exitOK, "history", "jobs:nightly", "--until=1h"); stdout != "" {
		t.Errorf("printed events from before the first one:\n%s", stdout)
	}
}

func TestHistoryShowsTheHoldersAtAnInstant(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	events := d.past("jobs:nightly")
	at := events[2].At.UTC().Format(time.RFC3339Nano)
	stdout, _ := d.expectExit(exitOK, "history", "jobs:nightly", "--at="+at)
	want := fmt.Sprintf(`^HOLDER +MODE +TOKEN +FROM +TO +END +REASON\nb +exclusive +%d +\S+ +\S+ +revoked after \S+ +host is dead\n$`, events[2].Token)
	if !regexp.MustCompile(want).MatchString(stdout) {
		t.Errorf("printed\n%s", stdout)
	}
	stdout, _ = d.expectExit(exitOK, "history", "jobs:nightly", "--at=0s", "-o", "json")
	var list api.HoldList
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Holds) != 1 || list.Holds[0].Holder != "c" || list.Holds[0].End != nil {
		t.Errorf("%v: %s", err, stdout)
	}
}

// TestInstantsOfPeople: a time of day is the last one that the clock has shown.
func TestInstantsOfPeople(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("somewhere", 2*60*60)
	now := time.Date(2026, 3, 1, 4, 30, 15, 0, zone)
	for text, want := range map[string]time.Time{
		"":                          {},
		"2026-01-02T03:04:05Z":      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		"2026-01-02T03:04:05+01:00": time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC),
		"2026-01-02 03:04":          time.Date(2026, 1, 2, 3, 4, 0, 0, zone),
		"2026-01-02T03:04:05":       time.Date(2026, 1, 2, 3, 4, 5, 0, zone),
		"03:12":                     time.Date(2026, 3, 1, 3, 12, 0, 0, zone),
		"04:30:15":                  now,
		"04:30:16":                  time.Date(2026, 2, 28, 4, 30, 16, 0, zone),
		"2h":                        now.Add(-2 * time.Hour),
		"1d12h":                     now.Add(-36 * time.Hour),
		"0":                         now,
	} {
		if got, err := parseInstant("at", text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, want %v (%v)", text, got, want, err)
		}
	}
}
