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
	// longestCall is for how long one call waits in the queue. A longer wait is several
	// calls at one place, so that a connection that swallows everything is noticed.
	longestCall = lock.MaxWait / 2
	// answerWithin is how long an answer may take beyond the wait. It is less than
	// lock.KeepPlace, so that after a lost answer the next call comes to the place in time.
	answerWithin = lock.PlaceRetention / 2
	// giveUpWithin is for how long it is tried to leave nothing behind.
	giveUpWithin = 2 * time.Second
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
	g, suspended, err := newSeeker(locks, name, o, c).seek(ctx)
	if err != nil {
		return nil, err
	}
	return hold(ctx, locks, o, c, g, suspended), nil
}

// AcquireUnmanaged takes the lock as Acquire does, and leaves it to the caller to renew and to
// release it. Margin and OnState do not count.
func AcquireUnmanaged(ctx context.Context, locks lock.Service, name string, o Options) (lock.Grant, error) {
	o, err := o.resolve()
	if err != nil {
		return lock.Grant{}, err
	}
	g, _, err := newSeeker(locks, name, o, newClock()).seek(ctx)
	return g, err
}

// after returns the instant d after now, zero for never.
func after(now time.Time, d time.Duration) time.Time {
	if d == Forever {
		return time.Time{}
	}
	return now.Add(d)
}

// A seeker asks for the lock until it has it.
type seeker struct {
	locks lock.Service
	name  string
	opts  Options
	clock clock

	id         lock.LeaseID
	loose      bool      // the service may know of the id: a lease, or a place
	waitUntil  time.Time // on the clock; zero for never
	retryUntil time.Time // on the clock; zero for never
	pauses     pauses
}

func newSeeker(locks lock.Service, name string, o Options, c clock) *seeker {
	s := &seeker{
		locks: locks, name: name, opts: o, clock: c, id: o.LeaseID, pauses: newPauses(),
		waitUntil: after(c.now(), o.Wait), retryUntil: after(c.now(), max(o.Wait, o.Retry)),
	}
	if s.id == (lock.LeaseID{}) {
		s.id = newID()
	}
	return s
}

func newID() lock.LeaseID { return lock.LeaseID(uuid.New()) }

// seek returns a grant of which nearly all is left, or that was renewed just now, and for how
// long the machine had been suspended when it was asked for.
func (s *seeker) seek(ctx context.Context) (lock.Grant, time.Duration, error) {
	for {
		suspended := s.clock.suspended()
		g, err := s.ask(ctx)
		if err == nil && !s.fresh(g, suspended) {
			suspended = s.clock.suspended()
			g, err = s.confirm(ctx, suspended)
		}
		if err == nil {
			return g, suspended, nil
		}
		if err = s.consider(ctx, err); err != nil {
			return g, 0, s.giveUp(ctx, err)
		}
	}
}

// ask asks for the lock, and waits for it as long as one call may.
func (s *seeker) ask(ctx context.Context) (lock.Grant, error) {
	a := s.opts.acquire(s.name, s.id)
	left := s.left(s.waitUntil)
	a.Wait = min(left, longestCall)
	a.KeepPlace = left > a.Wait
	ctx, cancel := context.WithTimeout(ctx, a.Wait+answerWithin)
	defer cancel()
	g, err := s.locks.Acquire(ctx, a)
	s.loose = s.loose || err == nil || a.Wait > 0 || errors.Is(err, lock.ErrUnknownOutcome) || errors.Is(err, lock.ErrInternal)
	return g, err
}

// leftOf returns how much is left of a grant that was asked for when the machine had been
// suspended for that long.
func (s *seeker) leftOf(g lock.Grant, suspended time.Duration) time.Duration {
	return g.Until.Add(suspended).Sub(s.clock.now())
}

// fresh is whether nearly all is left of a grant, and it is as long as it was to be.
// It is not if it was waited for, long on its way, or granted by an earlier call.
func (s *seeker) fresh(g lock.Grant, suspended time.Duration) bool {
	return g.TTL == s.opts.TTL.Truncate(time.Millisecond) && s.leftOf(g, suspended) >= s.opts.TTL*9/10
}

// confirm renews a grant of which too little is left, or nobody knows how much.
func (s *seeker) confirm(ctx context.Context, suspended time.Duration) (lock.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	g, err := s.locks.Renew(ctx, lock.Renew{Name: s.name, LeaseID: s.id, TTL: s.opts.TTL})
	if err == nil && s.leftOf(g, suspended) <= s.opts.Margin {
		return g, &lock.Error{Code: lock.ErrUnavailable, Detail: fmt.Sprintf(
			"The service answers too slowly for a TTL of %v: of the lease no more than the margin was left. Give a longer TTL.", s.opts.TTL)}
	}
	return g, err
}

// left returns how long it is until the instant, never less than zero.
func (s *seeker) left(until time.Time) time.Duration {
	if until.IsZero() {
		return Forever
	}
	return max(until.Sub(s.clock.now()), 0)
}

// consider returns nil when it is time to ask again, or the error with which to give up.
func (s *seeker) consider(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, lock.ErrHeld):
		if s.left(s.waitUntil) == 0 || !keepsPlace(err) && s.shared() {
			return err
		}
		if keepsPlace(err) {
			s.pauses.Reset()
			return nil
		}
		// A call of ours that was late has taken the place, or it was not kept: queue anew.
	case errors.Is(err, lock.ErrLeaseLost) && !s.shared():
		// What was granted under this id has ended before anybody knew of it.
		s.id, s.loose = newID(), false
	case !passing(err):
		return err
	}
	if s.left(s.retryUntil) == 0 {
		return err
	}
	if s.opts.OnRetry != nil {
		s.opts.OnRetry(err)
	}
	if !s.pauses.sleep(ctx, err) {
		return err
	}
	return nil
}

// shared is whether others may know the lease_id: then what it has may be theirs.
func (s *seeker) shared() bool { return s.opts.LeaseID != (lock.LeaseID{}) }

// keepsPlace is whether the next call finds the place that the one refused had. It does
// not when the wait is over, nor when another call with the lease_id waits there now.
func keepsPlace(err error) bool {
	var e *lock.Error
	return errors.As(err, &e) && e.KeptFor > 0
}

// giveUp makes sure that nothing is left behind, and returns the error in words that
// fit.
func (s *seeker) giveUp(ctx context.Context, err error) error {
	behind := "Nothing is left behind."
	if s.shared() {
		behind = "What the lease_id has is left as it is."
	} else if s.loose {
		left := release(ctx, s.locks, s.name, s.id, giveUpWithin)
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
