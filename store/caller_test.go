package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// as returns a context for calls with the key of that name, in a trace.
func as(t *testing.T, key string) context.Context {
	return lock.WithCaller(t.Context(), callerOf(key))
}

func callerOf(key string) lock.Caller {
	return lock.Caller{Name: key, KeyID: "id of " + key, Trace: "0af7651916cd43dd8448eb211c80319c"}
}

// TestWhoRevokedIsTold to the holders, in the events and in the history, also at another replica.
func TestWhoRevokedIsTold(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := open(t, url), open(t, url)
	alone, session := mustAcquire(t, here, acquire("alone")), openSession(t, here, time.Hour, time.Minute)
	inside := mustAcquire(t, here, inSession("inside", session))
	ctx := as(t, "ops-anna")
	if _, err := there.Revoke(ctx, lock.Revoke{Name: "alone", Token: alone.Token, Reason: "db-3 is gone."}); err != nil {
		t.Fatal(err)
	}
	info, err := there.RevokeSession(ctx, lock.RevokeSession{Ref: session.ID.Ref(), Reason: "db-3 is gone"})
	if err != nil || info.RevokedBy != "ops-anna" {
		t.Fatalf("%+v, %v", info, err)
	}
	if info, err = here.Session(t.Context(), session.ID.Ref()); err != nil || info.RevokedBy != "ops-anna" {
		t.Errorf("the session is %+v, %v", info, err)
	}
	renew := func(g lock.Grant) error {
		_, err := here.Renew(t.Context(), lock.Renew{Locks: []string{g.Name}, LeaseID: g.ID})
		return err
	}
	_, lost := here.RenewSession(t.Context(), lock.RenewSession{ID: session.ID})
	for what, err := range map[string]error{"the lease": renew(alone), "the session": lost, "the lease of the session": renew(inside)} {
		var e *lock.Error
		if !errors.As(err, &e) || e.Ended != lock.Revoked || e.RevokedBy != "ops-anna" ||
			!strings.Contains(e.Detail, " An operator (key ops-anna) revoked it: db-3 is gone. Stop the work") {
			t.Errorf("%s: %v, %+v", what, err, e)
		}
	}
	for _, name := range []string{"alone", "inside"} {
		events := eventsOf(t, here, name)
		if len(events) != 2 || events[1].Kind != lock.Revoked || events[1].Caller != callerOf("ops-anna") || events[0].Caller != (lock.Caller{}) {
			t.Errorf("the events of %s are %+v", name, events)
		}
		holds, err := paddock.ReadHolds(t.Context(), here, paddock.HoldQuery{Name: name})
		if err != nil || len(holds.Holds) != 1 || holds.Holds[0].RevokedBy != "ops-anna" {
			t.Errorf("the holds of %s are %+v, %v", name, holds, err)
		}
	}
	var by, id, trace, of string
	row := connect(t, url).QueryRow(t.Context(), "select by, by_id, trace_id, session from paddock.history where name = 'inside' and kind = 'revoked'")
	if err := row.Scan(&by, &id, &trace, &of); err != nil || (lock.Caller{Name: by, KeyID: id, Trace: trace}) != callerOf("ops-anna") || of != session.ID.Ref().String() {
		t.Errorf("the view says that %q, %q in %q revoked a lease of %q, %v", by, id, trace, of, err)
	}
}

// TestCallersAreInTheHistory, also of a waiter at another replica, and of a session that is closed.
func TestCallersAreInTheHistory(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := open(t, url), open(t, url)
	session := openSession(t, here, time.Hour, 0)
	held := inSession("a", session)
	held.Locks = append(held.Locks, lock.Member{Name: "b"})
	if _, err := here.Acquire(as(t, "anna"), held); err != nil {
		t.Fatal(err)
	}
	waits := acquire("b")
	waits.Wait = lock.MaxWait
	granted := make(chan lock.Grant, 1)
	go func() {
		g, err := there.Acquire(as(t, "bo"), waits)
		if err != nil {
			t.Error(err)
		}
		granted <- g
	}()
	until(t, "bo waits", func() bool { return len(eventsOf(t, here, "b")) == 2 })
	if err := here.CloseSession(as(t, "cy"), lock.CloseSession{ID: session.ID}); err != nil {
		t.Fatal(err)
	}
	g := <-granted
	if err := there.Release(t.Context(), lock.Release{Locks: []string{"b"}, LeaseID: g.ID}); err != nil {
		t.Fatal(err)
	}
	both := []string{"a", "b"}
	var got []lock.Event
	for _, e := range eventsOf(t, there, "b") {
		got = append(got, lock.Event{Kind: e.Kind, Caller: e.Caller, Session: e.Session, Set: e.Set})
	}
	if diff := cmp.Diff([]lock.Event{
		{Kind: lock.Granted, Caller: callerOf("anna"), Session: session.ID.Ref(), Set: both},
		{Kind: lock.Queued, Caller: callerOf("bo")},
		{Kind: lock.Released, Caller: callerOf("cy"), Session: session.ID.Ref(), Set: both},
		{Kind: lock.Granted, Caller: callerOf("bo")},
		{Kind: lock.Released},
	}, got); diff != "" {
		t.Errorf("other events (-want +got):\n%s", diff)
	}
	var set []string
	row := connect(t, url).QueryRow(t.Context(), "select set from paddock.history where name = 'a' and kind = 'released'")
	if err := row.Scan(&set); err != nil || !slices.Equal(set, both) {
		t.Errorf("the view says that the set is %q, %v", set, err)
	}
}
