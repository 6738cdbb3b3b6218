package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// freeze freezes the scope. It tries again while the database is busy.
func freeze(t *testing.T, s *store.Store, scope lock.Scope) (status lock.FreezeStatus) {
	t.Helper()
	var err error
	until(t, "a scope is frozen", func() bool {
		status, err = s.Freeze(t.Context(), lock.FreezeRequest{Scope: scope, Reason: "maintenance"})
		return !errors.Is(err, lock.ErrUnavailable)
	})
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func thaw(t *testing.T, s *store.Store, scope lock.Scope) {
	t.Helper()
	var err error
	until(t, "a freeze is ended", func() bool {
		err = s.Thaw(t.Context(), lock.ThawRequest{Scope: scope})
		return !errors.Is(err, lock.ErrUnavailable)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsGrantedAfterTheAnswerToAFreeze on any replica, whatever is on its way.
func TestNothingIsGrantedAfterTheAnswerToAFreeze(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	replicas := []*store.Store{open(t, url), open(t, url)}
	var stop atomic.Bool
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop.Store(true)
	var granted atomic.Int64
	for i := range 16 {
		clients.Go(func() {
			s := replicas[i%2]
			for !stop.Load() {
				g, err := s.Acquire(t.Context(), acquire(fmt.Sprint("jobs:", i/2)))
				if err == nil {
					granted.Add(1)
					mustRelease(t, s, g)
				} else if !errors.Is(err, lock.ErrHeld) && !errors.Is(err, lock.ErrFrozen) && !errors.Is(err, lock.ErrUnavailable) {
					t.Error(err)
					return
				}
			}
		})
	}
	for round := range 10 {
		before := granted.Load()
		until(t, "clients are granted locks", func() bool { return granted.Load() > before+10 })
		freeze(t, replicas[round%2], "jobs:")
		newest := newestGrant(t, replicas[0], "jobs:")
		until(t, "the leases are released", func() bool {
			status, err := replicas[(round+1)%2].Frozen(t.Context(), "jobs:")
			if err != nil {
				t.Fatal(err)
			}
			return status.Leases == 0
		})
		time.Sleep(20 * time.Millisecond) // clients try
		if after := newestGrant(t, replicas[1], "jobs:"); after != newest {
			t.Errorf("round %d: token %d was granted in the freeze, after %d", round, after, newest)
		}
		thaw(t, replicas[round%2], "jobs:")
	}
}

// newestGrant returns the newest token of the locks with the prefix.
func newestGrant(t *testing.T, s *store.Store, prefix string) (newest lock.Token) {
	t.Helper()
	for i := range 8 {
		l, err := s.Lock(t.Context(), fmt.Sprint(prefix, i))
		if err != nil {
			t.Fatal(err)
		}
		newest = max(newest, l.Token)
	}
	return newest
}

// TestWaitersOfOtherReplicasAreServedWhenAFreezeEnds, also if the replica that ended it is gone before it serves them.
func TestWaitersOfOtherReplicasAreServedWhenAFreezeEnds(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one, other, outside := open(t, url), open(t, url), connect(t, url)
	freeze(t, one, "jobs:")
	wait := func(name string) chan error {
		granted := make(chan error, 1)
		a := acquire(name)
		a.Wait = lock.MaxWait
		go func() { _, err := other.Acquire(t.Context(), a); granted <- err }()
		until(t, "it waits", func() bool { l, err := one.Lock(t.Context(), name); return err == nil && l.Waiters == 1 })
		return granted
	}
	first := wait("jobs:1")
	thaw(t, one, "jobs:")
	if err := <-first; err != nil {
		t.Error(err)
	}
	freeze(t, one, "jobs:")
	second := wait("jobs:2")
	exec(t, outside, "begin")
	exec(t, outside, "delete from paddock.freezes")
	exec(t, outside, "update paddock.epochs set policy = policy + 1")
	exec(t, outside, "commit")
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// TestADrainWaitsForARenewalThatIsNotVisible: it was decided in time, and its commit waits, for a standby, say, until the
// lease is past its end as others see it. So the lease is left.
func TestADrainWaitsForARenewalThatIsNotVisible(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, holder, outside := open(t, url), connect(t, url), connect(t, url)
	session := openSession(t, s, time.Hour, 0)
	leases := map[string]lock.Grant{"jobs:1": mustAcquire(t, s, acquire("jobs:1")), "jobs:2": mustAcquire(t, s, inSession("jobs:2", session))}
	freeze(t, s, "jobs:")
	const end = "update paddock.records set expires_at = clock_timestamp() + interval '%[1]s' where name = 'jobs:1';" +
		"update paddock.sessions set expires_at = clock_timestamp() + interval '%[1]s';"
	// It is one message, so that no sweep comes in between.
	if _, err := holder.Exec(t.Context(), "begin;"+fmt.Sprintf(end, "0 s")+"commit; begin;"+fmt.Sprintf(end, "1 hour")); err != nil {
		t.Fatal(err)
	}
	left := func(when string) {
		t.Helper()
		if status, err := s.Frozen(t.Context(), "jobs:"); err != nil || status.Leases != len(leases) {
			t.Errorf("%s %d leases are left, %v; want %d", when, status.Leases, err, len(leases))
		}
	}
	if n := number(t, outside, "select count(*) from paddock.leases where state = 'expired'"); n != int64(len(leases)) {
		t.Errorf("%d leases are past their ends", n)
	}
	left("past their ends")
	exec(t, holder, "commit")
	left("renewed")
	for name, g := range leases {
		mustRelease(t, s, g)
		delete(leases, name)
		left("after a release")
	}
}

// TestADrainEndsLeasesThatAreOver, long before a scan of all locks finds them, which rests three seconds between 5,000.
func TestADrainEndsLeasesThatAreOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	outside := connect(t, url)
	exec(t, outside, "insert into paddock.records (name, parts) select to_char(i, 'FM000000'), 0 from generate_series(1, 60000) i")
	s := open(t, url)
	pass := func() time.Time { return s.Stats().Locks.At }
	until(t, "a pass of the scan has ended", func() bool { return !pass().IsZero() })
	mustAcquire(t, s, acquire("jobs:1"))
	freeze(t, s, "jobs:")
	before := pass()
	exec(t, outside, "update paddock.records set expires_at = clock_timestamp() where name = 'jobs:1'")
	until(t, "no lease is left", func() bool {
		status, err := s.Frozen(t.Context(), "jobs:")
		if err != nil {
			t.Fatal(err)
		}
		return status.Leases == 0
	})
	if after := pass(); !after.Equal(before) {
		t.Errorf("the scan has passed the lock meanwhile, at %v", after)
	}
}

// TestFreezesThatAreOverDoNotCount for the limit, although they are still stored.
func TestFreezesThatAreOverDoNotCount(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	add := fmt.Sprintf("insert into paddock.freezes (scope, reason, frozen_by, frozen_at, until) "+
		"select 'jobs:' || i, 'maintenance', '', clock_timestamp(), clock_timestamp() + interval '%%s' from generate_series(1, %d) i", lock.MaxFreezes)
	exec(t, outside, fmt.Sprintf(add, "0 s"))
	if all, err := s.Freezes(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("the freezes are %v, %v", all, err)
	}
	freeze(t, s, "other")
	thaw(t, s, "other")
	if n := number(t, outside, "select count(*) from paddock.freezes"); n != 0 {
		t.Errorf("%d freezes are left", n)
	}
	exec(t, outside, fmt.Sprintf(add, "1 hour"))
	if _, err := s.Freeze(t.Context(), lock.FreezeRequest{Scope: "other", Reason: "maintenance"}); !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("one more than allowed: %v", err)
	}
	freeze(t, s, "jobs:1")
}
