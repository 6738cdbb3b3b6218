package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A call is an Acquire that waits while the test goes on.
type call struct {
	s      *scene
	asked  lock.Acquire
	began  time.Time
	hangUp context.CancelFunc
	done   chan struct{} // closed when it was answered
	grant  lock.Grant
	err    error
}

// calls has an acquire wait, for as long as it takes unless a says for how long.
// It is over when the test is.
func (s *scene) calls(a lock.Acquire) *call {
	a = s.complete(a)
	ctx, hangUp := context.WithCancel(s.ctx)
	c := &call{s: s, asked: a, began: time.Now(), hangUp: hangUp, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if a.Wait > 0 {
			c.grant, c.err = s.locks.Acquire(ctx, a)
		} else {
			c.grant, c.err = s.patiently(ctx, a)
		}
	}()
	s.Cleanup(func() {
		hangUp()
		<-c.done
	})
	return c
}

// patiently waits until it is granted the lock, as a caller who lost an answer or
// whose replica stops does: it comes back to its place.
func (s *scene) patiently(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	a.Wait, a.KeepPlace = lock.MaxWait, true
	for {
		g, err := s.locks.Acquire(ctx, a)
		again := errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome)
		if !again {
			return g, err
		}
		select {
		case <-time.After(lateness):
		case <-ctx.Done():
			return g, err
		}
	}
}

// joins has an acquire wait, and returns once it is in the queue. Its holder must
// be nobody else's.
func (s *scene) joins(a lock.Acquire) *call {
	s.Helper()
	c := s.calls(a)
	s.eventually(c.asked.Holder+" waits", func() bool {
		select {
		case <-c.done:
			s.Fatalf("%s was to wait, and was answered %+v, %v", c.asked.Holder, c.grant, c.err)
		default:
		}
		return slices.ContainsFunc(s.queue(c.asked.Name).Waiters, func(w lock.WaiterInfo) bool {
			return w.Holder == c.asked.Holder && w.Attached
		})
	})
	return c
}

// line has n of them join one after another, named by their number.
func (s *scene) line(n int) []*call {
	s.Helper()
	var calls []*call
	for i := range n {
		calls = append(calls, s.joins(lock.Acquire{Holder: fmt.Sprintf("waiter %d", i+1)}))
	}
	return calls
}

// answered waits until the call is.
func (c *call) answered() {
	c.s.Helper()
	select {
	case <-c.done:
	case <-c.s.ctx.Done():
		c.s.Fatalf("%s was never answered", c.asked.Holder)
	}
}

// has waits until the call is granted the lock.
func (c *call) has() lock.Grant {
	c.s.Helper()
	c.answered()
	if c.err != nil {
		c.s.Fatalf("%s was to have the lock: %v", c.asked.Holder, c.err)
	}
	return c.grant
}

// leaves has the call's context end, and waits until it is over. It must not have
// been granted the lock.
func (c *call) leaves() {
	c.s.Helper()
	c.hangUp()
	c.answered()
	if !errors.Is(c.err, lock.ErrUnavailable) && !errors.Is(c.err, lock.ErrUnknownOutcome) {
		c.s.Fatalf("%s has left, and was answered %+v, %v", c.asked.Holder, c.grant, c.err)
	}
}

// queue returns who waits for the lock of that name.
func (s *scene) queue(name string) lock.QueueInfo {
	s.Helper()
	q, err := s.locks.Queue(s.ctx, name)
	s.must(err)
	if q.Name != name || q.AsOf.IsZero() {
		s.Fatalf("the queue of %s is %+v", name, q)
	}
	return q
}

// waiters returns the holders who wait, in the order of the queue.
func (s *scene) waiters() []string {
	s.Helper()
	names := []string{}
	for _, w := range s.queue(s.name).Waiters {
		names = append(names, w.Holder)
	}
	return names
}

// stand ends the test unless just these wait.
func (s *scene) stand(holders ...string) {
	s.Helper()
	if got := s.waiters(); !slices.Equal(got, holders) {
		s.Fatalf("there wait %q, want %q", got, holders)
	}
}

// remain waits until just these wait: one who has left is known to have as soon as
// the service has noticed.
func (s *scene) remain(holders ...string) {
	s.Helper()
	s.eventually(fmt.Sprintf("there wait %q", holders), func() bool { return slices.Equal(s.waiters(), holders) })
}

// held ends the test unless just these have the lock.
func (s *scene) held(holders ...string) lock.Lock {
	s.Helper()
	l := s.look(s.name)
	got := []string{}
	for _, h := range l.Leases {
		got = append(got, h.Holder)
	}
	slices.Sort(got)
	if !slices.Equal(got, holders) {
		s.Fatalf("the lock is had by %q, want %q", got, holders)
	}
	return l
}

// proven reads the lock's events until nobody waits, and ends the test unless they
// prove its rules.
func (s *scene) proven(name string, r verify.Rules) []lock.Event {
	s.Helper()
	var events []lock.Event
	from, open := &reader{s, lock.EventQuery{Name: name, Limit: lock.MaxLimit}}, r
	open.AllowWaiters = true
	s.eventually("the history is complete", func() bool {
		until := s.look(name).Revision
		for page := from.read(); len(page) > 0; page = from.read() {
			events = append(events, page...)
		}
		s.must(open.Check(events))
		return int64(len(events)) >= until && r.Check(events) == nil
	})
	return events
}
