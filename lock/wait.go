package lock

import (
	"cmp"
	"fmt"
	"slices"
)

// enqueue gives a the last place in the queue, if it waits or wants one kept.
func (t *decider) enqueue(a Acquire) Decision {
	if a.Wait == 0 && !a.KeepPlace {
		return t.finish(t.errHeld())
	}
	if a.Full {
		return t.finish(&Error{Code: ErrTooManyWaiters, RetryAfter: t.errHeld().RetryAfter,
			Detail: "As many calls wait for locks as may, and this lock cannot be had at once. Try again later."})
	}
	if n, full := t.isQueueFull(a.maxWaiters); full {
		e := t.errHeld()
		return t.finish(&Error{Code: ErrTooManyWaiters, RetryAfter: e.RetryAfter, Ahead: e.Ahead, Detail: fmt.Sprintf(
			"%d wait for this lock, and no more may. Try again later.", n)})
	}
	t.emit(Event{Kind: Queued, Place: t.record.Revision + 1}, a.newLease())
	w := Waiter{Place: t.record.Revision, Lease: a.newLease(), Capacity: a.Capacity, JoinedAt: t.now}
	if a.Wait > 0 {
		w = w.attach(a, t.now)
	}
	queue := make([]*Waiter, len(t.record.Queue)+1)
	queue[copy(queue, t.record.Queue)] = &w
	t.record.Queue = queue
	return t.waitOrEnd(a, w)
}

// resumeWait has a wait on at the place that an earlier call with its LeaseID took.
func (t *decider) resumeWait(a Acquire, w Waiter) Decision {
	w = w.attach(a, t.now)
	if l, ok := t.promoteNow(w); ok {
		return t.finishWithLease(t.claim(l, a.Attachment), false)
	}
	return t.attachCall(a, w)
}

// promoteNow returns the lease that w gets if somebody is there for it just now.
func (t *decider) promoteNow(w Waiter) (Lease, bool) {
	w.Attachment, w.Replica, w.Until = cmp.Or(w.Attachment, momentary), t.view.Self, t.now.Add(1)
	t.replaceWaiter(w)
	t.promote()
	return t.lease(w.Lease.ID)
}

// momentary is the attachment of a call that does not wait, for its own turn.
const momentary Attachment = -1

// attachCall has the call of a sit at the place w; one that does not wait leaves it.
func (t *decider) attachCall(a Acquire, w Waiter) Decision {
	if a.Wait > 0 {
		t.replaceWaiter(w.attach(a, t.now))
	}
	return t.waitOrEnd(a, w)
}

// waitOrEnd is the outcome for the call of a, which has its place in the queue: it waits
// there, or leaves it.
func (t *decider) waitOrEnd(a Acquire, w Waiter) Decision {
	if a.Wait == 0 {
		return t.finish(t.endWait(w, a.KeepPlace))
	}
	d := t.finish(nil)
	d.Queued = true
	return d
}

// replaceWaiter puts w where the waiter at its place is. It is no transition.
func (t *decider) replaceWaiter(w Waiter) {
	queue := slices.Clone(t.record.Queue)
	queue[slices.IndexFunc(queue, func(o *Waiter) bool { return o.Place == w.Place })] = &w
	t.record.Queue, t.changed = queue, true
}

// endWait ends the wait of w and returns its refusal.
func (t *decider) endWait(w Waiter, keep bool) error {
	if keep {
		t.replaceWaiter(w.detach(t.now))
		t.promote()
	} else {
		t.dequeue(w, reasonWaitEnded)
	}
	e := t.errHeld()
	if keep {
		e.KeptFor = PlaceRetention
		e.Detail += fmt.Sprintf(" Your place is kept for %d ms: send the same lease_id again.", PlaceRetention.Milliseconds())
	}
	return e
}

// dequeue removes w from the queue, which may make way for those behind.
func (t *decider) dequeue(w Waiter, reason string) {
	t.removeWaiter(w.Lease.ID)
	t.emitDequeued(w, reason)
	t.promote()
}

// A Claim is a call that waits asking how it stands, and fetching the grant if
// there is one. It is what a wake-up leads to, and does no harm without one.
type Claim struct {
	Name       string
	LeaseID    LeaseID
	Attachment Attachment
}

// Names returns the lock's name.
func (c Claim) Names() []string { return []string{c.Name} }

// Refs returns the lease of c.
func (c Claim) Refs() []LeaseRef { return []LeaseRef{RefOf(c.Name, c.LeaseID)} }

// Needs allows for the end of a lease found to be over.
func (c Claim) Needs() (tokens, events int) { return 0, 1 }

// Apply returns the lease as Acquire does, or that the call still waits, or a
// refusal if it does not any more.
func (c Claim) Apply(v View) Decision {
	t := newDecider(v)
	if l, ok := t.lease(c.LeaseID); ok && l.Attachment == c.Attachment {
		return t.finishWithLease(t.claim(l, c.Attachment), false)
	}
	if w, ok := t.waiter(c.LeaseID); ok && w.Attachment == c.Attachment {
		d := t.finish(nil)
		d.Queued = true
		return d
	}
	return t.finish(t.errReplaced(c.LeaseID))
}

// errReplaced returns the refusal of a call that waits no longer, for a reason that it
// did not see: another call has its place, or has given it up.
func (t *decider) errReplaced(id LeaseID) error {
	if _, over := t.endOf(id); over {
		return t.errLost(id)
	}
	e := t.errHeld()
	e.Detail = "This call's place was taken over by a later call with the same lease_id, or given up by one. " + e.Detail
	return e
}

// A Leave is a call that waits no longer: its wait is over, or its client is gone.
type Leave struct {
	Name       string
	LeaseID    LeaseID
	Attachment Attachment
	KeepPlace  bool // keep the place for a while
	// Disconnected has a grant that crossed the leaving be taken back, to the place that it
	// came from if that is to be kept, since there is nobody to tell of it. Else
	// the grant is what Leave returns.
	Disconnected bool
}

// Names returns the lock's name.
func (l Leave) Names() []string { return []string{l.Name} }

// Refs returns the lease of l.
func (l Leave) Refs() []LeaseRef { return []LeaseRef{RefOf(l.Name, l.LeaseID)} }

// Needs allows for the end of the wait, or of the lease.
func (l Leave) Needs() (tokens, events int) { return 0, 2 }

// Apply gives the place up, or back the grant. It does nothing to a place or a
// lease that another call with the same LeaseID has asked for since.
func (l Leave) Apply(v View) Decision {
	t := newDecider(v)
	if lease, ok := t.lease(l.LeaseID); ok && lease.Attachment == l.Attachment {
		if !l.Disconnected {
			return t.finishWithLease(t.claim(lease, l.Attachment), false)
		}
		t.takeBack(lease, l.KeepPlace)
		return t.finish(nil)
	}
	w, ok := t.waiter(l.LeaseID)
	switch {
	case !ok || w.Attachment != l.Attachment:
		return t.finish(t.errReplaced(l.LeaseID))
	case l.Disconnected && l.KeepPlace:
		t.replaceWaiter(w.detach(t.now))
		t.promote()
		return t.finish(nil)
	case l.Disconnected:
		t.dequeue(w, reasonDisconnected)
		return t.finish(nil)
	}
	if lease, ok := t.promoteNow(w); ok { // its time was over before its turn to say so
		return t.finishWithLease(t.claim(lease, l.Attachment), false)
	}
	return t.finish(t.endWait(w, l.KeepPlace))
}

// takeBack withdraws a grant that crossed the leaving of its call.
func (t *decider) takeBack(l Lease, keep bool) {
	w := Waiter{Place: l.Place, Lease: l.request(), JoinedAt: l.AcquiredAt}
	if l.Mode == Permit {
		w.Capacity = t.record.Capacity
	}
	if offered, ok := t.waiter(l.ID); ok {
		w = offered
		t.removeWaiter(l.ID)
	}
	if l.Place == 0 || !keep {
		t.withdraw(l, reasonDisconnected, 0)
	} else {
		t.withdraw(l, reasonCallLost, l.Place)
		t.reinsertWaiter(w.detach(t.now))
	}
	t.promote()
}

// reinsertWaiter puts w back where its place is. It is no transition.
func (t *decider) reinsertWaiter(w Waiter) {
	i, _ := slices.BinarySearchFunc(t.record.Queue, w.Place, func(o *Waiter, place int64) int { return cmp.Compare(o.Place, place) })
	t.record.Queue = slices.Insert(slices.Clone(t.record.Queue), i, &w)
}
