package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// ErrReleased is returned by Err of a Lease that was released. It is also the cause with which
// the Lease's contexts end.
const ErrReleased lock.Code = "lease_released"

// A Lease is renewed in the background until it is released or lost. Its methods are safe for
// concurrent use.
type Lease struct {
	locks lock.Service
	opts  Options
	clock clock
	stateNotifier

	granted lock.Lease // as Acquire got it; renewals do not update it
	ctx     context.Context
	end     context.CancelCauseFunc // ends ctx
	due     chan struct{}           // signals that a renewal is due
	phase   int64                   // offset of this process's renewals, in ns

	acquiredAt time.Time // on the clock

	mu       sync.Mutex
	state    State
	deadline time.Time // on the clock; the lease is lost from then on
	renewAt  time.Time // on the clock
	timer    *time.Timer
	lastErr  error         // of the last renewal, nil if it succeeded
	failures int           // of consecutive renewals
	timeout  time.Duration // of the next renewal
}

// newLease returns a Lease that renews the grant. suspended is the clock's suspended time when the
// grant was requested. Renewals use the values of ctx but do not end with it.
func newLease(
	ctx context.Context, locks lock.Service, o Options, c clock, g lock.Grant, suspended time.Duration,
) *Lease {
	l := &Lease{
		locks: locks, opts: o, clock: c, stateNotifier: stateNotifier{callback: o.OnState},
		granted: g.Lease, due: make(chan struct{}, 1), phase: processPhase(), state: Held,
	}
	l.ctx, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	l.deadline = g.Until.Add(suspended - o.Margin)
	l.acquiredAt = l.clock.now()
	l.mu.Lock()
	l.timer = time.AfterFunc(maxTimerInterval, l.onTimer) // onTimer waits for mu
	l.applyRenewal(g, suspended)
	l.mu.Unlock()
	go l.renewLoop()
	return l
}

// Name returns the lock's name.
func (l *Lease) Name() string { return l.granted.Name }

// Token returns the fencing token, to be sent with every write that the lock guards. Renewals do
// not change it.
func (l *Lease) Token() lock.Token { return l.granted.Token }

// Slot returns the slot of a permit or a shared lease, starting at 1; 0 for an exclusive lease.
func (l *Lease) Slot() int { return l.granted.Slot }

// Deadline returns the time, on the clock of package time, at which the lease counts as lost unless
// it is renewed before. Each renewal moves it.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline.Add(-l.clock.suspended())
}

// Done returns a channel that is closed when the lease is lost or released.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil while the lease is held or at risk. Afterwards it returns an error that is
// lock.ErrLeaseLost, or ErrReleased. It compares the clock with the deadline, so it does not depend
// on timers.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enforceDeadline()
	return context.Cause(l.ctx)
}

// State returns the state of the lease.
func (l *Lease) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enforceDeadline()
	return l.state
}

// ended reports whether the lease is lost or released. The caller holds mu.
func (l *Lease) ended() bool { return l.state == Lost || l.state == Released }

// enforceDeadline ends the lease if the deadline has passed. The caller holds mu.
func (l *Lease) enforceDeadline() {
	if !l.ended() && !l.clock.now().Before(l.deadline) {
		l.finish(Lost, l.deadlineError())
	}
}

// finish ends the lease and its contexts. The caller holds mu.
func (l *Lease) finish(s State, err error) {
	l.state = s
	l.timer.Stop()
	l.end(err)
	if s == Lost {
		l.notify(s, err)
		l.opts.Observer.Lost(l.granted.Name, err)
	}
}

// notify calls OnState in another goroutine.
func (l *Lease) notify(s State, err error) {
	l.enqueue(stateChange{s, err})
	go l.deliver()
}

// textOnly returns an error with the text of err that does not wrap it: a loss must not match
// lock.ErrUnavailable because an outage led to it.
func textOnly(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// deadlineError returns the error of a lease that reached its deadline. The caller holds mu.
func (l *Lease) deadlineError() error {
	why := "the process was paused or the machine was suspended for too long"
	switch {
	case l.lastErr != nil:
		why = "its renewals failed"
	case l.opts.MaxHold > 0:
		why = "it reached its MaxHold"
	}
	return &lock.Error{Code: lock.ErrLeaseLost, Token: l.granted.Token, Cause: textOnly(l.lastErr), Detail: fmt.Sprintf(
		"The lease of %s ends in %v or has ended: %s. "+
			"Stop the work. To continue, acquire the lock again and use the new token.",
		l.granted.Name, l.opts.Margin, why)}
}

const (
	// releaseTimeout bounds a release with its retries.
	releaseTimeout = 5 * time.Second
	// releaseCallTimeout bounds each attempt.
	releaseCallTimeout = 2 * time.Second
	// lateReleaseTimeout bounds the only attempt after the end of the lease.
	lateReleaseTimeout = 500 * time.Millisecond
)

// Release releases the lease, even if ctx has ended, and takes five seconds at most. It closes Done
// immediately. Stop the work before calling it.
//
// An unanswered release is repeated until the lease has ended, that is, until its TTL and grace have
// passed since the last successful renewal was sent. If the lease has ended already, the release is
// still sent, because an unanswered renewal may have extended the lease: once, for up to half a second.
//
// Release returns nil if the lease was held until now, and lock.ErrLeaseLost if it had ended before:
// the work may then have overlapped with another holder's. Any other error means that the release
// was not answered; the lease ends with its TTL. Release may be called again. After a loss, call it
// to free the lock sooner.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	first := !l.ended()
	if first {
		l.finish(Released, ErrReleased)
	}
	left := l.remaining()
	l.mu.Unlock()
	var err error
	if left > 0 {
		err = release(ctx, l.locks, l.granted.Name, l.granted.ID, min(left, releaseTimeout))
	} else {
		r := lock.Release{Name: l.granted.Name, LeaseID: l.granted.ID}
		err = releaseOnce(context.WithoutCancel(ctx), l.locks, r, lateReleaseTimeout)
	}
	if first {
		l.notify(Released, err)
		l.opts.Observer.Released(l.granted.Name, l.clock.now().Sub(l.acquiredAt), err)
	}
	return err
}

// remaining returns the time until the lease and its grace end, as far as this process knows. It is
// zero or negative afterwards. The caller holds mu.
func (l *Lease) remaining() time.Duration {
	return l.deadline.Add(l.opts.Margin + l.opts.Grace).Sub(l.clock.now())
}

// release repeats a release until it is answered or the timeout has passed.
func release(ctx context.Context, locks lock.Service, name string, id lock.LeaseID, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for pauses := newRetryBackoff(); ; {
		err := releaseOnce(ctx, locks, lock.Release{Name: name, LeaseID: id}, releaseCallTimeout)
		if !isTransient(err) || !pauses.sleep(ctx, err) {
			return err
		}
	}
}

func releaseOnce(ctx context.Context, locks lock.Service, r lock.Release, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return locks.Release(ctx, r)
}
