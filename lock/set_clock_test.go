package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// setAhead returns a model in which the clock was set back by an hour after the lock "z" had changed.
func setAhead(t *testing.T) *setModel {
	m := newSetModel(t)
	m.now = t0.Add(time.Hour)
	a, _ := m.acquire(lock.Acquire{Locks: lock.One("z"), LeaseID: id(1), Holder: "first", TTL: time.Minute})
	if d := m.do(lock.Release{Locks: []string{"z"}, LeaseID: a.LeaseID}); d.Err != nil || !d.Locks[0].ChangedAt.Equal(m.now) {
		t.Fatalf("released with %+v", d)
	}
	m.now = t0
	return m
}

// TestNoLockOfASetEndsLeasesByTheTimeOfAnother: their holders know nothing of the other lock.
func TestNoLockOfASetEndsLeasesByTheTimeOfAnother(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]lock.Mode{"a writer": lock.Exclusive, "a reader": lock.Shared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := setAhead(t)
			holder, _ := m.acquire(lock.Acquire{Locks: []lock.Member{{Name: "a", Mode: mode}}, LeaseID: id(2), Holder: "holder", TTL: time.Minute})
			_, d := m.acquire(lock.Acquire{Locks: []lock.Member{{Name: "z"}, {Name: "a", Mode: mode}}, LeaseID: id(3), Holder: "set", TTL: time.Minute})
			if refused := errors.Is(d.Err, lock.ErrHeld); refused != (mode == lock.Exclusive) {
				t.Errorf("the set is told %v", d.Err)
			}
			m.now = t0.Add(time.Minute - 1)
			if d := m.do(lock.Renew{Locks: []string{"a"}, LeaseID: holder.LeaseID}); d.Err != nil {
				t.Errorf("the holder is told %v", d.Err)
			}
		})
	}
}

// TestASetEndsTogetherAfterAClockWasSetBack, at an end that is after the time of each lock.
func TestASetEndsTogetherAfterAClockWasSetBack(t *testing.T) {
	t.Parallel()
	m := setAhead(t)
	a, d := m.acquire(lock.Acquire{Locks: []lock.Member{{Name: "z"}, {Name: "a"}}, LeaseID: id(2), Holder: "set", TTL: time.Minute, MaxHold: time.Hour})
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	if renewed := m.do(lock.Renew{Locks: a.Names(), LeaseID: a.LeaseID, TTL: 2 * time.Minute}); renewed.Err != nil {
		t.Fatal(renewed.Err)
	}
	end := t0.Add(time.Hour + 2*time.Minute)
	for _, name := range a.Names() {
		if l := m.locks[name].Leases[0]; !l.ExpiresAt.Equal(end) || l.MaxHold != time.Hour {
			t.Errorf("%s has %+v, want a lease until %v", name, l, end)
		}
	}
	for _, passed := range []time.Duration{end.Sub(t0) - 1, 1} {
		m.sleep(passed)
		want := 1
		if passed == 1 {
			want = 0
		}
		for _, name := range a.Names() {
			if n := len(m.locks[name].Leases); n != want {
				t.Errorf("at %v %s has %d leases, want %d", m.now, name, n, want)
			}
		}
	}
}
