package lock_test

import (
	"errors"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// waitsFor lets a call with the LeaseID wait for a set.
func (s *deadlockScene) waitsFor(id lock.LeaseID, n int, names ...string) lock.Acquire {
	s.t.Helper()
	a := lock.Acquire{LeaseID: id, Holder: "h", TTL: lock.MinTTL, Wait: lock.MaxWait}
	for _, name := range names {
		a.Locks = append(a.Locks, lock.Member{Name: name})
	}
	a, err := a.Resolve(lock.Bounds{MinTTL: lock.MinTTL, MaxTTL: lock.MaxTTL, MaxWaiters: 10})
	if err != nil {
		s.t.Fatal(err)
	}
	a.Attachment, a.Replica = lock.Attachment(n), 1
	if d := s.do(a); d.Err != nil || !d.Queued {
		s.t.Fatalf("the call for %q is answered with %v", names, d.Err)
	}
	return a
}

// TestTwoSetsWithOneLeaseIDAreTwo: they have no lock in common, so both may wait. One decision frees a lock of the
// first one, whose other lock is held, and both locks of the second one.
func TestTwoSetsWithOneLeaseIDAreTwo(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "- exclusive b", "- exclusive a,c,d")
	id := lock.LeaseID{1}
	s.waitsFor(id, 101, "a", "b")
	s.waitsFor(id, 102, "c", "d")
	if d := s.do(lock.Release{Locks: []string{"a", "c", "d"}, LeaseID: s.calls[1].LeaseID}); d.Err != nil {
		t.Fatal(d.Err)
	}
	for name, want := range map[string]int{"a": 0, "c": 1, "d": 1} {
		if r := s.locks[name]; len(r.Leases) != want || want > 0 && (r.Leases[0].ID != id || len(r.Leases[0].Set) != 2) {
			t.Errorf("%s is %+v", name, r.Leases)
		}
	}
}

// TestASetWithALeaseLessIsLost: one of its locks has lost its row, with no record of an end. A repeated acquire is told
// so; if it joined the queues instead, it would wait for itself.
func TestASetWithALeaseLessIsLost(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "- exclusive a,b")
	delete(s.locks, "b")
	if d := s.do(s.calls[0]); !errors.Is(d.Err, lock.ErrLeaseLost) {
		t.Errorf("it is answered with %v, queued: %v", d.Err, d.Queued)
	}
	for name, r := range s.locks {
		if len(r.Queue) > 0 {
			t.Errorf("it waits for %s", name)
		}
	}
}

// TestARevocationOfASetEndsNoOtherLease with the same lease_id: the set has lost one of its locks, and the lock was
// acquired again alone.
func TestARevocationOfASetEndsNoOtherLease(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "- exclusive a,b")
	delete(s.locks, "b")
	alone := s.calls[0]
	alone.Locks = members(exclusiveLock("b"))
	if d := s.do(alone); d.Err != nil {
		t.Fatal(d.Err)
	}
	r, err := lock.Revoke{Name: "a", Token: s.locks["a"].Token, Reason: "r", SkipGrace: true}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	s.doAll(r)
	if a, b := s.locks["a"].Leases, s.locks["b"].Leases; len(a) != 0 || len(b) != 1 {
		t.Errorf("a has %d leases, want none; b has %d, want 1", len(a), len(b))
	}
}
