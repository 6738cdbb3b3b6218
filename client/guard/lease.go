package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// ErrReleased is the Err of a Lease that was given up, and the cause with which its
// contexts end.
const ErrReleased lock.Code = "lease_released"

// A Lease is kept alive until it is released or lost. Its methods are safe for
// concurrent use.
type Lease struct {
	locks lock.Service
	opts  Options
	clock clock
	stateNotifier

	granted lock.Lease // as it was first granted
	ctx     context.Context
	end     context.CancelCauseFunc // of over
	due     chan struct{}           // a renewal is due
	phase   int64                   // of this process's renewals, in ns

	mu       sync.Mutex
	state    State
	deadline time.Time // on the clock: lost from then on
	renewAt  time.Time // on the clock
	timer    *time.Timer
	lastErr  error // why the last renewal failed, if it did
	failures int   // of renewals in a row
}

// newLease returns a Lease that keeps what was granted. The machine had been suspended
// for that long when the grant was asked for. Values of ctx go along with the
// renewals, its end does not.
func newLease(ctx context.Context, locks lock.Service, o Options, c clock, g lock.Grant, suspended time.Duration) *Lease {
	l := &Lease{
		locks: locks, opts: o, clock: c, stateNotifier: stateNotifier{callback: o.OnState},
		granted: g.Lease, due: make(chan struct{}, 1), phase: processPhase(), state: Held,
	}
	l.ctx, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	l.deadline = g.Until.Add(suspended - o.Margin)
	l.mu.Lock()
	l.timer = time.AfterFunc(maxTimerInterval, l.onTimer) // which waits for mu
	l.mu.Unlock()
	l.applyRenewal(g, suspended)
	go l.renewLoop()
	return l
}

// Name returns the lock's name.
func (l *Lease) Name() string { return l.granted.Name }

// Token returns the fencing token, which goes along with every write that the
// lock guards. It stays the same over renewals.
func (l *Lease) Token() lock.Token { return l.granted.Token }

// Slot returns where a permit or a shared lease sits, from 1 on; 0 for an exclusive lease.
func (l *Lease) Slot() int { return l.granted.Slot }

// Deadline returns the instant, on the clock of package time, from which the lease counts as
// lost unless it is renewed before. It moves with each renewal.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline.Add(-l.clock.suspended())
}

// Done returns a channel that is closed when the lease is lost or released.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil while the lease is held, also when that is at risk. After that it
// returns an error that is lock.ErrLeaseLost, or ErrReleased. It compares the clock
// with the deadline: it is exact, whatever the timers are up to.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	return context.Cause(l.ctx)
}

// State returns how sure the holder may be of the lease.
func (l *Lease) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	return l.state
}

// ended is whether the lease is lost or released. The caller holds mu.
func (l *Lease) ended() bool { return l.state == Lost || l.state == Released }

// check notices that the deadline has come. The caller holds mu.
func (l *Lease) check() {
	if !l.ended() && !l.clock.now().Before(l.deadline) {
		l.finish(Lost, l.deadlineError())
	}
}

// finish ends the lease for those who work under it. The caller holds mu.
func (l *Lease) finish(s State, err error) {
	l.state = s
	l.timer.Stop()
	l.end(err)
	if s == Lost {
		l.notify(s, err)
	}
}

// notify has OnState be told.
func (l *Lease) notify(s State, err error) {
	l.enqueue(stateChange{s, err})
	go l.deliver()
}

// textOnly returns an error that says the same and is nothing else: a loss is no outage,
// though one led to it.
func textOnly(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// deadlineError returns the loss of a lease whose deadline has come. The caller holds mu.
func (l *Lease) deadlineError() error {
	why := "this process was paused, or the machine suspended, for too long"
	switch {
	case l.lastErr != nil:
		why = "its renewals failed until it was too late"
	case l.opts.MaxHold > 0:
		why = "it has reached its MaxHold"
	}
	return &lock.Error{Code: lock.ErrLeaseLost, Token: l.granted.Token, Cause: textOnly(l.lastErr), Detail: fmt.Sprintf(
		"The lease of %s ends in %v or has ended: %s. Stop the work; to go on, acquire again and use the new token.",
		l.granted.Name, l.opts.Margin, why)}
}

const (
	// releaseTimeout is for how long a release is tried.
	releaseTimeout = 5 * time.Second
	// releaseCallTimeout is how long one try of it may take.
	releaseCallTimeout = 2 * time.Second
	// lateReleaseTimeout is how long the only try may take when the lease is over.
	lateReleaseTimeout = 500 * time.Millisecond
)

// Release gives the lease up, whether ctx has ended or not, in five seconds at most; Done is
// closed at once. Stop the work before.
//
// A release that is not answered is sent again until the lease is over: its TTL and grace have
// passed since the last request that renewed it was sent. After that it is sent once, with half a
// second to be answered: an unanswered renewal may have moved the end.
//
// It returns nil if the lease was ours until now, lock.ErrLeaseLost if it had ended
// otherwise: then the work may have overlapped with another's. Any other error says
// that nobody answered; the lease ends with its TTL then. It may be called again, and
// after a loss: that frees the lock for others sooner.
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
		err = releaseOnce(context.WithoutCancel(ctx), l.locks, lock.Release{Name: l.granted.Name, LeaseID: l.granted.ID}, lateReleaseTimeout)
	}
	if first {
		l.notify(Released, err)
	}
	return err
}

// remaining returns how long it is until the lease is over by what its holder knows: the deadline,
// the margin before the end, and the grace. It is not positive when the lease is over. The caller
// holds mu.
func (l *Lease) remaining() time.Duration {
	return l.deadline.Add(l.opts.Margin + l.opts.Grace).Sub(l.clock.now())
}

// release sends a release until it is answered, for that long at most.
func release(ctx context.Context, locks lock.Service, name string, id lock.LeaseID, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	for pauses := newRetryBackoff(); ; {
		err := releaseOnce(ctx, locks, lock.Release{Name: name, LeaseID: id}, releaseCallTimeout)
		if !isTransient(err) || !pauses.sleep(ctx, err) {
			return err
		}
	}
}

func releaseOnce(ctx context.Context, locks lock.Service, r lock.Release, answer time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return locks.Release(ctx, r)
}

// isTransient is whether the same call may succeed later.
func isTransient(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) ||
		errors.Is(err, lock.ErrTooManyWaiters) || errors.Is(err, lock.ErrRateLimited) || errors.Is(err, lock.ErrInternal)
}
