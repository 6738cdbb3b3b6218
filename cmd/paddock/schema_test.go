package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// A deployment is a replica in a schema of its own, in a process of its own.
type deployment struct {
	lock.Service
	base string
	env  map[string]string // of its commands
}

// TestTwoDeploymentsInOneDatabaseShareNothing runs two, on the same lock.
func TestTwoDeploymentsInOneDatabaseShareNothing(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.EmptyURL(t)
	var both [2]deployment
	for i, name := range []string{"paddock", "team_b"} {
		_, base := startServe(t, databaseURL, "--migrate", "--schema="+name)
		both[i] = deployment{replica.Connect(t, client.Options{BaseURL: base}), base, map[string]string{"PADDOCK_DATABASE_URL": databaseURL, "PADDOCK_SCHEMA": name}}
	}
	a, b := both[0], both[1]
	for range 3 { // so that their tokens differ
		again := acquire(t, a.base, lock.Acquire{Name: "other", Holder: "me", LeaseID: lock.LeaseID(uuid.New())})
		if err := a.Release(t.Context(), lock.Release{Name: "other", LeaseID: again.ID}); err != nil {
			t.Fatal(err)
		}
	}
	var held [2]lock.Grant
	for i, d := range both {
		held[i] = acquire(t, d.base, lock.Acquire{Name: "lock", Holder: "first", LeaseID: lock.LeaseID(uuid.New()), TTL: time.Hour})
	}
	if held[0].Token == held[1].Token {
		t.Errorf("both have the token %d", held[0].Token)
	}

	var waiting [2]chan lock.Grant
	for i, d := range both {
		waiting[i] = make(chan lock.Grant, 1)
		go func() {
			granted, err := d.Acquire(t.Context(), lock.Acquire{
				Name: "lock", Holder: "next", LeaseID: lock.LeaseID(uuid.New()), TTL: time.Hour, Wait: lock.MaxWait,
			})
			if err != nil {
				t.Error(err)
			}
			waiting[i] <- granted
		}()
		d.await(t, "the waiter", func(kinds []lock.Kind) bool { return len(kinds) == 2 && kinds[1] == lock.Queued })
	}
	if err := b.Release(t.Context(), lock.Release{Name: "lock", LeaseID: held[1].ID}); err != nil {
		t.Fatal(err)
	}
	if granted := <-waiting[1]; granted.Token <= held[1].Token {
		t.Errorf("the waiter has the token %d after %d", granted.Token, held[1].Token)
	}
	b.await(t, "the grant", func(kinds []lock.Kind) bool { return len(kinds) == 4 && kinds[3] == lock.Granted })
	a.await(t, "nothing", func(kinds []lock.Kind) bool { return len(kinds) == 2 })
	if l, err := a.Lock(t.Context(), "lock"); err != nil || l.Waiters != 1 || l.Token != held[0].Token {
		t.Errorf("a release in the other deployment left %+v, %v", l, err)
	}

	if code, _, stderr := call(t, b.env, "epoch", "new", "--reason=test"); code != exitOK {
		t.Fatalf("a new epoch: exit code %d: %s", code, stderr)
	}
	for d, want := range map[*deployment]int{&a: 1, &b: 2} {
		var epochs []epochJSON
		if _, stdout, stderr := call(t, d.env, "epoch", "list", "-o", "json"); json.Unmarshal([]byte(stdout), &epochs) != nil ||
			len(epochs) != want {
			t.Errorf("%s has the epochs %s%s; want %d", d.env["PADDOCK_SCHEMA"], stdout, stderr, want)
		}
	}
	if code, _, stderr := call(t, b.env, "migrate", "down", "--to=0", "--yes"); code != exitOK {
		t.Fatalf("the way down: exit code %d: %s", code, stderr)
	}
	expectReady(t, a.base)
	if err := a.Release(t.Context(), lock.Release{Name: "lock", LeaseID: held[0].ID}); err != nil {
		t.Error(err)
	}
	if granted := <-waiting[0]; granted.Token <= held[0].Token {
		t.Errorf("the waiter has the token %d after %d", granted.Token, held[0].Token)
	}
}

// await watches until the kinds of the lock's events are as wanted.
func (d *deployment) await(t *testing.T, what string, wanted func([]lock.Kind) bool) {
	t.Helper()
	q := lock.EventQuery{Name: "lock"}
	var kinds []lock.Kind
	for deadline := time.Now().Add(time.Minute); !wanted(kinds); {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s after %v", what, kinds)
		}
		page, err := d.Events(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			kinds = append(kinds, e.Kind)
		}
		q.Cursor, q.Wait = page.Next, time.Second
	}
}
