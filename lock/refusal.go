package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file has what the rules say when they refuse a call. A refusal is worded last: it describes the locks as the
// decision leaves them, and changes nothing.

// retrySoon is the RetryAfter of a refusal if only waiters are in the way: when they are served is not known.
const retrySoon = time.Second

// orWait is what a refused call can do instead of retrying. An item of a batch, which cannot wait, is refused in the
// same words.
const orWait = "or wait with wait_ms (not in a batch)"

// errHeld returns the refusal of a request for m, which cannot be granted now. The zero Mode conflicts with all leases.
func errHeld(s *lockState, m Member) *Error {
	leases := s.record.conflicting(m.Mode)
	if s.isDone() {
		if !m.Mode.IsIntention() {
			return errDone(s)
		}
		return errDoneAbove(s)
	}
	if f := s.freezeOf(m.Mode); f != nil {
		return errFrozen(s, f)
	}
	if s.paused() && len(leases) == 0 {
		return errPaused(s)
	}
	e := &Error{Code: ErrHeld, Ahead: s.attachedWaiters()}
	if s.record.isFull(m.Mode) {
		return errFull(s, e)
	}
	if len(leases) == 0 {
		e.RetryAfter, e.Detail = retrySoon, "The lock cannot be granted right now. Retry."
		switch {
		case e.Ahead > 0 && m.Mode.IsIntention():
			e.Detail = fmt.Sprintf("%s, which is above, is waited for (%d waiting), and the locks below it with it. "+
				"Retry later, "+orWait+".", s.record.Name, e.Ahead)
		case e.Ahead > 0:
			e.Detail = fmt.Sprintf("The lock is free, but reserved for a waiter that needs other locks, too (%d waiting). "+
				"Retry later, "+orWait+".", e.Ahead)
		}
		return e
	}
	first, held := Record{Leases: leases}.firstUnrevoked()
	if !held {
		first = leases[0]
	}
	e.Holder, e.Newest, e.RetryAfter = first.Holder, s.record.Token, untilFirstEnd(leases, s.now)
	if !held {
		e.Detail = fmt.Sprintf("The lease of %q was revoked; its grace ends in %s. "+
			"Retry then, "+orWait+".", first.Holder, InWords(e.RetryAfter))
		return e
	}
	what := "the lock"
	switch {
	case first.Mode.IsIntention():
		what = "the lock " + first.heldName(s.record.Name) + " below"
	case m.Mode.IsIntention():
		what = "the lock " + s.record.Name + " above"
	case m.Mode == Permit && first.Mode == Permit:
		what, e.RetryAfter = s.permitsOut(m), untilFreed(leases, m.Capacity-m.permits(), s.now)
	}
	holders := fmt.Sprintf("%q holds %s", first.Holder, what)
	if n := len(leases) - 1; n > 0 {
		holders = fmt.Sprintf("%q holds %s and %d more hold conflicting leases", first.Holder, what, n)
		if !m.Mode.IsIntention() && !first.Mode.IsIntention() {
			holders = fmt.Sprintf("%q and %d more hold %s", first.Holder, n, what)
		}
	}
	if e.Ahead > 0 {
		holders += fmt.Sprintf(", %d waiting", e.Ahead)
	}
	if e.Suspect = first.IsSuspect(s.now); e.Suspect {
		e.Detail = fmt.Sprintf("%s and has not renewed it in time, so it is suspect: no other client is granted it until the "+
			"holder renews or releases it, or an operator has looked at the work and revokes the lease. Retry later, "+orWait+".", holders)
		return e
	}
	end := "a lease ends in %s unless it is renewed"
	if m.permits() > 1 {
		end = "enough leases end in %s unless they are renewed"
	}
	e.Detail = fmt.Sprintf("%s. Retry later, "+orWait+"; "+end+".", holders, InWords(e.RetryAfter))
	return e
}

// permitsOut says how many permits are held, and how many more m asks for.
func (s *lockState) permitsOut(m Member) string {
	text := fmt.Sprintf("%d of %d permits", s.record.permits(), s.record.Capacity)
	if m.permits() > 1 {
		text += fmt.Sprintf(", %d asked for", m.permits())
	}
	return text
}

// errFull completes the refusal e of a request for a lock that has as many leases as it can have.
func errFull(s *lockState, e *Error) *Error {
	e.Newest, e.RetryAfter = s.record.Token, untilFirstEnd(s.record.Leases, s.now)
	e.Detail = fmt.Sprintf("%s has %d leases, those of the locks below it included; that is the most that a lock can have. "+
		"Retry later, "+orWait+"; a lease ends in %s unless it is renewed.",
		s.record.Name, len(s.record.Leases), InWords(e.RetryAfter))
	return e
}

// untilFirstEnd returns how long it is until the first of the leases ends, unless it is renewed. It is positive: the
// end of a lease may be due.
func untilFirstEnd(leases []Lease, now time.Time) time.Duration {
	end := leases[0].mayEndAt(now)
	for i := range leases {
		if at := leases[i].mayEndAt(now); at.Before(end) {
			end = at
		}
	}
	return max(end.Sub(now), 1)
}

// retrySuspect is after how long to retry for a suspect lock, which people look at.
const retrySuspect = time.Minute

// mayEndAt returns when the lease ends unless it is renewed, or a guess for a lease that is suspect.
func (l *Lease) mayEndAt(now time.Time) time.Time {
	switch {
	case l.IsSuspect(now):
		return now.Add(retrySuspect)
	case l.stays():
		return l.ExpiresAt.Add(l.Grace)
	}
	return l.EndsAt()
}

// errMayBeLost returns the refusal of a lease that stays where a fail-over may forget it.
func errMayBeLost() error {
	return Invalid("on_expiry", "is hold, but a fail-over of this database may forget the lease, and then the lock is granted "+
		"to another client. Replicate synchronously and run: paddock epoch quorum on. Or accept the loss with serve --allow-hold. "+
		"Or leave on_expiry out")
}

// untilFreed returns how long it is until so many of the leases have ended, unless they are renewed, that those left have
// at most spare permits: until the first end at least.
func untilFreed(leases []Lease, spare int, now time.Time) time.Duration {
	ends := slices.SortedFunc(slices.Values(leases), func(a, b Lease) int { return a.mayEndAt(now).Compare(b.mayEndAt(now)) })
	out, at := (&Record{Leases: leases}).permits(), now
	for i := range ends {
		at = ends[i].mayEndAt(now)
		if out -= ends[i].Permits(); out <= spare {
			break
		}
	}
	return max(at.Sub(now), 1)
}

// errPaused returns the refusal of a request while grants are paused.
func errPaused(s *lockState) *Error {
	left := s.view.GrantsPausedUntil.Sub(s.view.Now)
	return &Error{Code: ErrUnavailable, RetryAfter: left, Ahead: s.attachedWaiters(), Detail: fmt.Sprintf(
		"The database may have lost leases whose holders still work: it was failed over, restored or created again, "+
			"or an operator began an epoch. "+
			"New grants are paused for %s; existing leases stay valid. Retry then, "+orWait+".",
		InWords(left))}
}

// errDone returns the refusal of a request for a lock that a Release has closed.
func errDone(s *lockState) *Error {
	c := s.record.Closed
	left := max(c.Until.Sub(s.view.Now), 1)
	return &Error{Code: ErrAlreadyDone, Holder: c.Holder, DoneAt: c.At, RetryAfter: left, Newest: s.record.Token, Ahead: s.attachedWaiters(),
		Detail: fmt.Sprintf("The work of %s is done: %q released it at %s and closed it. It opens in %s. Retry then, "+orWait+".",
			s.record.Name, c.Holder, c.At.Format(time.RFC3339), InWords(left))}
}

// errDoneAbove is errDone for a request for a lock below.
func errDoneAbove(s *lockState) *Error {
	e := errDone(s)
	e.Code, e.Detail = ErrHeld, fmt.Sprintf("%s, which is above, is closed, and the locks below it with it. It opens in %s. Retry then, "+
		orWait+".", s.record.Name, InWords(e.RetryAfter))
	e.DoneAt = time.Time{}
	return e
}

// retryFrozen is the RetryAfter of a refusal by a freeze without an end.
const retryFrozen = 10 * time.Second

// errFrozen returns the refusal of a request for a lock that an operator has frozen.
func errFrozen(s *lockState, f *Freeze) *Error {
	e := &Error{Code: ErrFrozen, Reason: f.Reason, FrozenBy: f.By, FrozenUntil: f.Until, RetryAfter: retryFrozen, Ahead: s.attachedWaiters()}
	who, when := "An operator", "an operator ends that"
	if f.By != "" {
		who += fmt.Sprintf(" (key %s)", f.By)
	}
	if !f.Until.IsZero() {
		e.RetryAfter = max(f.Until.Sub(s.view.Now), 1)
		when = fmt.Sprintf("that ends in %s", InWords(e.RetryAfter))
	}
	e.Detail = fmt.Sprintf("%s has frozen %s (%s). Nothing new is granted there until %s; existing leases stay valid. "+
		"Retry then, "+orWait+".", who, f.Scope, strings.TrimSuffix(f.Reason, "."), when)
	return e
}

// errNotGranted returns the refusal of a call with the ID that cannot be granted the locks, its members, now.
func errNotGranted(locks []*lockState, members []Member, id LeaseID) *Error {
	if len(locks) == 1 && !slices.ContainsFunc(locks[0].record.Leases, func(l Lease) bool { return l.Mode.IsIntention() }) {
		return errHeld(locks[0], members[0])
	}
	asked := 0
	for _, m := range members {
		if !m.Mode.IsIntention() {
			asked++
		}
	}
	out := &Error{Code: ErrHeld}
	var texts []string
	for i, s := range locks {
		if s.fits(members[i], id) {
			continue
		}
		e := errHeld(s, members[i])
		switch e.Code {
		case ErrHeld:
		case ErrAlreadyDone, ErrFrozen:
			e.Blocked = []BlockedLock{{Name: s.record.Name, Holder: e.Holder, RetryAfter: e.RetryAfter, Ahead: e.Ahead}}
			return e
		default:
			return e
		}
		b := BlockedLock{Name: nameInTheWay(s.record, members[i].Mode), Holder: e.Holder, RetryAfter: e.RetryAfter, Suspect: e.Suspect, Ahead: e.Ahead}
		if asked == 1 { // in a tree: one lock and its ancestors
			e.Blocked = []BlockedLock{b}
			return e
		}
		out.Blocked = append(out.Blocked, b)
		out.Holder, out.Newest = cmp.Or(out.Holder, e.Holder), max(out.Newest, e.Newest)
		out.RetryAfter, out.Ahead, out.Suspect = max(out.RetryAfter, e.RetryAfter), max(out.Ahead, e.Ahead), out.Suspect || e.Suspect
		texts = append(texts, b.text(s.record.isFull(members[i].Mode)))
	}
	if len(texts) == 0 {
		out.RetryAfter, out.Detail = retrySoon, "The locks cannot be granted right now. Retry."
		return out
	}
	out.Detail = fmt.Sprintf("Not all of the %d locks can be granted, so none is: %s. Retry later, or wait with wait_ms.",
		asked, strings.Join(texts, "; "))
	return out
}

// text says in an error message what blocks the lock. full is [Record.isFull].
func (b BlockedLock) text(full bool) string {
	switch {
	case full:
		return fmt.Sprintf("%s has %d leases, the most that a lock can have", b.Name, MaxHolders)
	case b.Holder == "":
		return fmt.Sprintf("%s has %d waiting", b.Name, b.Ahead)
	}
	text := fmt.Sprintf("%q holds %s", b.Holder, b.Name)
	if b.Suspect {
		text += ", which is suspect until an operator has looked at the work"
	}
	if b.Ahead > 0 {
		text += fmt.Sprintf(", %d waiting", b.Ahead)
	}
	return text
}

// nameInTheWay returns the lock of a lease that keeps one of the mode from being granted: this lock, or one below it.
func nameInTheWay(r Record, m Mode) string {
	if l, ok := (Record{Leases: r.conflicting(m)}).firstUnrevoked(); ok && l.Mode.IsIntention() {
		return l.heldName(r.Name)
	}
	return r.Name
}

// errQueueFull returns the refusal of a call that must wait for the lock, which has as many waiters as it can have.
func errQueueFull(locks []*lockState, full *lockState, waiters int) *Error {
	what := "this lock"
	if len(locks) > 1 {
		what = "the lock " + strconv.Quote(full.record.Name)
	}
	e := errHeld(full, Member{})
	return &Error{Code: ErrTooManyWaiters, RetryAfter: e.RetryAfter, Ahead: e.Ahead,
		Detail: fmt.Sprintf("The queue of %s is full: %d calls wait. Retry later.", what, waiters)}
}

// errLimitReached returns the refusal of a call that must wait, while the service has as many waiting calls as it can
// have. held is the refusal of the call if it does not wait.
func errLimitReached(held *Error) *Error {
	return &Error{Code: ErrTooManyWaiters, RetryAfter: held.RetryAfter,
		Detail: "The limit on waiting calls is reached and this lock is not free. Retry later."}
}

// errWaitEnded returns the refusal of a call whose wait has ended. kept is how long its places are kept, zero if they
// are not.
func errWaitEnded(locks []*lockState, members []Member, id LeaseID, kept time.Duration) *Error {
	e := errNotGranted(locks, members, id)
	if e.KeptFor = kept; kept > 0 {
		e.Detail += fmt.Sprintf(" Your place is kept for %s; retry with the same lease_id.", InWords(kept))
	}
	return e
}

// errReplaced returns the refusal of a call whose place another call has taken or released.
func errReplaced(s *lockState) *Error {
	e := errHeld(s, Member{})
	e.Detail = "A later call with the same lease_id took over or released this call's place. " + e.Detail
	return e
}

// errRecordGone returns the refusal of a call whose place is gone with the record of the lock.
func errRecordGone(name string) *Error {
	return &Error{Code: ErrHeld, RetryAfter: retrySoon, Detail: fmt.Sprintf("The row of %s in paddock.records is gone, and this "+
		"call's place in the queue with it: it was deleted by hand. Acquire again, to join at the end of the queue.", name)}
}

// errKeyFull returns the refusal of an acquire of an API key that can have no lease more.
func errKeyFull(r *Rule) *Error {
	return &Error{Code: ErrTooManyLeases, Detail: fmt.Sprintf("The API key has reached its limit of %d leases by the rule for %s. "+
		"Release some, and try again.", r.MaxLeases, r.Scope)}
}

// errNoCapacity returns the refusal of a request for permits of m, without their number, which no rule has.
func errNoCapacity(locks []Member, m Member) error {
	field := "capacity"
	if i := slices.Index(locks, m); len(locks) > 1 {
		field = fmt.Sprintf("locks/%d/capacity", i)
	}
	return Invalid(field, "is missing; give 1 to %d, the number of permits", MaxHolders)
}

// errSessionFull returns the refusal of an acquire in a session that can have no lease or place more.
func errSessionFull() *Error {
	return &Error{Code: ErrTooManyLeases, Detail: "The session has reached its limit of leases and places. " +
		"Release some, or use another session."}
}

// errInUse returns the refusal of an acquire with the lease_id of another request.
func errInUse() error {
	return &Error{Code: ErrLeaseIDInUse,
		Detail: "The lease_id belongs to a lease or a waiter with another holder, mode, capacity, number of permits, on_expiry, session or set of locks. " +
			"Use a new random UUID for each acquire."}
}

// errCapacity returns the refusal of a request for permits of one of the locks, with another capacity than that in use.
func errCapacity(locks []*lockState, m Member, inUse int) *Error {
	what := "The lock"
	if len(locks) > 1 {
		what = fmt.Sprintf("The lock %q", m.Name)
	}
	return &Error{Code: ErrCapacityMismatch, Capacity: inUse, Detail: fmt.Sprintf(
		"%s has capacity %d, not %d, while any permit is held or waited for. "+
			"Use that capacity, or wait until all permits are released.", what, inUse, m.Capacity)}
}

// errOtherSet returns the refusal of a call that names locks, asked, of a lease that was acquired for others.
func errOtherSet(acquired, asked []string) error {
	switch {
	case len(asked) == 1 && len(acquired) == 1:
		return &Error{Code: ErrLeaseInSet, Set: acquired, Detail: fmt.Sprintf("The lease is that of %s, which is below this lock. "+
			"Renew or release it by that name.", acquired[0])}
	case len(asked) == 1:
		return &Error{Code: ErrLeaseInSet, Set: acquired, Detail: fmt.Sprintf("The lease is one of %d that were acquired together. "+
			"Renew or release them together, by POST /v1/renew or /v1/release with names: %s.", len(acquired), strings.Join(acquired, ", "))}
	case len(acquired) == 1:
		return Invalid("names", "include a lock that was acquired alone; give only locks that were acquired together")
	}
	return Invalid("names", "must be exactly the locks that were acquired together: %s", strings.Join(acquired, ", "))
}

// errLost returns the refusal of a call with a lease that one of the locks does not have. It says how the lease has
// ended if one of them knows.
func errLost(locks []*lockState, id LeaseID) error {
	for _, s := range locks {
		if e, known := s.endOf(id); known {
			lost := errEnded(e)
			if e.Kind == Revoked {
				lost.GraceLeft = graceLeft(locks, id)
			}
			return lost
		}
	}
	return &Error{Code: ErrLeaseLost, Detail: "This lock has no lease with that lease_id, " +
		"and no record of its end. Stop the work; check name and lease_id, or acquire with a new lease_id."}
}

// graceLeft returns how long the grace of a revoked lease still keeps others from all of its locks.
func graceLeft(locks []*lockState, id LeaseID) time.Duration {
	left := MaxGrace
	for _, s := range locks {
		i := s.index(id)
		if i < 0 {
			return 0
		}
		if l := s.record.Leases[i]; l.Revoked() {
			left = min(left, l.EndsAt().Sub(s.now))
		}
	}
	return left
}

// errEnded returns the refusal of a call with the lease that the event has ended.
func errEnded(e Event) *Error {
	what := map[Kind]string{Released: "was released", Expired: "expired", Revoked: "has ended"}[e.Kind]
	return &Error{
		Code: ErrLeaseLost, Ended: e.Kind, EndedAt: e.At, Reason: e.Reason, RevokedBy: e.RevokedBy(), Token: e.Token,
		Detail: "The lease " + what + ". " + revocation(e.Kind, e.Reason, e.RevokedBy()) +
			"Stop the work; to continue, acquire with a new lease_id and use the new token.",
	}
}

// errHeldTooLong returns the refusal to renew the lease, which has expired because it has reached its MaxHold.
func errHeldTooLong(l *Lease) error {
	return &Error{Code: ErrLeaseLost, Ended: Expired, EndedAt: l.OwnExpiry(), Token: l.Token,
		Detail: "The lease has reached its max_hold_ms and cannot be renewed. " +
			"Stop the work; to continue, acquire with a new lease_id."}
}

// errTokenMismatch returns the refusal of a revocation that selects no lease of the lock. Its text has no token but the
// one that was given: the others may be provisional.
func errTokenMismatch(lock Record, given Token) error {
	now := "no token holds it now"
	if first, ok := lock.firstUnrevoked(); ok && first.Mode.IsIntention() {
		now = fmt.Sprintf("%q holds %s below it", first.Holder, first.heldName(lock.Name))
	} else if ok {
		now = fmt.Sprintf("%q holds it now with another token", first.Holder)
	}
	what := fmt.Sprintf("Token %d does not hold the lock; %s", given, now)
	if slices.ContainsFunc(lock.Leases, func(l Lease) bool { return l.hasToken(given) && !l.Revoked() }) {
		what = fmt.Sprintf("The selected lease has ended; other leases hold the lock with token %d", given)
	}
	return &Error{Code: ErrTokenMismatch, Token: given, Newest: lock.Token,
		Detail: what + ". Read the lock again before you revoke."}
}

// DeadlockError returns the refusal of the first call of the circle.
func DeadlockError(cycle []DeadlockStep) *Error {
	e := &Error{Code: ErrDeadlock, Cycle: cycle}
	if len(cycle) == 1 && !cycle[0].Ahead {
		e.Detail = fmt.Sprintf("The call would wait for itself: its own task holds %s, as %s. Locks are not re-entrant: use the "+
			"lease that the task has, or release it first. In a session, calls without a task_id are of one task.", cmp.Or(cycle[0].At, cycle[0].Name), strconv.Quote(cycle[0].WaitsFor))
		return e
	}
	e.Detail = "Deadlock: " + textOf(cycle) + ". This call gives way. Release what you hold, and begin again."
	return e
}
