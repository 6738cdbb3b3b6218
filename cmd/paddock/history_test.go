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
		`AT +EVENT +TOKEN +MODE +HOLDER +BY +DETAILS`,
		`\S+ +granted +\d+ +exclusive +a +- +-`,
		`\S+ +released +\d+ +exclusive +a +- +held for \S+`,
		`\S+ +granted +\d+ +exclusive +b +- +-`,
		`\S+ +queued +- +exclusive +c +- +-`,
		`\S+ +revoked +\d+ +exclusive +b +- +held for \S+: host is dead`,
		`\S+ +granted +\d+ +exclusive +c +- +waited \S+`,
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
