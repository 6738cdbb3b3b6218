package memlock_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

const ttl = 10 * time.Second

func waitingAcquire(wait time.Duration) lock.Acquire {
	return lock.Acquire{Locks: lock.One("jobs:nightly"), LeaseID: lock.LeaseID(uuid.New()), Holder: "a", TTL: ttl, Wait: wait}
}

func mustAcquire(t *testing.T, s paddock.Service, wait time.Duration) lock.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), waitingAcquire(wait))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestLeaseEndsByTheDatabaseClock runs with a clock that is an hour off, and steps.
func TestLeaseEndsByTheDatabaseClock(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		by, lasts time.Duration
	}{
		"steady":      {0, ttl},
		"set forward": {ttl / 2, ttl / 2},
		"set back":    {-ttl, 2 * ttl},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var off atomic.Int64
				off.Store(int64(time.Hour))
				s := memlock.NewOn(func() time.Time { return time.Now().Add(time.Duration(off.Load())) }).Replica(1)
				g, begun := mustAcquire(t, s, 0), time.Now()
				if left := g.Until.Sub(begun); left != ttl {
					t.Errorf("the holder sees a remaining time of %v", left)
				}
				off.Add(int64(c.by))
				mustAcquire(t, s, lock.MaxWait)
				if lasted := time.Since(begun); lasted < c.lasts || lasted > c.lasts+time.Second {
					t.Errorf("the lease lasted %v, not %v", lasted, c.lasts)
				}
			})
		})
	}
}

func TestWaitersOfADeadReplicaAreSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memlock.New()
		one, other := m.Replica(1), m.Replica(2)
		held := mustAcquire(t, other, 0)
		crashed := make(chan error)
		go func() {
			_, err := one.Acquire(t.Context(), waitingAcquire(lock.MaxWait))
			crashed <- err
		}()
		synctest.Wait()
		served := make(chan lock.Grant)
		go func() { served <- mustAcquire(t, other, lock.MaxWait) }()
		synctest.Wait()
		m.Crash(1)
		if err := <-crashed; !errors.Is(err, lock.ErrUnknownOutcome) {
			t.Errorf("the call that waited there ended with %v", err)
		}
		if err := other.Release(t.Context(), lock.Release{Locks: []string{held.Name}, LeaseID: held.ID}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		<-served
		if took := time.Since(begun); took > lock.ReplicaTTL+lock.ClaimTimeout {
			t.Errorf("the later waiter was granted the lock after %v", took)
		}
		time.Sleep(lock.MaxWait + lock.PlaceRetention)
	})
}
