package lock

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// enqueue appends a to the queue, if it waits or keeps its place. Otherwise it refuses.
func (d *decider) enqueue(a Acquire) Decision {
	if a.Wait == 0 && !a.KeepPlace {
		return d.finish(d.errHeld())
	}
	if a.LimitReached {
		return d.finish(&Error{Code: ErrTooManyWaiters, RetryAfter: d.errHeld().RetryAfter,
			Detail: "The limit on waiting calls is reached and this lock is not free. Retry later."})
	}
	if n, full := d.isQueueFull(a.maxWaiters); full {
		e := d.errHeld()
		return d.finish(&Error{Code: ErrTooManyWaiters, RetryAfter: e.RetryAfter, Ahead: e.Ahead,
			Detail: fmt.Sprintf("The queue of this lock is full: %d calls wait. Retry later.", n)})
	}
	d.emit(Event{Kind: Queued, Place: d.record.Revision + 1}, a.newLease())
	w := Waiter{Place: d.record.Revision, Lease: a.newLease(), Capacity: a.Capacity, JoinedAt: d.now}
	if a.Wait > 0 {
		w = w.attach(a, d.now)
	}
	queue := make([]*Waiter, len(d.record.Queue)+1)
	queue[copy(queue, d.record.Queue)] = &w
	d.record.Queue = queue
	return d.waitOrEnd(a, w)
}

// resumeWait continues a wait at the place that an earlier call with the same LeaseID took.
func (d *decider) resumeWait(a Acquire, w Waiter) Decision {
	w = w.attach(a, d.now)
	if l, ok := d.promoteNow(w); ok {
		return d.finishWithLease(d.claim(l, a.Attachment), false)
	}
	if a.Wait > 0 {
		d.replaceWaiter(w)
	}
	return d.waitOrEnd(a, w)
}

// waitOrEnd returns the decision for the call of a, whose place is w: it waits, or ends its wait at once.
func (d *decider) waitOrEnd(a Acquire, w Waiter) Decision {
	if a.Wait == 0 {
		return d.finish(d.endWait(w, a.KeepPlace))
	}
	out := d.finish(nil)
	out.Queued = true
	return out
}

// promoteNow attaches w, promotes, and returns the lease if w was granted one. Otherwise w stays in the queue with a
// wait that has almost ended; the caller must replace or remove it.
func (d *decider) promoteNow(w Waiter) (Lease, bool) {
	w.Attachment, w.Replica, w.WaitUntil = cmp.Or(w.Attachment, momentary), d.view.Self, d.now.Add(1)
	d.replaceWaiter(w)
	d.promote()
	return d.lease(w.Lease.ID)
}

// momentary is the attachment of a call that does not wait, during its own decision.
const momentary Attachment = -1

// endWait ends the wait of w and returns its refusal.
func (d *decider) endWait(w Waiter, keep bool) error {
	if keep {
		d.replaceWaiter(w.detach(d.now))
		d.promote()
	} else {
		d.dequeue(w, reasonWaitEnded)
	}
	e := d.errHeld()
	if keep {
		e.KeptFor = PlaceRetention
		e.Detail += fmt.Sprintf(" Your place is kept for %d ms; retry with the same lease_id.",
			PlaceRetention.Milliseconds())
	}
	return e
}

// claim assigns the lease to the call. The TTL and max hold start now if the grant was still unclaimed. If an
// earlier decision granted the lease to another call, claim sets the Attachment to zero: a client may know of the
// lease, so the Leave of neither call may withdraw it.
func (d *decider) claim(l Lease, by Attachment) Lease {
	switch {
	case l.Unclaimed():
		d.claimed = d.now.Sub(l.ClaimDeadline.Add(-ClaimTimeout))
		l.ClaimDeadline = time.Time{}
		l = l.begunAt(d.now)
		l.Attachment = by
		d.removeWaiter(l.ID)
	case l.Attachment == by:
		return l
	case d.isUndelivered(l):
		l.Attachment = by
	default:
		l.Attachment = 0
	}
	d.replaceLease(l)
	return l
}

// A Claim asks whether a waiting call has been granted the lock, and claims the grant. A replica sends it after a
// wake-up; it has no effect while the call still waits.
type Claim struct {
	Name       string
	LeaseID    LeaseID
	Attachment Attachment
	SessionID  SessionID // as in the Acquire
}

// Names returns the lock's name.
func (c Claim) Names() []string { return []string{c.Name} }

// Refs returns the lease of c.
func (c Claim) Refs() []LeaseRef { return []LeaseRef{RefOf(c.Name, c.LeaseID)} }

// Tokens returns 0.
func (c Claim) Tokens() int { return 0 }

// Apply returns the lease, or sets Queued if the call still waits, or refuses if it waits no longer.
func (c Claim) Apply(v View) Decision {
	d := newDecider(v)
	if l, ok := d.lease(c.LeaseID); ok && l.Attachment == c.Attachment {
		return d.finishWithLease(d.claim(l, c.Attachment), false)
	}
	if w, ok := d.waiter(c.LeaseID); ok && w.Attachment == c.Attachment {
		out := d.finish(nil)
		out.Queued = true
		return out
	}
	return d.finish(cmp.Or(d.checkSession(c.SessionID), d.errReplaced(c.LeaseID)))
}

// errReplaced returns the refusal of a call that waits no longer because another call has taken or released its
// place.
func (d *decider) errReplaced(id LeaseID) error {
	if _, ended := d.endOf(id); ended {
		return d.errLost(id)
	}
	e := d.errHeld()
	e.Detail = "A later call with the same lease_id took over or released this call's place. " + e.Detail
	return e
}

// A Leave ends the wait of a call: its time is over, or its client is gone.
type Leave struct {
	Name       string
	LeaseID    LeaseID
	Attachment Attachment
	KeepPlace  bool // keep the place for PlaceRetention
	// Disconnected reports whether the client is gone. It decides what happens if the call was granted the lock before
	// the Leave: if set, the grant is withdrawn, and with KeepPlace the waiter returns to its place. If not set, the
	// Leave returns the grant.
	Disconnected bool
	SessionID    SessionID // as in the Acquire
}

// Names returns the lock's name.
func (l Leave) Names() []string { return []string{l.Name} }

// Refs returns the lease of l.
func (l Leave) Refs() []LeaseRef { return []LeaseRef{RefOf(l.Name, l.LeaseID)} }

// Tokens returns 0.
func (l Leave) Tokens() int { return 0 }

// Apply removes or detaches the waiter, or withdraws the grant. It does not change a place or a lease that another
// call with the same LeaseID has taken over.
func (l Leave) Apply(v View) Decision {
	d := newDecider(v)
	if lease, ok := d.lease(l.LeaseID); ok && lease.Attachment == l.Attachment {
		if !l.Disconnected {
			return d.finishWithLease(d.claim(lease, l.Attachment), false)
		}
		d.withdrawDisconnected(lease, l.KeepPlace)
		return d.finish(nil)
	}
	w, ok := d.waiter(l.LeaseID)
	switch {
	case !ok || w.Attachment != l.Attachment:
		return d.finish(cmp.Or(d.checkSession(l.SessionID), d.errReplaced(l.LeaseID)))
	case l.Disconnected && l.KeepPlace:
		d.replaceWaiter(w.detach(d.now))
		d.promote()
		return d.finish(nil)
	case l.Disconnected:
		d.dequeue(w, reasonDisconnected)
		return d.finish(nil)
	}
	if lease, ok := d.promoteNow(w); ok { // the wait ended before the Leave was decided, but the lock is free
		return d.finishWithLease(d.claim(lease, l.Attachment), false)
	}
	return d.finish(d.endWait(w, l.KeepPlace))
}

// withdrawDisconnected withdraws a grant whose client is gone. keep returns the waiter to its place.
func (d *decider) withdrawDisconnected(l Lease, keep bool) {
	w := Waiter{Place: l.Place, Lease: l.asRequested(), JoinedAt: l.AcquiredAt}
	if l.Mode == Permit {
		w.Capacity = d.record.Capacity
	}
	if queued, ok := d.waiter(l.ID); ok {
		w = queued
		d.removeWaiter(l.ID)
	}
	if l.Place == 0 || !keep {
		d.withdraw(l, reasonDisconnected, 0)
	} else {
		d.withdraw(l, reasonCallLost, l.Place)
		d.reinsertWaiter(w.detach(d.now))
	}
	d.promote()
}

// reinsertWaiter puts w back at its place. It emits no event.
func (d *decider) reinsertWaiter(w Waiter) {
	byPlace := func(o *Waiter, place int64) int { return cmp.Compare(o.Place, place) }
	i, _ := slices.BinarySearchFunc(d.record.Queue, w.Place, byPlace)
	d.record.Queue = slices.Insert(slices.Clone(d.record.Queue), i, &w)
}
