package lock

import (
	"fmt"
	"slices"
	"time"
)

// Why a waiter left the queue, or a grant was withdrawn: the reasons of events.
const (
	reasonWaitEnded   = "the wait was over"
	reasonDisconnected = "the client was gone"
	reasonCallLost   = "the call was lost"
	reasonPlaceReleased    = "the place was given up"
	reasonPlaceLapsed    = "nobody came back to the place"
	reasonUnclaimed = "nobody fetched the grant"
)

// isCompatible is whether a lease of the mode can be had beside those that there are.
func (s Record) isCompatible(m Mode, capacity int) bool {
	if len(s.Leases) == 0 {
		return true
	}
	switch first := s.Leases[0]; {
	case m != first.Mode || m == Exclusive:
		return false
	case m == Permit:
		return capacity == s.Capacity && len(s.Leases) < capacity
	}
	return len(s.Leases) < MaxHolders
}

// promote grants the lock to the longest prefix of the queue that fits, of those
// who are there; drops places that are not kept any longer; and passes over those
// at which nobody waits. It is a pass in the order of the queue, so nobody is
// overtaken: the first who does not fit is in the way of all behind, and so
// neither readers nor writers starve.
func (t *decider) promote() {
	queue, blocked := t.record.Queue, false
	var left []*Waiter // nil while the queue is as it was
	for i, before := range queue {
		w, stays := t.promoteWaiter(before, &blocked)
		if left == nil && stays && w == before {
			continue
		}
		if left == nil {
			left = append(make([]*Waiter, 0, len(queue)), queue[:i]...)
		}
		if stays {
			left = append(left, w)
		}
	}
	if left != nil {
		t.record.Queue = left
	}
}

// promoteWaiter sees to a waiter, unless those before it are in the way, and returns it as
// it is then, and whether it stays in the queue.
func (t *decider) promoteWaiter(w *Waiter, blocked *bool) (*Waiter, bool) {
	switch {
	case w.GrantedUnclaimed:
		return w, true
	case t.hasLapsed(w):
		t.emitDequeued(*w, reasonPlaceLapsed)
		return w, false
	case *blocked, !t.attached(w):
		return w, true
	case t.paused(), !t.record.isCompatible(w.Lease.Mode, w.Capacity):
		*blocked = true
		return w, true
	}
	return t.grantWaiter(*w)
}

// grantWaiter grants the lock to the waiter. One of another replica stays in the queue
// until it has fetched the grant, should that replica be gone.
func (t *decider) grantWaiter(w Waiter) (*Waiter, bool) {
	w.GrantedUnclaimed = w.Replica != t.view.Self
	want := w.Lease
	want.Attachment = w.Attachment
	if w.GrantedUnclaimed {
		want.ClaimDeadline = t.now.Add(ClaimTimeout)
	}
	t.grant(want, w.Capacity, w.Place)
	t.promoted = append(t.promoted, w)
	return &w, w.GrantedUnclaimed
}

// attached is whether somebody is there to get the lock.
func (t *decider) attached(w *Waiter) bool { return w.attachedAt(t.now, t.view.Now, t.view.Self) }

// hasLapsed reports whether no call waits at the place and it is not kept any longer. It is asked of all waiters for each
// decision, so the comparison that settles it for almost all of them comes first.
func (t *decider) hasLapsed(w *Waiter) bool { return !t.now.Before(w.KeptUntil) && !t.attached(w) }

// attachedWaiters returns how many are there to get the lock.
func (t *decider) attachedWaiters() int {
	n := 0
	for _, w := range t.record.Queue {
		if !w.GrantedUnclaimed && t.attached(w) {
			n++
		}
	}
	return n
}

// hasAttachedWaiter reports whether any waiter is there to get the lock.
func (t *decider) hasAttachedWaiter() bool {
	return slices.ContainsFunc(t.record.Queue, func(w *Waiter) bool { return !w.GrantedUnclaimed && t.attached(w) })
}

// claim has the call have the lease, whose TTL and greatest hold begin now if
// nobody had fetched it. One that had been is no call's from then on if another
// asks for it: somebody may have been told of it, so that nobody's leaving takes
// it back.
func (t *decider) claim(l Lease, by Attachment) Lease {
	switch {
	case l.Unclaimed():
		l.ClaimDeadline, l.AcquiredAt, l.ExpiresAt = time.Time{}, t.now, time.Time{}
		l.ExpiresAt = l.expiryFrom(t.now)
		l.Attachment = by
		t.removeWaiter(l.ID)
	case l.Attachment == by:
		return l
	case t.isUndelivered(l):
		l.Attachment = by
	default:
		l.Attachment = 0
	}
	t.replaceLease(l)
	return l
}

// isUndelivered is whether nobody can know of the lease yet.
func (t *decider) isUndelivered(l Lease) bool {
	return l.Unclaimed() || slices.ContainsFunc(t.promoted, func(w Waiter) bool { return w.Lease.ID == l.ID })
}

// waiter returns the place of the lease id.
func (t *decider) waiter(id LeaseID) (Waiter, bool) {
	i := slices.IndexFunc(t.record.Queue, func(w *Waiter) bool { return w.Lease.ID == id })
	if i < 0 {
		return Waiter{}, false
	}
	return *t.record.Queue[i], true
}

// removeWaiter removes the place of the lease id, if there is one. It is no transition.
func (t *decider) removeWaiter(id LeaseID) {
	if _, ok := t.waiter(id); ok {
		t.record.Queue = slices.DeleteFunc(slices.Clone(t.record.Queue), func(w *Waiter) bool { return w.Lease.ID == id })
		t.changed = true
	}
}

// emitDequeued notes that the waiter has left the queue.
func (t *decider) emitDequeued(w Waiter, reason string) {
	e := Event{Kind: Dequeued, Place: w.Place, Reason: reason}
	if reason == reasonPlaceReleased {
		e.Ref = RefOf(t.record.Name, w.Lease.ID) // so that it can be given up again
	}
	t.emit(e, w.Lease)
}

// errHeld returns the refusal of who wants the lock and may not have it now.
func (t *decider) errHeld() *Error {
	if t.paused() && len(t.record.Leases) == 0 {
		return t.errPaused()
	}
	e := &Error{Code: ErrHeld, Ahead: t.attachedWaiters()}
	if len(t.record.Leases) == 0 {
		e.Detail = "Nobody may have the lock just now. Try again."
		return e
	}
	first, held := t.record.firstUnrevoked()
	if !held {
		first = t.record.Leases[0]
	}
	over := first.EndsAt()
	for _, l := range t.record.Leases {
		if l.EndsAt().Before(over) {
			over = l.EndsAt()
		}
	}
	e.Holder, e.Newest, e.RetryAfter = first.Holder, t.record.Token, over.Sub(t.now)
	if !held {
		e.Detail = fmt.Sprintf("The lease of %q was revoked, and its grace lasts %d ms more. "+
			"Try again then, or wait with wait_ms.", first.Holder, e.RetryAfter.Milliseconds())
		return e
	}
	who := fmt.Sprintf("%q holds the lock", first.Holder)
	if n := len(t.record.Leases) - 1; n > 0 {
		who = fmt.Sprintf("%q and %d more hold the lock", first.Holder, n)
	}
	if e.Ahead > 0 {
		who += fmt.Sprintf(", %d waiting", e.Ahead)
	}
	e.Detail = fmt.Sprintf("%s. Try again later, or wait with wait_ms: a lease ends in %d ms unless it is renewed.",
		who, e.RetryAfter.Milliseconds())
	return e
}
