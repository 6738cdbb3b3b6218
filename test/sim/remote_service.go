package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A remoteService is the lock service as the guard of one attempt reaches it: over the network, at the replica that a
// balancer chooses. Like a client over HTTP it counts the rest of a lease from when the request was sent.
type remoteService struct {
	paddock.Service // for calls that are not simulated
	*attempt
	guard deterministicGuard
}

// acquires is the name of an acquire request in the trace.
const acquires = "acquire"

// A request is one call of a guard.
type request struct {
	what   string
	thread time.Duration
	delay  time.Duration // between the guard's call and the request
	until  time.Time     // when the guard gives up; zero: never
	before error         // the error of the previous try, returned if this one never leaves
}

// begin returns the request of a call that the guard makes now and that leaves at that time. Patience is the guard's
// usual timeout for such a call, zero if the call brings its own deadline.
func (l *remoteService) begin(ctx context.Context, what string, thread time.Duration, leaves time.Time, patience time.Duration) request {
	now := time.Now()
	c := request{what: what, thread: thread, delay: max(leaves.Sub(now), 0), before: newError(lock.ErrUnavailable, "It was never sent.")}
	if until, ok := ctx.Deadline(); ok {
		c.until = until
		if patience == 0 || until.Sub(now) == patience {
			c.until = until.Add(c.delay)
		}
		c.delay = min(c.delay, c.until.Sub(now))
	}
	return c
}

// call sends the request and waits for the answer. It counts the rest of a lease from when the request was sent.
func call[T any](ctx context.Context, l *remoteService, c request, do func(context.Context, paddock.Service) (T, error)) (T, error) {
	var none T
	if !l.leave(ctx, c) {
		return none, c.before
	}
	f, sent := l.delivery(c.what), time.Now()
	l.noteSent(c.what, f)
	return ask(ctx, l.network, c.thread, f, c.until, func(ctx context.Context) (T, error) {
		locks := l.world.replica(f.to)
		if locks == nil {
			return none, newError(lock.ErrUnavailable, "Connection refused.")
		}
		t, err := do(ctx, l.session(locks))
		if g, ok := any(&t).(*lock.Grant); ok && err == nil {
			g.Until = sent.Add(time.Until(g.Until))
		}
		return t, err
	})
}

// leave waits until the request leaves. It returns false if the guard gives up before.
func (l *remoteService) leave(ctx context.Context, c request) bool {
	due := alarm(c.delay, c.delay > 0)
	for done := ctx.Done(); due != nil; {
		select {
		case <-due:
			due = nil
		case <-done:
			if done = nil; ctx.Err() != context.DeadlineExceeded {
				return false
			}
		}
	}
	if !c.inTime() {
		return false
	}
	l.awake(c.thread)
	if err := ctx.Err(); err != nil && (err != context.DeadlineExceeded || c.thread == renewing && l.guard.over()) {
		return false
	}
	return c.inTime()
}

// inTime reports whether the guard still waits for the call.
func (c request) inTime() bool { return c.until.IsZero() || time.Now().Before(c.until) }

func (l *remoteService) noteSent(what string, f delivery) {
	if what == acquires && !f.undisturbed() {
		l.disturbed = true
	}
	text := fmt.Sprintf("sends %s to server %d", what, f.to+1)
	for _, trouble := range []struct {
		is   bool
		what string
	}{
		{f.refused, "refused"}, {f.lost, "lost"}, {f.unanswered, "unanswered"}, {f.there > hop, "late"}, {f.back > hop, "answered late"},
		{f.duplicateAfter > 0, "arrives twice"}, {f.cut > 0, "cut"},
	} {
		if trouble.is {
			text += ", " + trouble.what
		}
	}
	l.detail(l.name, "%s", text)
}

// Timeouts of package guard, unless its deadline is earlier.
const (
	longestWait = lock.PlaceRetention     // of one acquire
	anAnswer    = lock.PlaceRetention / 2 // after the wait
	aRelease    = 2 * time.Second         // one try to release
	allReleases = 5 * time.Second         // all tries

	aLateRelease = time.Second / 2 // the only try after the lease's end
)

// Acquire sends the request. The end of its wait does not move when the request leaves late.
func (l *remoteService) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	l.guard.begins(time.Now())
	tries := a.Wait == 0
	c := l.begin(ctx, acquires, working, l.guard.acquire(time.Now()), 0)
	if a.Wait > 0 && a.Wait < longestWait {
		a.Wait -= c.delay
		c.until = c.until.Add(-c.delay)
		if a.Wait <= 0 {
			a.Wait, c.until = 0, time.Now().Add(c.delay+anAnswer)
		}
	}
	if l.acquires++; l.acquires == 1 {
		l.guard.waits = time.Now().Add(min(l.wait, time.Hour))
	}
	g, err := call(ctx, l, c, func(ctx context.Context, locks paddock.Service) (lock.Grant, error) {
		return l.own(locks.Acquire(ctx, l.askSet(a)))
	})
	if err != nil {
		l.disturbed = l.disturbed || !errors.Is(err, lock.ErrHeld)
		l.guard.failed(tries, err)
	} else {
		l.guard.granted(g)
	}
	return g, err
}

// Renew sends the request.
func (l *remoteService) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	r.Locks = l.locks()
	confirms := time.Now().Equal(l.guard.asked) // the guard confirms a grant before the work begins
	c := l.begin(ctx, "renew", renewing, l.guard.renewal(time.Now()), 0)
	g, err := call(ctx, l, c, func(ctx context.Context, locks paddock.Service) (lock.Grant, error) {
		return l.own(locks.Renew(ctx, r))
	})
	switch useless := err != nil || !g.Until.After(time.Now().Add(l.plan.margin())); {
	case useless && confirms:
		l.guard.failed(false, err)
	case err != nil:
		l.guard.refused()
	default:
		l.guard.granted(g)
	}
	return g, err
}

// Release sends the request.
func (l *remoteService) Release(ctx context.Context, r lock.Release) error {
	r.Locks = l.locks()
	if !l.guard.ended.Swap(true) {
		l.guard.until = time.Now().Add(l.guard.releasing())
	}
	c := l.begin(ctx, "release", working, l.guard.release(time.Now()), aRelease)
	if c.until.After(l.guard.until) {
		c.until = l.guard.until
		c.delay = min(c.delay, time.Until(c.until))
	}
	c.before = cmp.Or(l.guard.refusal, c.before)
	_, err := call(ctx, l, c, func(ctx context.Context, locks paddock.Service) (struct{}, error) {
		return struct{}{}, locks.Release(ctx, r)
	})
	l.guard.letGo(err)
	return err
}
