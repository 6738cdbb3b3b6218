package lock

import (
	"cmp"
	"fmt"
	"slices"
)

// join gives a the last place in the queue, if it waits or wants one kept.
func (t *turn) join(a Acquire) Decision {
	if a.Wait == 0 && !a.KeepPlace {
		return t.decided(t.held())
	}
	if a.Full {
		return t.decided(&Error{Code: ErrTooManyWaiters, RetryAfter: t.held().RetryAfter,
			Detail: "As many calls wait for locks as may, and this lock cannot be had at once. Try again later."})
	}
	if n, full := t.full(a.maxWaiters); full {
		e := t.held()
		return t.decided(&Error{Code: ErrTooManyWaiters, RetryAfter: e.RetryAfter, Ahead: e.Ahead, Detail: fmt.Sprintf(
			"%d wait for this lock, and no more may. Try again later.", n)})
	}
	t.record(Event{Kind: Queued, Place: t.state.Revision + 1}, a.want())
	w := Waiter{Place: t.state.Revision, Lease: a.want(), Capacity: a.Capacity, JoinedAt: t.now}
	if a.Wait > 0 {
		w = w.attach(a, t.now)
	}
	queue := make([]*Waiter, len(t.state.Queue)+1)
	queue[copy(queue, t.state.Queue)] = &w
	t.state.Queue = queue
	return t.seated(a, w)
}

// waitOn has a wait on at the place that an earlier call with its LeaseID took.
func (t *turn) waitOn(a Acquire, w Waiter) Decision {
	w = w.attach(a, t.now)
	if l, ok := t.tryFor(w); ok {
		return t.granted(t.claim(l, a.Attachment), false)
	}
	return t.seat(a, w)
}

// tryFor returns the lease that w gets if somebody is there for it just now.
func (t *turn) tryFor(w Waiter) (Lease, bool) {
	w.Attachment, w.Replica, w.Until = cmp.Or(w.Attachment, justNow), t.view.Self, t.now.Add(1)
	t.reseat(w)
	t.promote()
	return t.lease(w.Lease.ID)
}

// justNow is the attachment of a call that does not wait, for its own turn.
const justNow Attachment = -1

// seat has the call of a sit at the place w; one that does not wait leaves it.
func (t *turn) seat(a Acquire, w Waiter) Decision {
	if a.Wait > 0 {
		t.reseat(w.attach(a, t.now))
	}
	return t.seated(a, w)
}

// seated is the outcome for the call of a, which has its place in the queue: it waits
// there, or leaves it.
func (t *turn) seated(a Acquire, w Waiter) Decision {
	if a.Wait == 0 {
		return t.decided(t.quit(w, a.KeepPlace))
	}
	d := t.decided(nil)
	d.Queued = true
	return d
}

// reseat puts w where the waiter at its place is. It is no transition.
func (t *turn) reseat(w Waiter) {
	queue := slices.Clone(t.state.Queue)
	queue[slices.IndexFunc(queue, func(o *Waiter) bool { return o.Place == w.Place })] = &w
	t.state.Queue, t.changed = queue, true
}

// quit ends the wait of w and returns its refusal.
func (t *turn) quit(w Waiter, keep bool) error {
	if keep {
		t.reseat(w.detach(t.now))
		t.promote()
	} else {
		t.leave(w, waitOver)
	}
	e := t.held()
	if keep {
		e.KeptFor = PlaceRetention
		e.Detail += fmt.Sprintf(" Your place is kept for %d ms: send the same lease_id again.", PlaceRetention.Milliseconds())
	}
	return e
}

// leave removes w from the queue, which may make way for those behind.
func (t *turn) leave(w Waiter, reason string) {
	t.forget(w.Lease.ID)
	t.left(w, reason)
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

// Draws allows for the end of a lease found to be over.
func (c Claim) Draws() (tokens, events int) { return 0, 1 }

// Apply returns the lease as Acquire does, or that the call still waits, or a
// refusal if it does not any more.
func (c Claim) Apply(v View) Decision {
	t := begin(v)
	if l, ok := t.lease(c.LeaseID); ok && l.Attachment == c.Attachment {
		return t.granted(t.claim(l, c.Attachment), false)
	}
	if w, ok := t.waiter(c.LeaseID); ok && w.Attachment == c.Attachment {
		d := t.decided(nil)
		d.Queued = true
		return d
	}
	return t.decided(t.gone(c.LeaseID))
}

// gone returns the refusal of a call that waits no longer, for a reason that it
// did not see: another call has its place, or has given it up.
func (t *turn) gone(id LeaseID) error {
	if _, over := t.ending(id); over {
		return t.lost(id)
	}
	e := t.held()
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

// Draws allows for the end of the wait, or of the lease.
func (l Leave) Draws() (tokens, events int) { return 0, 2 }

// Apply gives the place up, or back the grant. It does nothing to a place or a
// lease that another call with the same LeaseID has asked for since.
func (l Leave) Apply(v View) Decision {
	t := begin(v)
	if lease, ok := t.lease(l.LeaseID); ok && lease.Attachment == l.Attachment {
		if !l.Disconnected {
			return t.granted(t.claim(lease, l.Attachment), false)
		}
		t.takeBack(lease, l.KeepPlace)
		return t.decided(nil)
	}
	w, ok := t.waiter(l.LeaseID)
	switch {
	case !ok || w.Attachment != l.Attachment:
		return t.decided(t.gone(l.LeaseID))
	case l.Disconnected && l.KeepPlace:
		t.reseat(w.detach(t.now))
		t.promote()
		return t.decided(nil)
	case l.Disconnected:
		t.leave(w, clientGone)
		return t.decided(nil)
	}
	if lease, ok := t.tryFor(w); ok { // its time was over before its turn to say so
		return t.granted(t.claim(lease, l.Attachment), false)
	}
	return t.decided(t.quit(w, l.KeepPlace))
}

// takeBack withdraws a grant that crossed the leaving of its call.
func (t *turn) takeBack(l Lease, keep bool) {
	w := Waiter{Place: l.Place, Lease: l.wanted(), JoinedAt: l.AcquiredAt}
	if l.Mode == Permit {
		w.Capacity = t.state.Capacity
	}
	if offered, ok := t.waiter(l.ID); ok {
		w = offered
		t.forget(l.ID)
	}
	if l.Place == 0 || !keep {
		t.withdraw(l, clientGone, 0)
	} else {
		t.withdraw(l, callLost, l.Place)
		t.seatAgain(w.detach(t.now))
	}
	t.promote()
}

// seatAgain puts w back where its place is. It is no transition.
func (t *turn) seatAgain(w Waiter) {
	i, _ := slices.BinarySearchFunc(t.state.Queue, w.Place, func(o *Waiter, place int64) int { return cmp.Compare(o.Place, place) })
	t.state.Queue = slices.Insert(slices.Clone(t.state.Queue), i, &w)
}
