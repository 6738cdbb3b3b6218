package memlock_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

const ttl = 10 * time.Second

func wanted(wait time.Duration) lock.Acquire {
	return lock.Acquire{Name: "jobs:nightly", LeaseID: lock.LeaseID(uuid.New()), Holder: "a", TTL: ttl, Wait: wait}
}

func acquired(t *testing.T, s lock.Service, wait time.Duration) lock.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), wanted(wait))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestALeaseEndsByTheDatabasesClock has that clock be an hour off, and step.
func TestALeaseEndsByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		by, lasts time.Duration
	}{
		"that goes right":     {0, ttl},
		"that is put forward": {ttl / 2, ttl / 2},
		"that is put back":    {-ttl, 2 * ttl},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var off atomic.Int64
				off.Store(int64(time.Hour))
				s := memlock.NewOn(func() time.Time { return time.Now().Add(time.Duration(off.Load())) }).Replica(1)
				g, begun := acquired(t, s, 0), time.Now()
				if left := g.Until.Sub(begun); left != ttl {
					t.Errorf("its holder is told that it lasts %v", left)
				}
				off.Add(int64(c.by))
				acquired(t, s, lock.MaxWait)
				if lasted := time.Since(begun); lasted < c.lasts || lasted > c.lasts+time.Second {
					t.Errorf("it lasted %v, not %v", lasted, c.lasts)
				}
			})
		})
	}
}

func TestWhoWaitsWithAReplicaThatDiesIsPassedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memlock.New()
		one, other := m.Replica(1), m.Replica(2)
		held := acquired(t, other, 0)
		died := make(chan error)
		go func() {
			_, err := one.Acquire(t.Context(), wanted(lock.MaxWait))
			died <- err
		}()
		synctest.Wait()
		served := make(chan lock.Grant)
		go func() { served <- acquired(t, other, lock.MaxWait) }()
		synctest.Wait()
		m.Crash(1)
		if err := <-died; !errors.Is(err, lock.ErrUnknownOutcome) {
			t.Errorf("the call that waited there ended with %v", err)
		}
		if err := other.Release(t.Context(), lock.Release{Name: held.Name, LeaseID: held.ID}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		<-served
		if took := time.Since(begun); took > lock.ReplicaTTL+lock.ClaimTimeout {
			t.Errorf("who came later was served after %v", took)
		}
		time.Sleep(lock.MaxWait + lock.PlaceRetention)
	})
}
