package integration_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

var (
	leaseID, sessionID = lock.LeaseID{2}, lock.SessionID{3}
	setNames           = []string{"b", "a"}
)

// transfer acquires two locks.
func transfer() lock.Acquire {
	return lock.Acquire{Set: []lock.Member{{Name: "b"}, {Name: "a", Mode: lock.Shared}}, LeaseID: leaseID, Holder: "worker-1"}
}

// serviceOverHTTP returns a client of a real server, and the service behind it.
func serviceOverHTTP(t *testing.T) (*client.Client, lock.Service) {
	t.Helper()
	inner := memlock.New().Replica(1)
	return replica.Connect(t, client.Options{BaseURL: replica.Serve(t, server.Options{Locks: inner})}), inner
}

// TestSetsCrossTheWire compares the answers of the client with those of the service itself.
func TestSetsCrossTheWire(t *testing.T) {
	t.Parallel()
	c, inner := serviceOverHTTP(t)
	a := transfer()
	a.TTL, a.MaxHold, a.Metadata = time.Minute, time.Hour, json.RawMessage(`{"a":[1]}`)
	granted, err := c.Acquire(t.Context(), a)
	if err != nil || len(granted.Members) != 2 || granted.Replayed || granted.Until.After(time.Now().Add(time.Minute)) {
		t.Fatalf("granted %+v, %v", granted, err)
	}
	replayed, err := c.Acquire(t.Context(), a)
	want, innerErr := inner.Acquire(t.Context(), a)
	if err := errors.Join(err, innerErr); err != nil {
		t.Fatal(err)
	}
	ignored := cmpopts.IgnoreFields(lock.Grant{}, "Until")
	utc := cmp.Transformer("utc", time.Time.UTC)
	private := cmpopts.IgnoreFields(lock.Lease{}, "Place", "Attachment", "ClaimDeadline")
	if diff := cmp.Diff(want, replayed, ignored, utc, private); diff != "" {
		t.Errorf("the replay differs (-service +client):\n%s", diff)
	}
	l, err := c.Lock(t.Context(), "a")
	if err != nil || len(l.Leases) != 1 || !cmp.Equal(l.Leases[0].Set, []string{"a", "b"}) {
		t.Errorf("the lock is %+v, %v", l, err)
	}
	renewed, err := c.Renew(t.Context(), lock.Renew{Set: []string{"a", "b"}, LeaseID: leaseID})
	if err != nil || len(renewed.Members) != 2 || renewed.Members[1].Token != granted.Members[1].Token {
		t.Errorf("renewed %+v, %v", renewed, err)
	}
	for range 2 {
		if err := c.Release(t.Context(), lock.Release{Set: setNames, LeaseID: leaseID}); err != nil {
			t.Error(err)
		}
	}
	if l, err := c.Lock(t.Context(), "b"); err != nil || l.State != lock.Free {
		t.Errorf("the lock is %+v, %v", l, err)
	}
	one, err := c.Acquire(t.Context(), lock.Acquire{Set: []lock.Member{{Name: "c", Mode: lock.Permit, Capacity: 2}}, Holder: "h"})
	if err != nil || one.Members != nil || one.Name != "c" || one.Mode != lock.Permit || one.Slot != 1 || one.Set != nil {
		t.Errorf("a set of one was granted %+v, %v", one, err)
	}
	if err := c.Release(t.Context(), lock.Release{Name: "c", LeaseID: one.ID}); err != nil {
		t.Error(err)
	}
}

// otherLeaseID is that of a set that is held.
var otherLeaseID = lock.LeaseID{1}

// reader is a member of the set that is held.
var reader = lock.Member{Name: "a", Mode: lock.Shared}

// Acquires of sets that are refused while the other set is held.
var refusedAcquires = map[string]lock.Acquire{
	"held":                     {Set: []lock.Member{{Name: "c"}, {Name: "b"}, {Name: "a"}}, Holder: "h"},
	"in use by other names":    {Set: []lock.Member{reader, {Name: "c"}}, LeaseID: otherLeaseID, Holder: "worker-1"},
	"in use by a set":          {Name: "b", LeaseID: otherLeaseID, Holder: "worker-1"},
	"a lock twice":             {Set: []lock.Member{reader, reader}, Holder: "h"},
	"an invalid name":          {Set: []lock.Member{reader, {Name: "a/b"}}, Holder: "h"},
	"an empty name":            {Set: []lock.Member{{}, reader}, Holder: "h"},
	"a mode that there is not": {Set: []lock.Member{reader, {Name: "c", Mode: 7}}, Holder: "h"},
	"a capacity of no permit":  {Set: []lock.Member{{Name: "c", Capacity: 2}}, Holder: "h"},
	"too many locks":           {Set: make([]lock.Member, lock.MaxSetSize+1), Holder: "h"},
	"a TTL in a session":       {Set: transfer().Set, Holder: "h", TTL: time.Second, SessionID: sessionID},
	"no such session":          {Set: transfer().Set, Holder: "h", SessionID: sessionID},
}

// Renewals of sets that are refused while the other set is held. Releases are refused in the same way.
var refusedRenewals = map[string]lock.Renew{
	"one of the locks":         {Name: "a", LeaseID: otherLeaseID},
	"a set of one of them":     {Set: []string{"a"}, LeaseID: otherLeaseID},
	"more locks":               {Set: []string{"a", "b", "c"}, LeaseID: otherLeaseID},
	"what is lost":             {Set: setNames, LeaseID: leaseID},
	"a name twice":             {Set: []string{"a", "b", "a"}, LeaseID: otherLeaseID},
	"a name that is not UTF-8": {Set: []string{"a", "b\xff"}, LeaseID: otherLeaseID},
}

// TestErrorsAboutSetsCrossTheWire compares the errors of the client with those of the service itself.
func TestErrorsAboutSetsCrossTheWire(t *testing.T) {
	t.Parallel()
	c, inner := serviceOverHTTP(t)
	held := transfer()
	held.LeaseID = otherLeaseID
	if _, err := inner.Acquire(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	for name, a := range refusedAcquires {
		expectSame(t, name, errOf(inner.Acquire(t.Context(), a)), errOf(c.Acquire(t.Context(), a)))
	}
	for name, r := range refusedRenewals {
		expectSame(t, "renewing "+name, errOf(inner.Renew(t.Context(), r)), errOf(c.Renew(t.Context(), r)))
		end := lock.Release{Name: r.Name, Set: r.Set, LeaseID: r.LeaseID}
		expectSame(t, "releasing "+name, inner.Release(t.Context(), end), c.Release(t.Context(), end))
	}
}

// expectSame checks that an error is the same on both sides of the wire.
func expectSame(t *testing.T, what string, inner, over error) {
	t.Helper()
	var want, got *lock.Error
	if !errors.As(inner, &want) || !errors.As(over, &got) {
		t.Errorf("%s: the errors are %v and %v", what, inner, over)
		return
	}
	times := cmpopts.IgnoreFields(lock.BlockedLock{}, "RetryAfter") // it shrinks
	texts := cmpopts.IgnoreFields(lock.Error{}, "Cause", "RetryAfter", "Detail")
	if diff := cmp.Diff(want, got, times, texts); diff != "" || got.Detail == "" {
		t.Errorf("%s: the error differs (-service +client):\n%s", what, diff)
	}
	for _, b := range got.Blocked {
		if b.RetryAfter <= 0 || b.RetryAfter > 30*time.Second {
			t.Errorf("%s: %s blocks for %v", what, b.Name, b.RetryAfter)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }
