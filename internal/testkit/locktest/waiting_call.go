package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A waitingCall is an Acquire that waits in the background.
type waitingCall struct {
	s       *fixture
	request lock.Acquire
	began   time.Time
	ctx     *callContext
	cancel  context.CancelFunc
	done    chan struct{} // closed when the call has ended
	grant   lock.Grant
	err     error
}

// A callContext is the context of a waitingCall. A call that is cut off ends as if its deadline had passed: the client
// of package client does not give a place up then that the call wants to keep.
type callContext struct {
	context.Context
	cut atomic.Bool
}

func (c *callContext) Err() error {
	err := c.Context.Err()
	if err != nil && c.cut.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// startAcquire starts an acquire in the background. It waits for a.Wait, or until the test ends if that is zero.
func (s *fixture) startAcquire(a lock.Acquire) *waitingCall {
	a = s.complete(a)
	inner, hangUp := context.WithCancel(s.ctx)
	ctx := &callContext{Context: inner}
	c := &waitingCall{s: s, request: a, began: time.Now(), ctx: ctx, cancel: hangUp, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if a.Wait > 0 {
			c.grant, c.err = s.locks().Acquire(ctx, a)
		} else {
			c.grant, c.err = s.acquirePatiently(ctx, a)
		}
	}()
	s.Cleanup(func() {
		hangUp()
		<-c.done
	})
	return c
}

// acquirePatiently waits until it is granted the lock. It retries after a timeout, a lost answer or the stop of a
// replica, and resumes at its place.
func (s *fixture) acquirePatiently(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	a.Wait, a.KeepPlace = lock.MaxWait, true
	for {
		g, err := s.locks().Acquire(ctx, a)
		retry := errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrUnavailable) ||
			errors.Is(err, lock.ErrUnknownOutcome)
		if !retry {
			return g, err
		}
		select {
		case <-time.After(tolerance):
		case <-ctx.Done():
			return g, err
		}
	}
}

// enqueue starts an acquire, and returns once it is in the queue, or in those of a set. No other waiter may have the
// same holder.
func (s *fixture) enqueue(a lock.Acquire) *waitingCall {
	s.Helper()
	c := s.startAcquire(a)
	s.eventually(c.request.Holder+" waits", func() bool {
		select {
		case <-c.done:
			s.Fatalf("%s should wait, and got %+v, %v", c.request.Holder, c.grant, c.err)
		default:
		}
		return !slices.ContainsFunc(c.request.Names(), func(name string) bool { return !s.waits(name, c.request.Holder) })
	})
	return c
}

// waits reports whether a call of the holder waits for the lock.
func (s *fixture) waits(name, holder string) bool {
	return slices.ContainsFunc(s.queue(name).Waiters, func(w lock.WaiterInfo) bool { return w.Holder == holder && w.Attached })
}

// enqueueN adds n waiters one after another, with the holders "waiter 1", "waiter 2" and so on.
func (s *fixture) enqueueN(n int) []*waitingCall {
	s.Helper()
	var calls []*waitingCall
	for i := range n {
		calls = append(calls, s.enqueue(lock.Acquire{Holder: fmt.Sprintf("waiter %d", i+1)}))
	}
	return calls
}

// wait waits until the call has ended.
func (c *waitingCall) wait() {
	c.s.Helper()
	select {
	case <-c.done:
	case <-c.s.ctx.Done():
		c.s.Fatalf("%s got no answer", c.request.Holder)
	}
}

// mustBeGranted waits until the call is granted the lock.
func (c *waitingCall) mustBeGranted() lock.Grant {
	c.s.Helper()
	c.wait()
	if c.err != nil {
		c.s.Fatalf("%s was not granted the lock: %v", c.request.Holder, c.err)
	}
	return c.grant
}

// mustBeWoken waits until the call, whose wait is not repeated, is granted the lock during its wait. At the end of the
// wait the service asks once more whether the lock is free, so that a grant then proves nothing.
func (c *waitingCall) mustBeWoken() lock.Grant {
	c.s.Helper()
	g := c.mustBeGranted()
	if took := time.Since(c.began); took >= c.request.Wait {
		c.s.Errorf("%s was granted the lock after %v, at the end of its wait", c.request.Holder, took)
	}
	return g
}

// refusal waits until the call has ended, and returns its error.
func (c *waitingCall) refusal() error {
	c.s.Helper()
	c.wait()
	return c.err
}

// cancelAndWait cancels the call, waits for its end, and gives up its place. It must not have been granted the lock.
func (c *waitingCall) cancelAndWait() {
	c.s.Helper()
	c.cancel()
	c.mustHaveEnded()
	c.leave()
}

// cutOff ends the call as if its connection was closed, and waits until no call waits at its place.
func (c *waitingCall) cutOff() {
	c.s.Helper()
	c.ctx.cut.Store(true)
	c.cancel()
	c.mustHaveEnded()
	c.s.eventually(c.request.Holder+" is disconnected", func() bool {
		return !slices.ContainsFunc(c.request.Names(), func(name string) bool { return c.s.waits(name, c.request.Holder) })
	})
}

// leave gives up the place of a call that has ended, which may have none.
func (c *waitingCall) leave() {
	c.s.Helper()
	r := lock.Release{Locks: c.request.Names(), LeaseID: c.request.LeaseID}
	if err := c.s.locks().Release(c.s.ctx, r); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
		c.s.Errorf("giving up the place of %s: %v", c.request.Holder, err)
	}
}

// mustHaveEnded waits until the call, whose context has ended, ends without a grant.
func (c *waitingCall) mustHaveEnded() {
	c.s.Helper()
	c.wait()
	if !wasCancelled(c.err) {
		c.s.Fatalf("%s was cancelled and got %+v, %v", c.request.Holder, c.grant, c.err)
	}
}

// queue returns the queue of the lock.
func (s *fixture) queue(name string) lock.QueueInfo {
	s.Helper()
	q, err := s.locks().Queue(s.ctx, name)
	s.must(err)
	if q.Name != name || q.AsOf.IsZero() {
		s.Fatalf("the queue of %s is %+v", name, q)
	}
	return q
}

// waiters returns the holders of the waiters in order.
func (s *fixture) waiters() []string {
	s.Helper()
	names := []string{}
	for _, w := range s.queue(s.name).Waiters {
		names = append(names, w.Holder)
	}
	return names
}

// expectQueue ends the test unless exactly these wait.
func (s *fixture) expectQueue(holders ...string) {
	s.Helper()
	if got := s.waiters(); !slices.Equal(got, holders) {
		s.Fatalf("the waiters are %q, want %q", got, holders)
	}
}

// awaitQueue waits until exactly these wait. A service may notice late that a waiter has left.
func (s *fixture) awaitQueue(holders ...string) {
	s.Helper()
	s.eventually(fmt.Sprintf("the waiters are %q", holders), func() bool { return slices.Equal(s.waiters(), holders) })
}

// holdersOf returns the holders of the lock in order.
func holdersOf(l lock.Lock) []string {
	holders := []string{}
	for _, h := range l.Leases {
		holders = append(holders, h.Holder)
	}
	slices.Sort(holders)
	return holders
}

// expectHolders ends the test unless exactly these hold the lock.
func (s *fixture) expectHolders(holders ...string) lock.Lock {
	s.Helper()
	l := s.get(s.name)
	got := holdersOf(l)
	if !slices.Equal(got, holders) {
		s.Fatalf("the holders are %q, want %q", got, holders)
	}
	return l
}

// verifyHistory reads the lock's events until the history is complete, and ends the test unless it keeps the rules.
func (s *fixture) verifyHistory(name string, r verify.Rules) []lock.Event {
	s.Helper()
	var events []lock.Event
	from, open := &reader{s, paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit}}, r
	open.AllowWaiters = true
	s.eventually("the history is complete", func() bool {
		until := s.get(name).Revision
		for page := from.read(); len(page) > 0; page = from.read() {
			events = append(events, page...)
		}
		s.must(open.Check(events))
		return int64(len(events)) >= until && r.Check(events) == nil
	})
	return events
}
