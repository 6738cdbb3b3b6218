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

// eventBudget bounds what one decision does that the next one can do as well. It removes no places that have lapsed
// after that many events: there may be many more than MaxHolders of them after a replica died. The next decision goes
// on; the Due of this one is not after its Now. With the leases that a decision on one lock ends and grants, at most
// MaxHolders each time, it has no more than 4096 events. In a decision on several locks, each has an equal share of
// the budget, which then bounds its grants and revocations, too.
const eventBudget = 1000

// budget returns the lock's share of eventBudget.
func (s *lockState) budget() int { return eventBudget / len(s.view.Locks) }

// isSpent reports whether the decision can grant nothing more: it has had its tokens, or it is on several locks and
// has spent its share of events on this one.
func (s *lockState) isSpent() bool {
	return s.hasDrawnAll() || len(s.view.Locks) > 1 && len(s.events) >= s.budget()
}

// conflicting returns the leases that keep one of the mode from being granted, all unless the lock is in a tree. The
// zero Mode conflicts with all.
func (r Record) conflicting(m Mode) []Lease {
	compatible := func(l Lease) bool {
		return m != 0 && (m.IsIntention() || l.Mode.IsIntention() || r.Leases[0].Mode.IsIntention()) && m.compatibleInTree(l.Mode)
	}
	if !slices.ContainsFunc(r.Leases, compatible) {
		return r.Leases
	}
	return slices.DeleteFunc(slices.Clone(r.Leases), compatible)
}

// isCompatible reports whether a lease of the mode can be granted beside the current leases.
func (r Record) isCompatible(m Mode, capacity int) bool {
	if len(r.Leases) == 0 {
		return true
	}
	switch first := &r.Leases[0]; {
	case m.IsIntention() || first.Mode.IsIntention():
		return len(r.Leases) < MaxHolders && r.fitsInTree(m)
	case m != first.Mode || m == Exclusive:
		return false
	case m == Permit:
		return capacity == r.Capacity && len(r.Leases) < capacity
	}
	return len(r.Leases) < MaxHolders
}

// fitsInTree reports whether no lease conflicts with one of the mode in a tree.
func (r Record) fitsInTree(m Mode) bool {
	return !slices.ContainsFunc(r.Leases, func(l Lease) bool { return !m.compatibleInTree(l.Mode) })
}

// isFull reports whether a lease of the mode conflicts with no lease, but there are MaxHolders of them.
func (r Record) isFull(m Mode) bool {
	return m != 0 && m != Permit && len(r.Leases) >= MaxHolders && r.fitsInTree(m)
}

// promoteInTurn grants the lock to the longest compatible prefix of the attached waiters, removes lapsed places, and skips
// detached waiters. It goes through the queue in order, and the first incompatible waiter blocks all behind it:
// neither readers nor writers starve. The waiter of a set blocks them, too, until it is granted all its locks, see
// [decider.promote]; it is ready if it fits. A waiter overtakes an earlier one only if one of them asks for an
// intention, and the two are compatible.
func (s *lockState) promoteInTurn() {
	queue, blocked := s.record.Queue, modeSet(0)
	s.ready, s.deferred = nil, false
	var left []*Waiter // nil while the queue is unchanged
	for i, before := range queue {
		w, stays := s.promoteWaiter(before, &blocked)
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
		s.record.Queue = left
	}
}

// promoteWaiter grants the lock to the waiter if it can, and adds it to blocked if it must wait. It returns the waiter
// as changed, and whether it stays in the queue.
func (s *lockState) promoteWaiter(w *Waiter, blocked *modeSet) (*Waiter, bool) {
	switch {
	case w.GrantedUnclaimed:
		return w, true
	case len(s.events) < s.budget() && s.hasLostSession(&w.Lease):
		s.emitDequeued(*w, reasonSessionExpired)
		s.ousted = append(s.ousted, *w)
		s.madeRoom = true
		return w, false
	case len(s.events) < s.budget() && s.hasLapsed(w):
		s.emitDequeued(*w, reasonPlaceLapsed)
		return w, false
	case blocked.covers(w.Lease.Mode), !s.attached(w):
		return w, true
	case !blocked.allowOvertaking(w.Lease.Mode), s.paused(), !s.record.isCompatible(w.Lease.Mode, w.Capacity):
	case s.isSpent():
		s.deferred = true
	case w.Lease.Set == nil:
		return s.grantWaiter(*w, 0)
	default:
		s.ready = append(s.ready, w)
	}
	blocked.add(w.Lease.Mode)
	return w, true
}

// readyWaiter returns the waiter of the set of the lease l, nil if it is not ready at this lock.
func (s *lockState) readyWaiter(l *Lease) *Waiter {
	for _, w := range s.ready {
		if w.Lease.ID == l.ID && slices.Equal(w.Lease.Set, l.Set) {
			return w
		}
	}
	return nil
}

// readyBefore returns the waiters of sets that were next, and did fit, before the decision changed the record.
func (s *lockState) readyBefore() (ready []*Waiter) {
	r := s.view.Locks[slices.IndexFunc(s.view.Locks, func(r Record) bool { return r.Name == s.record.Name })]
	blocked := modeSet(0)
	for _, w := range r.Queue {
		if w.GrantedUnclaimed || !s.attached(w) {
			continue
		}
		if w.Lease.Set != nil && blocked.allowOvertaking(w.Lease.Mode) && r.isCompatible(w.Lease.Mode, w.Capacity) {
			ready = append(ready, w)
		}
		blocked.add(w.Lease.Mode)
	}
	return ready
}

// A modeSet is a set of modes, a bit for each: those of the waiters that stay in the queue.
type modeSet uint

func (m *modeSet) add(one Mode) { *m |= 1 << one }

func (m modeSet) has(one Mode) bool { return m&(1<<one) != 0 }

// covers reports whether a waiter of this mode is blocked and need not be added: the modes already block everyone it
// would block.
func (m modeSet) covers(one Mode) bool {
	return m.has(Exclusive) || m.has(Permit) || m.has(one) && !m.allowOvertaking(one)
}

// allowOvertaking reports whether a waiter of this mode may be granted the lock before waiters of all of these modes.
func (m modeSet) allowOvertaking(one Mode) bool {
	for other := Exclusive; m != 0 && other <= MaxMode; other++ {
		if m.has(other) && !one.mayOvertake(other) {
			return false
		}
	}
	return true
}

// grantWaiter grants the lock to the waiter, with the token unless that is zero. A waiter of another replica stays in
// the queue until that replica has claimed the grant, in case the replica is gone.
func (s *lockState) grantWaiter(w Waiter, token Token) (*Waiter, bool) {
	w.GrantedUnclaimed = w.Replica != s.view.Self
	want := w.Lease
	want.Attachment, want.Token = w.Attachment, token
	if w.GrantedUnclaimed {
		want.ClaimDeadline = s.begin.Add(ClaimTimeout)
	}
	s.grant(want, w.Capacity, w.Place)
	s.promoted = append(s.promoted, w)
	return &w, w.GrantedUnclaimed
}

// attached reports whether a call waits at the place.
func (s *lockState) attached(w *Waiter) bool {
	return w.attachedAt(s.now, s.view.Now, s.view.Self) && !s.hasLostSession(&w.Lease)
}

// hasLapsed reports whether no call waits at the place, and the place is kept no longer. Every decision asks it of
// every waiter, so the cheap comparison that is false for almost all of them comes first.
func (s *lockState) hasLapsed(w *Waiter) bool { return !s.now.Before(w.KeptUntil) && !s.attached(w) }

// attachedWaiters returns how many attached waiters have no grant yet.
func (s *lockState) attachedWaiters() int {
	n := 0
	for _, w := range s.record.Queue {
		if !w.GrantedUnclaimed && s.attached(w) {
			n++
		}
	}
	return n
}

// fits reports whether the lock can be granted to the call for m: no lease conflicts, and no attached waiter is before
// its place, or at all if it has none.
func (s *lockState) fits(m Member, id LeaseID) bool {
	for _, w := range s.record.Queue {
		if w.Lease.ID == id {
			break
		}
		if !w.GrantedUnclaimed && !m.Mode.mayOvertake(w.Lease.Mode) && s.attached(w) {
			return false
		}
	}
	return !s.paused() && s.record.isCompatible(m.Mode, m.Capacity)
}

// isQueueFull returns how many places count toward the limit, and reports whether it is reached. A place counts while
// its call waits, and for PlaceRetention after that. The place of a disconnected waiter may be kept longer, but does
// not count then, so that it does not keep new waiters out.
func (s *lockState) isQueueFull(limit int) (n int, full bool) {
	if len(s.record.Queue) < limit {
		return len(s.record.Queue), false
	}
	for _, w := range s.record.Queue {
		if s.attached(w) || s.view.Now.Before(w.AliveUntil.Add(PlaceRetention)) {
			n++
		}
	}
	return n, n >= limit
}

// waiter returns the waiter with the lease ID.
func (s *lockState) waiter(id LeaseID) (Waiter, bool) {
	i := slices.IndexFunc(s.record.Queue, func(w *Waiter) bool { return w.Lease.ID == id })
	if i < 0 {
		return Waiter{}, false
	}
	return *s.record.Queue[i], true
}

// replaceWaiter replaces the waiter at the place of w. It emits no event.
func (s *lockState) replaceWaiter(w Waiter) {
	queue := slices.Clone(s.record.Queue)
	queue[slices.IndexFunc(queue, func(o *Waiter) bool { return o.Place == w.Place })] = &w
	s.record.Queue, s.changed = queue, true
}

// removeWaiter removes the waiter with the lease ID, if there is one. It emits no event.
func (s *lockState) removeWaiter(id LeaseID) {
	if _, ok := s.waiter(id); ok {
		isIt := func(w *Waiter) bool { return w.Lease.ID == id }
		s.record.Queue = slices.DeleteFunc(slices.Clone(s.record.Queue), isIt)
		s.changed, s.madeRoom = true, true
	}
}

// dequeue removes w from the queue. The caller then promotes the waiters that it blocked.
func (s *lockState) dequeue(w Waiter, reason string) {
	s.removeWaiter(w.Lease.ID)
	s.emitDequeued(w, reason)
}

// detach leaves w in the queue without a call, and returns how long its place is kept. The caller then promotes the
// waiters that it blocked.
func (s *lockState) detach(w Waiter) time.Duration {
	w = w.detach(s.now)
	s.replaceWaiter(w)
	s.madeRoom = true
	return w.KeptUntil.Sub(s.now)
}

func (s *lockState) emitDequeued(w Waiter, reason string) {
	e := Event{Kind: Dequeued, Place: w.Place, Reason: reason}
	if reason == reasonPlaceReleased {
		e.Ref = RefOf(s.record.Name, w.Lease.ID) // so that a repeated Release succeeds
	}
	s.emit(e, w.Lease)
}

// isUndelivered reports whether no client can know of the lease yet.
func (s *lockState) isUndelivered(l Lease) bool {
	return l.Unclaimed() || slices.ContainsFunc(s.promoted, func(w Waiter) bool { return w.Lease.ID == l.ID })
}
