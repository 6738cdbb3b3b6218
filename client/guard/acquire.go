package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxCallWait is for how long one call waits in the queue. A longer wait is several
	// calls at one place, so that a connection that swallows everything is noticed.
	maxCallWait = lock.MaxWait / 2
	// answerTimeout is how long an answer may take beyond the wait. It is less than
	// lock.KeepPlace, so that after a lost answer the next call comes to the place in time.
	answerTimeout = lock.PlaceRetention / 2
	// cleanUpTimeout is for how long it is tried to leave nothing behind.
	cleanUpTimeout = 2 * time.Second
)

// Acquire takes the lock and keeps it, or is refused with lock.ErrHeld once
// Options.Wait is over. The context bounds the acquiring only: the lease is kept
// until it is released or lost.
//
// While the service cannot be reached, or says to come later, the same acquire is
// sent again for Wait or Options.Retry, whichever is longer. An error leaves nothing
// behind, neither lease nor place in the queue, as far as the service could be told;
// what it could not be told ends with the TTL. What an Options.LeaseID has may be
// another process's, and is left as it is.
func Acquire(ctx context.Context, locks lock.Service, name string, o Options) (*Lease, error) {
	return acquire(ctx, locks, name, o, newClock())
}

func acquire(ctx context.Context, locks lock.Service, name string, o Options, c clock) (*Lease, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	g, suspended, err := newAcquirer(locks, name, o, c).run(ctx)
	if err != nil {
		return nil, err
	}
	return newLease(ctx, locks, o, c, g, suspended), nil
}

// AcquireUnmanaged takes the lock as Acquire does, and leaves it to the caller to renew and to
// release it. Margin and OnState do not count.
func AcquireUnmanaged(ctx context.Context, locks lock.Service, name string, o Options) (lock.Grant, error) {
	o, err := o.resolve()
	if err != nil {
		return lock.Grant{}, err
	}
	g, _, err := newAcquirer(locks, name, o, newClock()).run(ctx)
	return g, err
}

// deadlineAfter returns the instant d deadlineAfter now, zero for never.
func deadlineAfter(now time.Time, d time.Duration) time.Time {
	if d == Forever {
		return time.Time{}
	}
	return now.Add(d)
}

// A acquirer asks for the lock until it has it.
type acquirer struct {
	locks lock.Service
	name  string
	opts  Options
	clock clock

	id         lock.LeaseID
	mayExist   bool      // the service may know of the id: a lease, or a place
	waitUntil  time.Time // on the clock; zero for never
	retryUntil time.Time // on the clock; zero for never
	backoff    retryBackoff
}

func newAcquirer(locks lock.Service, name string, o Options, c clock) *acquirer {
	s := &acquirer{
		locks: locks, name: name, opts: o, clock: c, id: o.LeaseID, backoff: newRetryBackoff(),
		waitUntil: deadlineAfter(c.now(), o.Wait), retryUntil: deadlineAfter(c.now(), max(o.Wait, o.Retry)),
	}
	if s.id == (lock.LeaseID{}) {
		s.id = newID()
	}
	return s
}

func newID() lock.LeaseID { return lock.LeaseID(uuid.New()) }

// run returns a grant of which nearly all is left, or that was renewed just now, and for how
// long the machine had been suspended when it was asked for.
func (s *acquirer) run(ctx context.Context) (lock.Grant, time.Duration, error) {
	for {
		suspended := s.clock.suspended()
		g, err := s.attempt(ctx)
		if err == nil && !s.isFresh(g, suspended) {
			suspended = s.clock.suspended()
			g, err = s.renew(ctx, suspended)
		}
		if err == nil {
			return g, suspended, nil
		}
		if err = s.waitForRetry(ctx, err); err != nil {
			return g, 0, s.cleanUp(ctx, err)
		}
	}
}

// attempt asks for the lock, and waits for it as long as one call may.
func (s *acquirer) attempt(ctx context.Context) (lock.Grant, error) {
	a := s.opts.acquire(s.name, s.id)
	left := s.remaining(s.waitUntil)
	a.Wait = min(left, maxCallWait)
	a.KeepPlace = left > a.Wait
	ctx, cancel := context.WithTimeout(ctx, a.Wait+answerTimeout)
	defer cancel()
	g, err := s.locks.Acquire(ctx, a)
	s.mayExist = s.mayExist || err == nil || a.Wait > 0 || errors.Is(err, lock.ErrUnknownOutcome) || errors.Is(err, lock.ErrInternal)
	return g, err
}

// remainingOf returns how much is left of a grant that was asked for when the machine had been
// suspended for that long.
func (s *acquirer) remainingOf(g lock.Grant, suspended time.Duration) time.Duration {
	return g.Until.Add(suspended).Sub(s.clock.now())
}

// isFresh is whether nearly all is left of a grant, and it is as long as it was to be.
// It is not if it was waited for, long on its way, or granted by an earlier call.
func (s *acquirer) isFresh(g lock.Grant, suspended time.Duration) bool {
	return g.TTL == s.opts.TTL.Truncate(time.Millisecond) && s.remainingOf(g, suspended) >= s.opts.TTL*9/10
}

// renew renews a grant of which too little is left, or nobody knows how much.
func (s *acquirer) renew(ctx context.Context, suspended time.Duration) (lock.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	g, err := s.locks.Renew(ctx, lock.Renew{Name: s.name, LeaseID: s.id, TTL: s.opts.TTL})
	if err == nil && s.remainingOf(g, suspended) <= s.opts.Margin {
		return g, &lock.Error{Code: lock.ErrUnavailable, Detail: fmt.Sprintf(
			"The service answers too slowly for a TTL of %v: of the lease no more than the margin was left. Give a longer TTL.", s.opts.TTL)}
	}
	return g, err
}

// remaining returns how long it is until the instant, never less than zero.
func (s *acquirer) remaining(until time.Time) time.Duration {
	if until.IsZero() {
		return Forever
	}
	return max(until.Sub(s.clock.now()), 0)
}

// waitForRetry returns nil when it is time to ask again, or the error with which to give up.
func (s *acquirer) waitForRetry(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, lock.ErrHeld):
		if s.remaining(s.waitUntil) == 0 || !keepsPlace(err) && s.idIsShared() {
			return err
		}
		if keepsPlace(err) {
			s.backoff.Reset()
			return nil
		}
		// A call of ours that was late has taken the place, or it was not kept: queue anew.
	case errors.Is(err, lock.ErrLeaseLost) && !s.idIsShared():
		// What was granted under this id has ended before anybody knew of it.
		s.id, s.mayExist = newID(), false
	case !isTransient(err):
		return err
	}
	if s.remaining(s.retryUntil) == 0 {
		return err
	}
	if s.opts.OnRetry != nil {
		s.opts.OnRetry(err)
	}
	if !s.backoff.sleep(ctx, err) {
		return err
	}
	return nil
}

// idIsShared is whether others may know the lease_id: then what it has may be theirs.
func (s *acquirer) idIsShared() bool { return s.opts.LeaseID != (lock.LeaseID{}) }

// keepsPlace is whether the next call finds the place that the one refused had. It does
// not when the wait is over, nor when another call with the lease_id waits there now.
func keepsPlace(err error) bool {
	var e *lock.Error
	return errors.As(err, &e) && e.KeptFor > 0
}

// cleanUp makes sure that nothing is left behind, and returns the error in words that
// fit.
func (s *acquirer) cleanUp(ctx context.Context, err error) error {
	behind := "Nothing is left behind."
	if s.idIsShared() {
		behind = "What the lease_id has is left as it is."
	} else if s.mayExist {
		left := release(ctx, s.locks, s.name, s.id, cleanUpTimeout)
		if left != nil && !errors.Is(left, lock.ErrLeaseLost) {
			behind = "Nobody answers as to whether a lease is left behind; such a lease ends with its TTL."
			err = fmt.Errorf("%w %s", err, behind)
		}
	}
	if ctx.Err() == nil {
		return err
	}
	return &lock.Error{Code: lock.ErrUnavailable, Cause: errors.Join(context.Cause(ctx), err),
		Detail: "The context ended before the lock was granted. " + behind}
}
