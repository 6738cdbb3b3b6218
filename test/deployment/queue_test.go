package deployment_test

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestTwoHundredWaitersAreServedInOrder(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t), "--log-level=debug")
	f := s.startFollowing(602) // the holder's two, and three of each waiter
	holder := s.mustAcquire(s.replicas[0], lock.Acquire{Holder: "holder"})

	holders, r := numbered("waiter", 200), newCriticalSection()
	s.enqueueAll(holders, r)
	s.release(s.replicas[0], holder.ID)
	s.workers.Wait()

	r.checkOrder(s, holders)
	r.check(s, 1)
	s.checkWakeups(s.checkEvents(verify.Rules{}))
	f.check(s)
}

func TestPollingReplicasServeInOrder(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t), "--pooler-mode=transaction")
	holder := s.mustAcquire(s.replicas[0], lock.Acquire{Holder: "holder"})
	holders, r := numbered("waiter", 10), newCriticalSection()
	s.enqueueAll(holders, r)
	s.release(s.replicas[0], holder.ID)
	s.workers.Wait()

	r.checkOrder(s, holders)
	r.check(s, 1)
	s.checkEvents(verify.Rules{})
}

// enqueueAll lets the holders join the queue one after another, each at a random replica, and use the lock when they
// have it. It returns when all have joined.
func (s *fixture) enqueueAll(holders []string, r *criticalSection) {
	s.Helper()
	for _, h := range holders {
		via := s.replicas[rand.N(len(s.replicas))]
		c := s.enqueue(via, h)
		s.workers.Go(func() { c.useLock(via, r) })
	}
}

// useLock waits for the lock, uses it for a moment and releases it.
func (c *caller) useLock(via lock.Service, r *criticalSection) {
	<-c.done
	if c.err != nil {
		c.Errorf("%s was not granted the lock: %v", c.Holder, c.err)
		return
	}
	r.run(c.Holder, cmp.Or(c.Mode, lock.Exclusive), func() {
		if _, err := via.Renew(c.Context(), lock.Renew{Name: c.Name, LeaseID: c.LeaseID}); err != nil {
			c.Errorf("%s could not renew: %v", c.Holder, err)
		}
	})
	if err := via.Release(c.Context(), lock.Release{Name: c.Name, LeaseID: c.LeaseID}); err != nil {
		c.Errorf("%s could not release: %v", c.Holder, err)
	}
}

// checkWakeups fails the test unless the replicas have logged exactly the promotions of the events, each once.
func (s *fixture) checkWakeups(events []lock.Event) {
	s.Helper()
	var want, got []int64
	for _, e := range events {
		if e.Kind == lock.Granted && e.Place != 0 {
			want = append(want, e.Place)
		}
	}
	for _, r := range s.replicas {
		got = append(got, promoted(s, r.process.Stderr.String())...)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) == 0 {
		s.Fatalf("promotions in the logs:\n%v\nin the events:\n%v", got, want)
	}
}

// promoted returns the places in the log records about promotions.
func promoted(s *fixture, log string) []int64 {
	s.Helper()
	var places []int64
	for line := range strings.Lines(log) {
		var said struct {
			Msg, Lock string
			Place     int64
		}
		if !strings.Contains(line, `"msg":"promoted"`) {
			continue
		}
		s.must(json.Unmarshal([]byte(line), &said))
		if said.Lock == s.name {
			places = append(places, said.Place)
		}
	}
	return places
}
