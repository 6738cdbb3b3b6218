package deployment_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A fixture is a lock that many clients use through the replicas of one service, each its own process.
type fixture struct {
	*testing.T
	replicas []process
	name     string

	workers sync.WaitGroup // goroutines that use the lock
	mu      sync.Mutex
	inside  string   // who uses the lock
	visits  []string // the clients that have used it, in order
}

// A process is one replica of the service.
type process struct {
	paddock.Service
	*proctest.Process
	base string
}

// newFixture starts two replicas. The last one must live until the test ends: it is used for checks.
func newFixture(t *testing.T, databaseURL string, args ...string) *fixture {
	t.Helper()
	s := &fixture{T: t, name: "jobs:nightly"}
	for range 2 {
		p, base := built.Serve(t, databaseURL, args...)
		s.replicas = append(s.replicas, process{replica.Connect(t, client.Options{BaseURL: base}), p, base})
	}
	t.Cleanup(s.workers.Wait)
	return s
}

// hold acquires the lock at the last replica, and returns a function that releases it there.
func (s *fixture) hold() (release func()) {
	s.Helper()
	via := s.replicas[1]
	g, err := via.Acquire(s.Context(), lock.Acquire{Locks: lock.One(s.name), LeaseID: lock.LeaseID(uuid.New()), Holder: "holder", TTL: time.Hour})
	s.must(err)
	return func() {
		s.Helper()
		s.must(via.Release(s.Context(), lock.Release{Locks: []string{s.name}, LeaseID: g.ID}))
	}
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
func (s *fixture) startAcquire(via paddock.Service, a lock.Acquire) *caller {
	a.TTL, a.Wait = time.Hour, lock.MaxWait
	c := &caller{fixture: s, Acquire: a, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.grant, c.err = via.Acquire(s.Context(), a)
	}()
	s.Cleanup(func() { <-c.done })
	return c
}

// enqueue lets n holders join the queue one after another, each at one of the replicas by turns.
func (s *fixture) enqueue(n int, replicas ...process) (all []*caller) {
	s.Helper()
	for i := range n {
		all = append(all, s.startAcquire(replicas[i%len(replicas)], lock.Acquire{
			Locks: lock.One(s.name), LeaseID: lock.LeaseID(uuid.New()), Holder: fmt.Sprint("waiter ", i+1)}))
		await.Until(s.T, all[i].Holder+" waits", func() bool {
			l, err := s.replicas[1].Lock(s.Context(), s.name)
			s.must(err)
			return l.Waiters == i+1
		})
	}
	return all
}

// expectAnswer waits until the call is answered.
func (c *caller) expectAnswer() {
	c.Helper()
	select {
	case <-c.done:
	case <-time.After(proctest.Patience):
		c.Fatalf("the call of %s was not answered", c.Holder)
	}
}

// startUsing lets the caller use the lock for a moment when it has it, and then release it. No other may use it
// meanwhile.
func (c *caller) startUsing(via paddock.Service) {
	c.workers.Go(func() {
		if <-c.done; c.err != nil {
			c.Errorf("%s was not granted the lock: %v", c.Holder, c.err)
			return
		}
		c.enter()
		if _, err := via.Renew(c.Context(), lock.Renew{Locks: c.Names(), LeaseID: c.LeaseID}); err != nil {
			c.Errorf("%s could not renew: %v", c.Holder, err)
		}
		c.leave()
		if err := via.Release(c.Context(), lock.Release{Locks: c.Names(), LeaseID: c.LeaseID}); err != nil {
			c.Errorf("%s could not release: %v", c.Holder, err)
		}
	})
}

func (c *caller) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside != "" {
		c.Errorf("%s was inside when %s came", c.inside, c.Holder)
	}
	c.inside, c.visits = c.Holder, append(c.visits, c.Holder)
}

func (c *caller) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside = ""
}

// expectOrder waits until the callers have used the lock, and checks that they did so in this order. It returns the
// events of the lock, which must prove that its rules were kept.
func (s *fixture) expectOrder(callers []*caller, rules verify.Rules) []lock.Event {
	s.Helper()
	s.workers.Wait()
	var want []string
	for _, c := range callers {
		want = append(want, c.Holder)
	}
	if fmt.Sprint(s.visits) != fmt.Sprint(want) {
		s.Fatalf("the order is\n%q, want\n%q", s.visits, want)
	}
	via := s.replicas[1]
	l, err := via.Lock(s.Context(), s.name)
	s.must(err)
	ctx, cancel := context.WithTimeout(s.Context(), proctest.Patience)
	defer cancel()
	var events []lock.Event
	for q := (paddock.EventQuery{Names: []string{s.name}, Wait: lock.MaxWait}); len(events) < int(l.Revision); {
		page, err := via.Events(ctx, q)
		s.must(err)
		events, q.Cursor = append(events, page.Items...), page.Next
	}
	s.must(rules.Check(events))
	return events
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}
