package lock

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A decider applies one command to one of its locks. It holds the lock as changed so far, and the events.
type decider struct {
	view     *View
	now      time.Time // of the lock
	begin    time.Time // of what is granted or renewed, see deciders
	record   Record
	changed  bool
	events   []Event
	ended    []EndedLease
	promoted []Waiter
	ousted   []Waiter
	claimed  time.Duration
	// ready are the waiters of sets that are next at this lock and fit, see promote: one at most, outside of trees.
	// freed: a lease or an attached waiter was removed, or may have been, so that their turn may have come just now.
	// byTime: it may have come without any change of the record.
	ready  []*Waiter
	freed  bool
	byTime bool
	// more: a waiter that fits must wait for the next decision, since this one has had its portion of events or tokens.
	more  bool
	drawn *int // tokens, by all deciders of the decision
}

// endDue ends what has ended by time.
func (d *decider) endDue() {
	for _, l := range d.record.Leases {
		byItself, bySession := l.isDue(d.now), d.hasLostSession(&l)
		switch {
		case !byItself && !bySession:
		case l.Revoked():
			d.removeLease(l)
		case l.Unclaimed():
			d.withdraw(l, ReasonUnclaimed, l.Place)
		case byItself:
			d.endLease(l, Expired, "")
		default:
			d.endLease(l, Expired, reasonSessionExpired)
		}
	}
}

// finish returns the decision of a command on one lock: a refusal unless err is nil.
func (d *decider) finish(err error) Decision { return deciders{d}.finish(err) }

// removePromoted removes the lease's waiter from those to notify.
func (d *decider) removePromoted(id LeaseID) {
	d.promoted = slices.DeleteFunc(d.promoted, func(w Waiter) bool { return w.Lease.ID == id })
}

// index returns the index of the lease with that ID, or -1.
func (d *decider) index(id LeaseID) int {
	return slices.IndexFunc(d.record.Leases, func(l Lease) bool { return l.ID == id })
}

// lease returns the lease with that ID. A revoked lease has ended and is not returned.
func (d *decider) lease(id LeaseID) (Lease, bool) {
	i := slices.IndexFunc(d.record.Leases, func(l Lease) bool { return l.ID == id && !l.Revoked() })
	if i < 0 {
		return Lease{}, false
	}
	return d.record.Leases[i], true
}

// grant adds the lease want, which must be compatible. It draws a token unless want has one. place is that of the
// waiter, or zero if it did not wait.
func (d *decider) grant(want Lease, capacity int, place int64) Lease {
	l := want.begunAt(d.begin)
	if l.Place = place; l.Unclaimed() && l.Session == 0 {
		l.ExpiresAt = l.ClaimDeadline
	}
	l.Slot = d.freeSlot(l.Mode)
	if first, ok := d.record.firstReader(); ok && l.Mode == Shared {
		l.Token = first.Token // readers that overlap share a token: no reader fences another
	} else if l.Token == 0 {
		l.Token = d.drawToken()
	}
	if l.Mode == Permit {
		d.record.Capacity = capacity
	}
	d.record.Leases = append(slices.Clone(d.record.Leases), l)
	d.record.Token, d.record.LastEnd = max(d.record.Token, l.Token), 0 // readers may join an earlier token than one below
	d.emit(Event{Kind: Granted, Place: place}, l)
	return l
}

func (d *decider) drawToken() Token {
	*d.drawn++
	return d.view.Tokens()
}

// hasDrawnAll reports whether the decision has drawn all tokens that promotions may have. One is left for the command.
func (d *decider) hasDrawnAll() bool { return *d.drawn >= MaxTokens-1 }

// freeSlot returns the slot of the next lease of the mode: 0 for exclusive, else the first free one from 1.
func (d *decider) freeSlot(m Mode) int {
	if m == Exclusive {
		return 0
	}
	taken := make([]bool, len(d.record.Leases)+2)
	for i := range d.record.Leases {
		if slot := d.record.Leases[i].Slot; slot < len(taken) {
			taken[slot] = true
		}
	}
	return 1 + slices.Index(taken[1:], false)
}

// replaceLease replaces the lease with the ID of l. It emits no event.
func (d *decider) replaceLease(l Lease) {
	leases := slices.Clone(d.record.Leases)
	leases[slices.IndexFunc(leases, func(o Lease) bool { return o.ID == l.ID })] = l
	d.record.Leases, d.changed = leases, true
}

// endLease ends the lease and removes its waiter, if the grant was unclaimed.
func (d *decider) endLease(l Lease, how Kind, reason string) {
	d.removeEnded(l, how)
	d.removeWaiter(l.ID)
	d.emit(Event{Kind: how, Reason: reason, Ref: RefOf(d.record.Name, l.ID)}, l)
}

// withdraw takes back a grant that no client knows of. The event has no Ref, so the lease_id may be granted again.
// place is the place to which the waiter returns, or zero if it leaves the queue.
func (d *decider) withdraw(l Lease, reason string, place int64) {
	d.removeEnded(l, Withdrawn)
	if w, ok := d.waiter(l.ID); ok {
		w.GrantedUnclaimed = false
		d.replaceWaiter(w)
	}
	d.emit(Event{Kind: Withdrawn, Reason: reason, Place: place}, l)
}

// removeEnded removes the lease and records how it ended. If this decision granted it, its waiter is not notified.
func (d *decider) removeEnded(l Lease, how Kind) {
	d.removePromoted(l.ID)
	d.removeLease(l)
	d.noteEnd(l, how)
}

// removeLease removes the lease. It emits no event.
func (d *decider) removeLease(l Lease) {
	left := make([]Lease, 0, max(len(d.record.Leases)-1, 0))
	for i := range d.record.Leases {
		if o := &d.record.Leases[i]; o.ID != l.ID {
			left = append(left, *o)
		}
	}
	if d.record.Leases = left; len(left) == 0 {
		d.record.Capacity = 0
	}
	d.changed, d.freed = true, true
}

// noteEnd records how l has ended, and how the newest token has, if l was the last lease with that token.
func (d *decider) noteEnd(l Lease, how Kind) {
	if l.Mode.IsIntention() {
		return // the lease that it stands for is noted
	}
	at := d.now
	if how == Expired {
		at = l.EndsAt()
	}
	d.ended = append(d.ended, EndedLease{ID: l.ID, Token: l.Token, Mode: l.Mode, How: how, Held: at.Sub(l.AcquiredAt)})
	active := func(o Lease) bool { return o.Token == l.Token && !o.Revoked() }
	if l.Token == d.record.Token && !slices.ContainsFunc(d.record.Leases, active) {
		d.record.LastEnd = how
	}
}

// emit appends e, a transition of the lease l, and increments the revision. A transition of an intention has no event:
// that of the lease that it stands for is at its own lock.
func (d *decider) emit(e Event, l Lease) {
	d.record.Revision++
	d.record.ChangedAt = d.now
	d.changed = true
	if l.Mode.IsIntention() {
		return
	}
	e.At, e.Name, e.Revision = d.now, d.record.Name, d.record.Revision
	e.Slot, e.Mode, e.Holder, e.Token = l.Slot, l.Mode, l.Holder, l.Token
	d.events = append(d.events, e)
}

// paused reports whether grants are paused after a fail-over or a restore.
func (d *decider) paused() bool { return d.view.Now.Before(d.view.GrantsPausedUntil) }

func (d *decider) errPaused() *Error {
	left := d.view.GrantsPausedUntil.Sub(d.view.Now)
	return &Error{Code: ErrUnavailable, RetryAfter: left, Ahead: d.attachedWaiters(), Detail: fmt.Sprintf(
		"The database was failed over or restored and may have lost leases whose holders still work. "+
			"New grants are paused for %d ms; existing leases stay valid. Retry then, or wait with wait_ms.",
		left.Milliseconds())}
}

// retrySoon is the RetryAfter of a refusal if only waiters are in the way: when they are served is not known.
const retrySoon = time.Second

// errHeld returns the refusal of a request for a lease of the mode, which cannot be granted now. The zero Mode
// conflicts with all leases.
func (d *decider) errHeld(m Mode) *Error {
	leases := d.record.conflicting(m)
	if d.paused() && len(leases) == 0 {
		return d.errPaused()
	}
	e := &Error{Code: ErrHeld, Ahead: d.attachedWaiters()}
	if d.record.isFull(m) {
		return d.errFull(e)
	}
	if len(leases) == 0 {
		e.RetryAfter, e.Detail = retrySoon, "The lock cannot be granted right now. Retry."
		switch {
		case e.Ahead > 0 && m.IsIntention():
			e.Detail = fmt.Sprintf("%s, which is above, is waited for (%d waiting), and the locks below it with it. "+
				"Retry later, or wait with wait_ms.", d.record.Name, e.Ahead)
		case e.Ahead > 0:
			e.Detail = fmt.Sprintf("The lock is free, but reserved for a waiter that needs other locks, too (%d waiting). "+
				"Retry later, or wait with wait_ms.", e.Ahead)
		}
		return e
	}
	first, held := Record{Leases: leases}.firstUnrevoked()
	if !held {
		first = leases[0]
	}
	e.Holder, e.Newest, e.RetryAfter = first.Holder, d.record.Token, d.untilFirstEnd(leases)
	if !held {
		e.Detail = fmt.Sprintf("The lease of %q was revoked; its grace ends in %d ms. "+
			"Retry then, or wait with wait_ms.", first.Holder, e.RetryAfter.Milliseconds())
		return e
	}
	what := "the lock"
	switch {
	case first.Mode.IsIntention():
		what = "the lock " + first.heldName(d.record.Name) + " below"
	case m.IsIntention():
		what = "the lock " + d.record.Name + " above"
	}
	holders := fmt.Sprintf("%q holds %s", first.Holder, what)
	if n := len(leases) - 1; n > 0 {
		holders = fmt.Sprintf("%q holds %s and %d more hold conflicting leases", first.Holder, what, n)
		if what == "the lock" {
			holders = fmt.Sprintf("%q and %d more hold the lock", first.Holder, n)
		}
	}
	if e.Ahead > 0 {
		holders += fmt.Sprintf(", %d waiting", e.Ahead)
	}
	e.Detail = fmt.Sprintf("%s. Retry later, or wait with wait_ms; a lease ends in %d ms unless it is renewed.",
		holders, e.RetryAfter.Milliseconds())
	return e
}

// errFull completes the refusal e of a request for a lock that has as many leases as it can have.
func (d *decider) errFull(e *Error) *Error {
	e.Newest, e.RetryAfter = d.record.Token, d.untilFirstEnd(d.record.Leases)
	e.Detail = fmt.Sprintf("%s has %d leases, those of the locks below it included; that is the most that a lock can have. "+
		"Retry later, or wait with wait_ms; a lease ends in %d ms unless it is renewed.",
		d.record.Name, len(d.record.Leases), e.RetryAfter.Milliseconds())
	return e
}

// untilFirstEnd returns how long it is until the first of the leases ends, unless it is renewed. It is positive: the
// end of a lease may be due.
func (d *decider) untilFirstEnd(leases []Lease) time.Duration {
	end := leases[0].EndsAt()
	for i := range leases {
		if at := leases[i].EndsAt(); at.Before(end) {
			end = at
		}
	}
	return max(end.Sub(d.now), 1)
}

// endOf returns the event that ended the lease, if it is known. A released place is not an ended lease.
func (d *decider) endOf(id LeaseID) (Event, bool) {
	e, ok := d.lastEvent(id)
	return e, ok && e.Kind != Dequeued
}

// placeReleased reports whether the last known event of the lease ID is that its place was released.
func (d *decider) placeReleased(id LeaseID) bool {
	e, ok := d.lastEvent(id)
	return ok && e.Kind == Dequeued
}

// lastEvent returns the last event that refers to the lease.
func (d *decider) lastEvent(id LeaseID) (Event, bool) {
	ref := RefOf(d.record.Name, id)
	for _, e := range slices.Backward(d.events) {
		if e.Ref == ref {
			return e, true
		}
	}
	e, ok := d.view.Ended[ref]
	return e, ok
}

// errLost returns the refusal of a call with a lease that the lock does not have.
func (d *decider) errLost(id LeaseID) error {
	e, known := d.endOf(id)
	if !known {
		return &Error{Code: ErrLeaseLost, Detail: "This lock has no lease with that lease_id, " +
			"and no record of its end. Stop the work; check name and lease_id, or acquire with a new lease_id."}
	}
	what := map[Kind]string{
		Released: "was released", Expired: "expired", Revoked: "was revoked by an operator",
	}[e.Kind]
	return &Error{
		Code: ErrLeaseLost, Ended: e.Kind, EndedAt: e.At, Reason: e.Reason, Token: e.Token,
		Detail: "The lease " + what + ". " +
			"Stop the work; to continue, acquire with a new lease_id and use the new token.",
	}
}

// nextDue returns the earliest instant at which the lock may change without a request, or zero for never.
func (d *decider) nextDue() time.Time {
	var first time.Time
	include := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for i := range d.record.Leases {
		if end := d.record.Leases[i].due(); !end.IsZero() {
			include(end)
		}
	}
	if d.more {
		include(d.now)
	}
	if d.paused() && len(d.record.Queue) > 0 {
		include(d.now.Add(d.view.GrantsPausedUntil.Sub(d.view.Now)))
	}
	lastOwn := int64(math.MinInt64)
	for _, w := range slices.Backward(d.record.Queue) {
		if w.Replica == d.view.Self {
			lastOwn = w.Place
			break
		}
	}
	for _, w := range d.record.Queue {
		if !w.GrantedUnclaimed {
			include(d.waiterDue(w, w.Place < lastOwn))
		}
	}
	return first
}

// waiterDue returns the next instant at which this replica treats w differently without a request: the wait ends, the
// place lapses, or, if ownBehind is set, the heartbeat of w's replica times out. ownBehind reports whether this
// replica has a waiter behind w, which may then be granted the lock.
func (d *decider) waiterDue(w *Waiter, ownBehind bool) time.Time {
	if w.Replica == d.view.Self && d.attached(w) {
		return w.WaitUntil
	}
	alive := w.AliveUntil
	if !d.now.Before(alive) { // the lock's time is ahead of the clock
		alive = d.now.Add(w.AliveUntil.Sub(d.view.Now))
	}
	switch {
	case !d.attached(w):
		return w.KeptUntil
	case ownBehind && alive.Before(w.WaitUntil):
		return alive
	}
	return w.WaitUntil
}
