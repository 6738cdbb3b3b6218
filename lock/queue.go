package lock

import (
	"slices"
	"time"
)

// ReasonUnclaimed is the Reason of a Withdrawn event when the grant was not claimed within ClaimTimeout: time alone
// ended the lease.
const ReasonUnclaimed = "grant not claimed in time"

// The other reasons of Dequeued and Withdrawn events.
const (
	reasonWaitEnded     = "wait ended"
	reasonDisconnected  = "client disconnected"
	reasonCallLost      = "call ended without an answer"
	reasonPlaceReleased = "place released"
	reasonPlaceLapsed   = "place not used again in time"
)

// eventPortion bounds what one decision does that the next one can do as well. It removes no places that have lapsed
// after that many events: there may be many more than MaxHolders of them after a replica died. The next decision goes
// on; the Due of this one is not after its Now. With the leases that a decision on one lock ends and grants, at most
// MaxHolders each time, it has no more than 4096 events. In a decision on several locks, each has an equal share of
// the portion, which then bounds its grants and revocations, too.
const eventPortion = 1000

// portion returns the decider's share of eventPortion.
func (d *decider) portion() int { return eventPortion / len(d.view.Locks) }

// isSpent reports whether the decision can grant nothing more: it has had its tokens, or it is on several locks and
// has had its portion of events on this one.
func (d *decider) isSpent() bool {
	return d.hasDrawnAll() || len(d.view.Locks) > 1 && len(d.events) >= d.portion()
}

// conflicting returns the leases that keep one of the mode from being granted, all unless the lock is in a tree. The
// zero Mode conflicts with all.
func (r Record) conflicting(m Mode) []Lease {
	isBeside := func(l Lease) bool {
		return m != 0 && (m.IsIntention() || l.Mode.IsIntention() || r.Leases[0].Mode.IsIntention()) && m.isBeside(l.Mode)
	}
	if !slices.ContainsFunc(r.Leases, isBeside) {
		return r.Leases
	}
	return slices.DeleteFunc(slices.Clone(r.Leases), isBeside)
}

// isCompatible reports whether a lease of the mode can be granted beside the current leases.
func (r Record) isCompatible(m Mode, capacity int) bool {
	if len(r.Leases) == 0 {
		return true
	}
	switch first := &r.Leases[0]; {
	case m.IsIntention() || first.Mode.IsIntention():
		return len(r.Leases) < MaxHolders && r.isBesideAll(m)
	case m != first.Mode || m == Exclusive:
		return false
	case m == Permit:
		return capacity == r.Capacity && len(r.Leases) < capacity
	}
	return len(r.Leases) < MaxHolders
}

// isBesideAll reports whether no lease conflicts with one of the mode in a tree.
func (r Record) isBesideAll(m Mode) bool {
	return !slices.ContainsFunc(r.Leases, func(l Lease) bool { return !m.isBeside(l.Mode) })
}

// isFull reports whether a lease of the mode conflicts with no lease, but there are MaxHolders of them.
func (r Record) isFull(m Mode) bool {
	return m != 0 && m != Permit && len(r.Leases) >= MaxHolders && r.isBesideAll(m)
}

// promote grants the lock to the longest compatible prefix of the attached waiters, removes lapsed places, and skips
// detached waiters. It goes through the queue in order, and the first incompatible waiter blocks all behind it:
// neither readers nor writers starve. The waiter of a set blocks them, too, until it is granted all its locks, see
// [deciders.promote]; it is ready if it fits. A waiter passes an
// earlier one only if one of them asks for an intention, and the two are compatible.
func (d *decider) promote() {
	queue, blocked := d.record.Queue, modes(0)
	d.ready, d.more = nil, false
	var left []*Waiter // nil while the queue is unchanged
	for i, before := range queue {
		w, stays := d.promoteWaiter(before, &blocked)
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
		d.record.Queue = left
	}
}

// promoteWaiter grants the lock to the waiter if it can, and adds it to blocked if it must wait. It returns the waiter
// as changed, and whether it stays in the queue.
func (d *decider) promoteWaiter(w *Waiter, blocked *modes) (*Waiter, bool) {
	switch {
	case w.GrantedUnclaimed:
		return w, true
	case len(d.events) < d.portion() && d.hasLostSession(&w.Lease):
		d.emitDequeued(*w, reasonSessionExpired)
		d.ousted = append(d.ousted, *w)
		d.freed = true
		return w, false
	case len(d.events) < d.portion() && d.hasLapsed(w):
		d.emitDequeued(*w, reasonPlaceLapsed)
		return w, false
	case blocked.blocksAll(w.Lease.Mode), !d.attached(w):
		return w, true
	case !blocked.letPass(w.Lease.Mode), d.paused(), !d.record.isCompatible(w.Lease.Mode, w.Capacity):
	case d.isSpent():
		d.more = true
	case w.Lease.Set == nil:
		return d.grantWaiter(*w, 0)
	default:
		d.ready = append(d.ready, w)
	}
	blocked.add(w.Lease.Mode)
	return w, true
}

// readyWaiter returns the waiter of the set of the lease l, nil if it is not ready at this lock.
func (d *decider) readyWaiter(l *Lease) *Waiter {
	for _, w := range d.ready {
		if w.Lease.ID == l.ID && slices.Equal(w.Lease.Set, l.Set) {
			return w
		}
	}
	return nil
}

// readyBefore returns the waiters of sets that were next, and did fit, before the decision changed the record.
func (d *decider) readyBefore() (ready []*Waiter) {
	r := d.view.Locks[slices.IndexFunc(d.view.Locks, func(r Record) bool { return r.Name == d.record.Name })]
	blocked := modes(0)
	for _, w := range r.Queue {
		if w.GrantedUnclaimed || !d.attached(w) {
			continue
		}
		if w.Lease.Set != nil && blocked.letPass(w.Lease.Mode) && r.isCompatible(w.Lease.Mode, w.Capacity) {
			ready = append(ready, w)
		}
		blocked.add(w.Lease.Mode)
	}
	return ready
}

// modes is a set of modes, a bit for each: those of waiters that wait.
type modes uint

func (m *modes) add(one Mode) { *m |= 1 << one }

func (m modes) has(one Mode) bool { return m&(1<<one) != 0 }

// blocksAll reports whether no waiter passes these, or one of the mode does not, and would not change that for others.
func (m modes) blocksAll(one Mode) bool {
	return m.has(Exclusive) || m.has(Permit) || m.has(one) && !m.letPass(one)
}

// letPass reports whether a waiter of the mode may be granted the lock before all of these.
func (m modes) letPass(one Mode) bool {
	for other := Exclusive; m != 0 && other <= MaxMode; other++ {
		if m.has(other) && !one.passes(other) {
			return false
		}
	}
	return true
}

// grantWaiter grants the lock to the waiter, with the token unless that is zero. A waiter of another replica stays in
// the queue until that replica has claimed the grant, in case the replica is gone.
func (d *decider) grantWaiter(w Waiter, token Token) (*Waiter, bool) {
	w.GrantedUnclaimed = w.Replica != d.view.Self
	want := w.Lease
	want.Attachment, want.Token = w.Attachment, token
	if w.GrantedUnclaimed {
		want.ClaimDeadline = d.begin.Add(ClaimTimeout)
	}
	d.grant(want, w.Capacity, w.Place)
	d.promoted = append(d.promoted, w)
	return &w, w.GrantedUnclaimed
}

// attached reports whether a call waits at the place.
func (d *decider) attached(w *Waiter) bool {
	return w.attachedAt(d.now, d.view.Now, d.view.Self) && !d.hasLostSession(&w.Lease)
}

// hasLapsed reports whether no call waits at the place, and the place is kept no longer. Every decision asks it of
// every waiter, so the cheap comparison that is false for almost all of them comes first.
func (d *decider) hasLapsed(w *Waiter) bool { return !d.now.Before(w.KeptUntil) && !d.attached(w) }

// attachedWaiters returns how many attached waiters have no grant yet.
func (d *decider) attachedWaiters() int {
	n := 0
	for _, w := range d.record.Queue {
		if !w.GrantedUnclaimed && d.attached(w) {
			n++
		}
	}
	return n
}

// hasWaiterAheadOf reports whether an attached waiter has no grant yet, which one of the mode may not pass.
func (d *decider) hasWaiterAheadOf(m Mode) bool {
	return slices.ContainsFunc(d.record.Queue, func(w *Waiter) bool {
		return !w.GrantedUnclaimed && !m.passes(w.Lease.Mode) && d.attached(w)
	})
}

// isQueueFull returns how many places count toward the limit, and reports whether it is reached. A place counts while
// its call waits, and for PlaceRetention after that. The place of a disconnected waiter may be kept longer, but does
// not count then, so that it does not keep new waiters out.
func (d *decider) isQueueFull(limit int) (n int, full bool) {
	if len(d.record.Queue) < limit {
		return len(d.record.Queue), false
	}
	for _, w := range d.record.Queue {
		if d.attached(w) || d.view.Now.Before(w.AliveUntil.Add(PlaceRetention)) {
			n++
		}
	}
	return n, n >= limit
}

// waiter returns the waiter with the lease ID.
func (d *decider) waiter(id LeaseID) (Waiter, bool) {
	i := slices.IndexFunc(d.record.Queue, func(w *Waiter) bool { return w.Lease.ID == id })
	if i < 0 {
		return Waiter{}, false
	}
	return *d.record.Queue[i], true
}

// replaceWaiter replaces the waiter at the place of w. It emits no event.
func (d *decider) replaceWaiter(w Waiter) {
	queue := slices.Clone(d.record.Queue)
	queue[slices.IndexFunc(queue, func(o *Waiter) bool { return o.Place == w.Place })] = &w
	d.record.Queue, d.changed = queue, true
}

// removeWaiter removes the waiter with the lease ID, if there is one. It emits no event.
func (d *decider) removeWaiter(id LeaseID) {
	if _, ok := d.waiter(id); ok {
		isIt := func(w *Waiter) bool { return w.Lease.ID == id }
		d.record.Queue = slices.DeleteFunc(slices.Clone(d.record.Queue), isIt)
		d.changed, d.freed = true, true
	}
}

// dequeue removes w from the queue. The caller then promotes the waiters that it blocked.
func (d *decider) dequeue(w Waiter, reason string) {
	d.removeWaiter(w.Lease.ID)
	d.emitDequeued(w, reason)
}

// detach leaves w in the queue without a call, and returns how long its place is kept. The caller then promotes the
// waiters that it blocked.
func (d *decider) detach(w Waiter) time.Duration {
	w = w.detach(d.now)
	d.replaceWaiter(w)
	d.freed = true
	return w.KeptUntil.Sub(d.now)
}

func (d *decider) emitDequeued(w Waiter, reason string) {
	e := Event{Kind: Dequeued, Place: w.Place, Reason: reason}
	if reason == reasonPlaceReleased {
		e.Ref = RefOf(d.record.Name, w.Lease.ID) // so that a repeated Release succeeds
	}
	d.emit(e, w.Lease)
}

// isUndelivered reports whether no client can know of the lease yet.
func (d *decider) isUndelivered(l Lease) bool {
	return l.Unclaimed() || slices.ContainsFunc(d.promoted, func(w Waiter) bool { return w.Lease.ID == l.ID })
}
