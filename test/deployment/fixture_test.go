package deployment_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A fixture is a lock that many clients use through the replicas of one service, each its own process.
type fixture struct {
	*testing.T
	replicas []replica
	name     string

	listener *listener      // hears the events of the lock from the last replica
	workers  sync.WaitGroup // goroutines that use the lock
	retries  atomic.Int64   // of the insistent
}

// A replica is one process of the service.
type replica struct {
	lock.Service
	process *proctest.Process
	base    string
}

// newFixture starts two replicas. The last one must live until the test ends: it is used for checks.
func newFixture(t *testing.T, databaseURL string, args ...string) *fixture {
	t.Helper()
	s := &fixture{T: t, name: "jobs:nightly"}
	for range 2 {
		p, base := paddock.Serve(t, databaseURL, args...)
		s.replicas = append(s.replicas, replica{connect(t, base), p, base})
	}
	s.listener = &listener{fixture: s, locks: s.replicas[1]}
	t.Cleanup(func() {
		s.workers.Wait()
		t.Logf("%d calls were retried", s.retries.Load())
	})
	return s
}

// complete sets the name, a lease_id, and a TTL that does not end during the test, unless a has them.
func (s *fixture) complete(a lock.Acquire) lock.Acquire {
	a.Name = s.name
	if a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID = lock.LeaseID(uuid.New())
	}
	if a.TTL == 0 {
		a.TTL = time.Hour
	}
	return a
}

// mustAcquire acquires the lock at the replica without waiting.
func (s *fixture) mustAcquire(via lock.Service, a lock.Acquire) lock.Grant {
	s.Helper()
	g, err := via.Acquire(s.Context(), s.complete(a))
	s.must(err)
	return g
}

func (s *fixture) release(via lock.Service, id lock.LeaseID) {
	s.Helper()
	s.must(via.Release(s.Context(), lock.Release{Name: s.name, LeaseID: id}))
}

// A caller is a pending acquire and its result.
type caller struct {
	*fixture
	lock.Acquire
	done  chan struct{} // closed when it was answered
	grant lock.Grant
	err   error
}

// startAcquire starts an acquire at the replica that waits for as long as a call can.
func (s *fixture) startAcquire(via lock.Service, a lock.Acquire) *caller {
	a = s.complete(a)
	a.Wait = lock.MaxWait
	c := &caller{fixture: s, Acquire: a, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.grant, c.err = via.Acquire(s.Context(), a)
	}()
	s.Cleanup(func() { <-c.done })
	return c
}

// enqueue does what startAcquire does, and returns when the caller is in the queue.
func (s *fixture) enqueue(via lock.Service, holder string) *caller {
	s.Helper()
	c := s.startAcquire(via, lock.Acquire{Holder: holder})
	s.listener.kind(lock.Queued, holder)
	return c
}

// awaitAnswer waits until the call is answered.
func (c *caller) awaitAnswer() {
	c.Helper()
	select {
	case <-c.done:
	case <-time.After(proctest.Patience):
		c.Fatalf("the call of %s was not answered", c.Holder)
	}
}

// expectGrant waits until the caller has the lock.
func (c *caller) expectGrant() lock.Grant {
	c.Helper()
	if c.awaitAnswer(); c.err != nil {
		c.Fatalf("%s was not granted the lock: %v", c.Holder, c.err)
	}
	return c.grant
}

// awaitAttached waits until exactly these holders have waiting calls, in this order.
func (s *fixture) awaitAttached(via lock.Service, holders []string) {
	s.Helper()
	s.eventually(fmt.Sprintf("calls wait at the places of %q", holders), func() bool {
		q, err := via.Queue(s.Context(), s.name)
		s.must(err)
		var attached []string
		for _, w := range q.Waiters {
			if w.Attached {
				attached = append(attached, w.Holder)
			}
		}
		return slices.Equal(attached, holders)
	})
}

// eventually polls every 10 ms, for at most proctest.Patience.
func (s *fixture) eventually(what string, so func() bool) {
	s.Helper()
	again, enough := time.NewTicker(10*time.Millisecond), time.After(proctest.Patience)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-enough:
			s.Fatalf("timed out waiting until %s", what)
		}
	}
}

// checkEvents fails the test unless the events of the lock, which no client uses any more, prove that its rules were
// kept. It returns the events.
func (s *fixture) checkEvents(rules verify.Rules) []lock.Event {
	s.Helper()
	via := s.replicas[len(s.replicas)-1]
	l, err := via.Lock(s.Context(), s.name)
	s.must(err)
	ctx, cancel := context.WithTimeout(s.Context(), proctest.Patience)
	defer cancel()
	var events []lock.Event
	for q := (lock.EventQuery{Name: s.name, Wait: lock.MaxWait}); len(events) < int(l.Revision); {
		page, err := via.Events(ctx, q)
		s.must(err)
		events, q.Cursor = append(events, page.Items...), page.Next
	}
	if err := rules.Check(events); err != nil {
		s.Fatal(err)
	}
	return events
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}
