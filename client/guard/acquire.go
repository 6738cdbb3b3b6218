package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxCallWait bounds the wait of one call, to less than the time-outs of common proxies. A longer wait takes several
	// calls that keep the place in the queue, so that a dead connection is noticed.
	maxCallWait = lock.PlaceRetention
	// answerTimeout is how long an answer may take beyond the wait. It is shorter than
	// lock.PlaceRetention, so that after a lost answer the next call finds its place.
	answerTimeout = lock.PlaceRetention / 2
	// cleanUpTimeout bounds the release after a failed acquire.
	cleanUpTimeout = 2 * time.Second
	// waitTTL bounds the TTL of a lease that is granted to a waiting call. The first renewal asks for Options.TTL. If
	// the process was stopped while it waited, the lock is free after waitTTL.
	waitTTL = 5 * time.Second
)

// Acquire acquires the lock and renews the lease until it is released or lost. If the lock cannot be
// granted until the end of Options.Wait, the error is lock.ErrHeld; lock.ErrFrozen if an operator has frozen it; or
// lock.ErrAlreadyDone if it is closed because its work is done. The context bounds the acquiring,
// not the lease.
//
// While the service is unreachable or overloaded, Acquire repeats the same call for Wait or
// Options.Retry, whichever is longer. If it fails, it releases the lease and the place in the
// queue that it may have. If that release is not answered either, such a lease ends with its
// TTL. With an Options.LeaseID nothing is released, because another process may use that id.
func Acquire(ctx context.Context, locks paddock.Service, name string, o Options) (*Lease, error) {
	return acquire(ctx, locks, lock.One(name), o, newClock())
}

func acquire(ctx context.Context, locks paddock.Service, members []lock.Member, o Options, c clock) (*Lease, error) {
	o, err := o.resolve()
	if err == nil && o.Session == nil && o.SessionID != (lock.SessionID{}) {
		err = lock.Invalid("SessionID", "is of a session that this process does not renew, so the end of the lease "+
			"cannot be known; use Session, or AcquireUnmanaged")
	}
	if err != nil {
		return nil, err
	}
	if o.Task == "" {
		o.Task = newTask(ctx)
	}
	a := newAcquirer(locks, members, o, c)
	if err := a.useFile(); err != nil {
		return nil, err
	}
	g, suspended, err := a.observed(ctx)
	if err != nil {
		return nil, err
	}
	return newLease(ctx, a, g, suspended), nil
}

// AcquireUnmanaged acquires the lock like Acquire, but the caller must renew and release the
// lease. It does not call OnState.
func AcquireUnmanaged(ctx context.Context, locks paddock.Service, name string, o Options) (lock.Grant, error) {
	return AcquireAllUnmanaged(ctx, locks, lock.One(name), o)
}

// deadlineAfter returns now plus d, or zero for Forever.
func deadlineAfter(now time.Time, d time.Duration) time.Time {
	if d == Forever {
		return time.Time{}
	}
	return now.Add(d)
}

// An acquirer repeats an acquire until it succeeds or fails for good.
type acquirer struct {
	locks   paddock.Service
	members []lock.Member
	names   []string // of the members, in order
	opts    Options
	clock   clock

	id           lock.LeaseID
	file         *leaseFile
	holder       string    // of the Options; that of a request may be the one in the file
	needsCleanUp bool      // the service may have a lease or a place under the id
	waitUntil    time.Time // on the clock; zero for no limit
	retryUntil   time.Time // on the clock; zero for no limit

	waits     bool          // the next call waits; otherwise it is a try
	waitTTL   time.Duration // the TTL in calls that wait
	backoff   retryBackoff
	attempted time.Time // when the last attempt began, on the clock
	revoked   int64     // the RevokedLeases of the session before the first attempt
}

func newAcquirer(locks paddock.Service, members []lock.Member, o Options, c clock) *acquirer {
	members, names := withModes(members, o)
	a := &acquirer{
		locks: locks, members: members, names: names, opts: o, clock: c, id: o.LeaseID, backoff: newRetryBackoff(),
		waitUntil: deadlineAfter(c.now(), o.Wait), retryUntil: deadlineAfter(c.now(), max(o.Wait, o.Retry)),
		waitTTL: min(o.TTL, waitTTL), holder: o.Holder,
	}
	// A try with the id of another process would give up the place of that process.
	a.waits = o.SessionID != (lock.SessionID{}) || a.waitTTL == o.TTL || a.idIsShared()
	if a.id == (lock.LeaseID{}) {
		a.id = newID()
	}
	if o.Session != nil {
		a.revoked = o.Session.revoked.Load()
	}
	return a
}

// useFile takes the lease_id of the process before from the file, if there is one, so that the same acquire is repeated.
func (a *acquirer) useFile() (err error) {
	if a.file, err = openLeaseFile(a.opts.LeaseIDFile, a.names); a.file == nil {
		return err
	}
	if a.file.kept.Holder == "" {
		err = a.file.keep(a.names, a.id, a.opts.Holder)
	} else {
		a.id, a.opts.Holder = lock.LeaseID(a.file.kept.ID), a.file.kept.Holder
		a.waits, a.needsCleanUp = true, true // a try would give up the place
	}
	if err != nil {
		a.file.close(true)
	}
	return err
}

func newID() lock.LeaseID { return lock.LeaseID(uuid.New()) }

// run returns a grant that is fresh or was just renewed, and the clock's suspended time when the
// grant was requested.
func (a *acquirer) run(ctx context.Context) (lock.Grant, time.Duration, error) {
	for {
		suspended := a.clock.suspended()
		g, err := a.attempt(ctx)
		if err == nil && !a.isFresh(g, suspended) {
			suspended = a.clock.suspended()
			g, err = a.renew(ctx, suspended)
		}
		if err == nil {
			return g, suspended, nil
		}
		if err = a.waitForRetry(ctx, err); err != nil {
			return g, 0, inOptions(a.cleanUp(ctx, err))
		}
	}
}

// attempt sends one acquire, which waits for maxCallWait at most. The first is a try that asks for the whole TTL, so
// that a free lock costs no renewal.
func (a *acquirer) attempt(ctx context.Context) (lock.Grant, error) {
	req := a.opts.request(a.members, a.id)
	a.attempted = a.clock.now()
	if left := a.timeUntil(a.waitUntil); a.waits && left > 0 {
		req.Wait = min(left, maxCallWait)
		req.KeepPlace = left > req.Wait
		req.TTL = min(req.TTL, a.waitTTL)
	}
	ctx, cancel := context.WithTimeout(ctx, req.Wait+answerTimeout)
	defer cancel()
	g, err := a.locks.Acquire(ctx, req)
	a.needsCleanUp = a.needsCleanUp || err == nil || req.Wait > 0 && !errors.Is(err, lock.ErrInvalid) ||
		errors.Is(err, lock.ErrUnknownOutcome) || errors.Is(err, lock.ErrInternal)
	return g, err
}

// remainingOf returns the remaining time of a grant that was requested when the clock's suspended
// time was suspended.
func (a *acquirer) remainingOf(g lock.Grant, suspended time.Duration) time.Duration {
	return g.Until.Add(suspended).Sub(a.clock.now())
}

// isFresh reports whether a grant has the requested TTL and at least 90 % of it are left. A grant
// is not fresh after a wait or a slow answer, or if an earlier call of this acquirer was granted it.
func (a *acquirer) isFresh(g lock.Grant, suspended time.Duration) bool {
	if a.opts.SessionID != (lock.SessionID{}) {
		return true // its heartbeats are those of the session
	}
	return g.TTL == a.opts.TTL.Truncate(time.Millisecond) && a.remainingOf(g, suspended) >= a.opts.TTL*9/10
}

// renew renews a grant that is not fresh.
func (a *acquirer) renew(ctx context.Context, suspended time.Duration) (lock.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	g, err := a.locks.Renew(ctx, lock.Renew{Locks: a.names, LeaseID: a.id, TTL: a.opts.TTL})
	if err == nil && a.remainingOf(g, suspended) <= a.opts.Margin {
		return g, &lock.Error{Code: lock.ErrUnavailable, Detail: fmt.Sprintf("The service answers too slowly "+
			"for a TTL of %v: only the margin was left of the lease. Use a longer TTL.", a.opts.TTL)}
	}
	return g, err
}

// timeUntil returns the time until the instant: zero if it has passed, Forever if it is zero.
func (a *acquirer) timeUntil(until time.Time) time.Duration {
	if until.IsZero() {
		return Forever
	}
	return max(until.Sub(a.clock.now()), 0)
}

// waitForRetry returns nil when it is time for another attempt, or the error to return.
func (a *acquirer) waitForRetry(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return err
	case a.isNotNow(err) && !a.waits && a.timeUntil(a.waitUntil) > 0:
		a.waits = true
		return nil
	case isCode(err, lock.ErrInvalid) && a.waits && a.waitTTL < a.opts.TTL && fieldOf(err) == "ttl_ms":
		a.waitTTL = a.opts.TTL // the service allows no short TTL
		return nil
	case a.isNotNow(err):
		if a.timeUntil(a.waitUntil) == 0 || !keepsPlace(err) && a.idIsShared() {
			return err
		}
		if keepsPlace(err) {
			a.backoff.Reset()
			return nil
		}
		// The place was not kept, or a delayed call of ours has taken it: join the queue again.
	case errors.Is(err, lock.ErrLeaseLost) && !a.idIsShared():
		// A lease was granted under this id, but its answer was lost, or it is that of the file, and it has expired.
		a.id, a.needsCleanUp, a.opts.Holder = newID(), false, a.holder
		if err := a.file.keep(a.names, a.id, a.holder); err != nil {
			return err
		}
	case !isTransient(err):
		return err
	}
	if a.timeUntil(a.retryUntil) == 0 {
		return err
	}
	if a.opts.OnRetry != nil {
		a.opts.OnRetry(err)
	}
	if a.clock.now().Sub(a.attempted) >= maxBackoff/2 {
		a.backoff.Reset() // the connection was cut during a wait, and the waiter is skipped until it returns
	}
	if !a.backoff.sleep(ctx, err) {
		return err
	}
	return nil
}

// isNotNow reports whether the lock cannot be granted yet: it is held, frozen or closed. Work that needs to be done only
// once is not waited for until the lock opens.
func (a *acquirer) isNotNow(err error) bool {
	return errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrFrozen) || errors.Is(err, lock.ErrAlreadyDone) && !a.opts.isOnce()
}

// fieldOf returns the invalid field of the refused request, or "".
func fieldOf(err error) string {
	var e *lock.Error
	errors.As(err, &e)
	return e.Field
}

// idIsShared reports whether the caller chose the lease_id. Another process may then use it, too,
// and own its lease.
func (a *acquirer) idIsShared() bool { return a.opts.LeaseID != (lock.LeaseID{}) }

// keepsPlace reports whether the service keeps the place of the refused call, so that the next call
// resumes there. It does not if the call did not ask for it, or if another call with the same
// lease_id waits at that place now.
func keepsPlace(err error) bool {
	var e *lock.Error
	return errors.As(err, &e) && e.KeptFor > 0
}

// cleanUp releases the lease or the place that the acquirer may have. It returns the error for the
// caller, which says what remains.
func (a *acquirer) cleanUp(ctx context.Context, err error) error {
	remains, ended := "Nothing is left behind.", true
	defer func() { a.file.close(ended) }()
	if a.file != nil && isCode(err, lock.ErrLeaseIDInUse) {
		ended = false // the lease of the process before is another one: it is not released, and its id is kept
		return &lock.Error{Code: lock.ErrLeaseIDInUse, Cause: err, Detail: "The lease_id file " + a.file.path +
			" is of a lease with another mode, number of permits or on_expiry. Ask for the same, give this work a file of its own, " +
			"or remove the file and wait for the end of that lease."}
	}
	if a.idIsShared() {
		remains = "The lease_id was not released."
	} else if a.needsCleanUp {
		releaseErr := untilAnswered(ctx, func(ctx context.Context) error {
			return a.locks.Release(ctx, lock.Release{Locks: a.names, LeaseID: a.id})
		}, cleanUpTimeout)
		if ended = releaseErr == nil || errors.Is(releaseErr, lock.ErrLeaseLost); !ended {
			remains = "The release was not answered; if a lease was granted, it ends with its TTL."
			err = fmt.Errorf("%w %s", err, remains)
		}
	}
	if ctx.Err() == nil {
		return err
	}
	return &lock.Error{Code: lock.ErrUnavailable, Cause: errors.Join(context.Cause(ctx), err),
		Detail: "The context ended before the lock was granted. " + remains}
}
