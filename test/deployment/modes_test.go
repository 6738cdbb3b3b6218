package deployment_test

import (
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestReadersAndWritersExcludeEachOtherAndNoneStarves(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	readers, writers, r := numbered("reader", 20), numbered("writer", 5), newCriticalSection()
	s.startWorkers(slices.Concat(readers, writers), 10, r, func(holder string) lock.Acquire {
		a := lock.Acquire{Holder: holder, Mode: lock.Shared}
		if slices.Contains(writers, holder) {
			a.Mode = lock.Exclusive
		}
		return a
	})
	r.check(s, len(readers))
	if r.most < 2 {
		t.Error("readers were never inside together")
	}
	s.checkFairness(s.checkEvents(verify.Rules{}), len(readers)+len(writers))
}

func TestSemaphoreNeverExceedsItsCapacityAndNoWaiterStarves(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	clients, r := numbered("client", 50), newCriticalSection()
	s.startWorkers(clients, 4, r, func(holder string) lock.Acquire {
		return lock.Acquire{Holder: holder, Mode: lock.Permit, Capacity: 3}
	})
	r.check(s, 3)
	if r.most < 3 {
		t.Errorf("never were more than %d inside", r.most)
	}
	s.checkFairness(s.checkEvents(verify.Rules{Capacity: 3}), len(clients))
}

// startWorkers starts a worker for each holder, which enters the critical section many times.
func (s *fixture) startWorkers(holders []string, times int, r *criticalSection,
	wants func(holder string) lock.Acquire) {
	s.Helper()
	for i, h := range holders {
		via := s.replicas[i%len(s.replicas)]
		s.workers.Go(func() {
			for range times {
				s.startAcquire(via, wants(h)).useLock(via, r)
			}
		})
	}
	s.workers.Wait()
	if want := len(holders) * times; len(r.holders()) != want {
		s.Fatalf("there were %d visits, want %d", len(r.holders()), want)
	}
}

// checkFairness fails the test if there were more grants between the queueing of a waiter and its own grant than
// there are other contenders: then one of them was served twice meanwhile.
func (s *fixture) checkFairness(events []lock.Event, contenders int) {
	s.Helper()
	since, most := map[int64]int{}, 0 // grants by the place of each waiter
	for _, e := range events {
		switch e.Kind {
		case lock.Queued:
			since[e.Place] = 0
		case lock.Granted:
			most = max(most, since[e.Place])
			delete(since, e.Place)
			for place := range since {
				since[place]++
			}
		}
	}
	s.Logf("at most %d others were granted the lock while one waited", most)
	if most >= contenders {
		s.Fatalf("%d others were granted the lock while one waited, and there are %d in all", most, contenders)
	}
}
