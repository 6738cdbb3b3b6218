package access_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// callsAboutSets are the calls that name several locks.
var callsAboutSets = map[string]func(ctx context.Context, s paddock.Service, names ...string) error{
	"Acquire": func(ctx context.Context, s paddock.Service, names ...string) error {
		return errOf(s.Acquire(ctx, lock.Acquire{Locks: membersOf(names...)}))
	},
	"Renew": func(ctx context.Context, s paddock.Service, names ...string) error {
		return errOf(s.Renew(ctx, lock.Renew{Locks: names}))
	},
	"Release": func(ctx context.Context, s paddock.Service, names ...string) error {
		return s.Release(ctx, lock.Release{Locks: names})
	},
}

func membersOf(names ...string) (set []lock.Member) {
	for _, name := range names {
		set = append(set, lock.Member{Name: name})
	}
	return set
}

func TestSetNeedsAKeyForAllItsLocks(t *testing.T) {
	t.Parallel()
	for name, call := range callsAboutSets {
		s := newSpy()
		locks := access.Guard(s, access.Limits{})
		ctx := withKey(t, access.Lock, "billing", "jobs:eu")
		for _, names := range [][]string{
			{"other"}, {"billing:a", "billing2"}, {"other", "billing:a"}, {"billing:a", "jobs:eu", "jobs:us", "billing:b"},
		} {
			s.refused(t, name, call(ctx, locks, names...), lock.ErrNameNotAllowed, `"ci" (a1)`, "billing, jobs:eu")
		}
		s.refused(t, name, call(ctx, locks, "billing:a", "a/b"), lock.ErrInvalid)
		s.refused(t, name, call(withKey(t, access.Read), locks, "a", "b"), lock.ErrRoleMissing)
		s.refused(t, name, call(t.Context(), locks, "a", "b"), lock.ErrKeyMissing)
		s.allowed(t, name, call(ctx, locks, "billing:a", "jobs:eu:x", "billing"))
		s.allowed(t, name, call(withKey(t, access.Lock), locks, "a", "b"))
	}
}

// TestSetCountsAsOneCall: three locks, and a burst of one call.
func TestSetCountsAsOneCall(t *testing.T) {
	t.Parallel()
	s := newSpy()
	locks := access.Guard(s, access.Limits{Rate: 0.001, Burst: 1})
	ctx := withKey(t, access.Lock)
	s.allowed(t, "Acquire", callsAboutSets["Acquire"](ctx, locks, "a", "b", "c"))
	s.refused(t, "a second set", callsAboutSets["Acquire"](ctx, locks, "a", "b"), lock.ErrRateLimited)
	s.allowed(t, "Renew", callsAboutSets["Renew"](ctx, locks, "a", "b", "c"))
}

func TestReadsDoNotRevealForeignLocksOfASet(t *testing.T) {
	t.Parallel()
	inner := memlock.New().Replica(1)
	held := lock.Acquire{Locks: membersOf("billing:a", "other", "billing:b"), Holder: "h", LeaseID: lock.LeaseID{1}}
	waits := lock.Acquire{Locks: membersOf("billing:a", "secret"), Holder: "h", LeaseID: lock.LeaseID{2}, KeepPlace: true}
	if _, err := inner.Acquire(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if _, err := inner.Acquire(t.Context(), waits); err == nil {
		t.Fatal("the second set was granted")
	}
	locks := access.Guard(inner, access.Limits{})
	for what, c := range map[string]struct {
		prefixes      []string
		lease, waiter []string
	}{
		"a key without prefixes": {nil, []string{"billing:a", "billing:b", "other"}, []string{"billing:a", "secret"}},
		"a key for some": {[]string{"billing"}, []string{"billing:a", "billing:b", "(not covered)"},
			[]string{"billing:a", "(not covered)"}},
		"a key for one": {[]string{"billing:a"}, []string{"billing:a", "(not covered)", "(not covered)"},
			[]string{"billing:a", "(not covered)"}},
	} {
		ctx := withKey(t, access.Read, c.prefixes...)
		one, err := locks.Lock(ctx, "billing:a")
		watched, watchErr := locks.Watch(ctx, paddock.Watch{Name: "billing:a"})
		queue, queueErr := locks.Queue(ctx, "billing:a")
		for _, err := range []error{err, watchErr, queueErr} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range []lock.Lock{one, watched} {
			if diff := cmp.Diff(c.lease, l.Leases[0].Set); diff != "" {
				t.Errorf("%s: the lease: %s", what, diff)
			}
		}
		if diff := cmp.Diff(c.waiter, queue.Waiters[0].Set); diff != "" {
			t.Errorf("%s: the waiter: %s", what, diff)
		}
	}
	page, err := locks.Locks(withKey(t, access.Read, "billing"), paddock.LockQuery{Prefix: "billing:"})
	if err != nil || len(page.Items) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, l := range page.Items {
		if diff := cmp.Diff([]string{"billing:a", "billing:b", "(not covered)"}, l.Leases[0].Set); diff != "" {
			t.Errorf("%s in the list: %s", l.Name, diff)
		}
	}
	if l, err := inner.Lock(t.Context(), "billing:a"); err != nil || !cmp.Equal(l.Leases[0].Set, []string{"billing:a", "billing:b", "other"}) {
		t.Errorf("the service itself now has %+v, %v", l, err)
	}
}

// TestRevokingOneLockEndsTheSet, also for a key that covers only this lock.
func TestRevokingOneLockEndsTheSet(t *testing.T) {
	t.Parallel()
	inner := memlock.New().Replica(1)
	g, err := inner.Acquire(t.Context(), lock.Acquire{Locks: membersOf("billing:a", "other"), Holder: "h", Grace: lock.MinTTL})
	if err != nil {
		t.Fatal(err)
	}
	l, err := access.Guard(inner, access.Limits{}).
		Revoke(withKey(t, access.Admin, "billing"), lock.Revoke{Name: "billing:a", Token: g.Token, Reason: "r"})
	if err != nil || len(l.Leases) != 1 || !cmp.Equal(l.Leases[0].Set, []string{"billing:a", "(not covered)"}) {
		t.Errorf("revoked: %+v, %v", l, err)
	}
	if other, err := inner.Lock(t.Context(), "other"); err != nil || other.State == lock.Held {
		t.Errorf("the other lock is %+v, %v", other, err)
	}
}
