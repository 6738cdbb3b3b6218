package lock

import (
	"math"
	"slices"
	"time"
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
	case !blocked.allowOvertaking(w.Lease.Mode), s.isClosed(w.Lease.Mode), !s.record.isCompatible(w.Member()):
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
		if w.Lease.Set != nil && blocked.allowOvertaking(w.Lease.Mode) && r.isCompatible(w.Member()) {
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
	s.grant(want, w.Member(), w.Place, w.Caller)
	s.promoted = append(s.promoted, w)
	return &w, w.GrantedUnclaimed
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

// fits reports whether the call can be granted what m asks for: no lease conflicts, and no attached waiter is before its
// place, or at all if it has none.
func (s *lockState) fits(m Member, id LeaseID) bool {
	for _, w := range s.record.Queue {
		if w.Lease.ID == id {
			break
		}
		if !w.GrantedUnclaimed && !m.Mode.mayOvertake(w.Lease.Mode) && s.attached(w) {
			return false
		}
	}
	return !s.isClosed(m.Mode) && s.record.isCompatible(m)
}

// capacityInUse returns the capacity of the permits that are held or waited for, zero if there are none. A detached
// waiter that returns with another one is granted its permit when the others are released.
func (s *lockState) capacityInUse() int {
	if s.record.Capacity != 0 {
		return s.record.Capacity
	}
	for _, w := range s.record.Queue {
		if w.Lease.Mode == Permit && s.attached(w) {
			return w.Capacity
		}
	}
	return 0
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

// nextDue returns the earliest instant at which the lock may change without a request, or zero for never.
func (s *lockState) nextDue() time.Time {
	var first time.Time
	include := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for i := range s.record.Leases {
		if end := s.record.Leases[i].due(); !end.IsZero() {
			include(end)
		}
	}
	if s.deferred {
		include(s.now)
	}
	if at := s.nextOpening(); !at.IsZero() && len(s.record.Queue) > 0 {
		include(s.now.Add(at.Sub(s.view.Now)))
	}
	if s.isDone() && slices.ContainsFunc(s.record.Queue, func(w *Waiter) bool { return w.Once && w.Lease.Set == nil }) {
		include(s.now) // there are more of them than one decision removes
	}
	lastOwn := int64(math.MinInt64)
	for _, w := range slices.Backward(s.record.Queue) {
		if w.Replica == s.view.Self {
			lastOwn = w.Place
			break
		}
	}
	for _, w := range s.record.Queue {
		if !w.GrantedUnclaimed {
			include(s.waiterDue(w, w.Place < lastOwn))
		}
	}
	return first
}

// nextOpening returns the next instant at which one of the things that close the lock ends, zero for none.
func (s *lockState) nextOpening() (first time.Time) {
	ends := []time.Time{s.view.GrantsPausedUntil}
	if s.record.Closed != nil {
		ends = append(ends, s.record.Closed.Until)
	}
	for _, f := range s.freezes {
		ends = append(ends, f.Until)
	}
	for _, at := range ends {
		if s.view.Now.Before(at) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// waiterDue returns the next instant at which this replica treats w differently without a request: the wait ends, the
// place lapses, or, if ownBehind is set, the heartbeat of w's replica times out. ownBehind reports whether this
// replica has a waiter behind w, which may then be granted the lock.
func (s *lockState) waiterDue(w *Waiter, ownBehind bool) time.Time {
	if w.Replica == s.view.Self && s.attached(w) {
		return w.WaitUntil
	}
	alive := w.AliveUntil
	if !s.now.Before(alive) { // the lock's time is ahead of the clock
		alive = s.now.Add(w.AliveUntil.Sub(s.view.Now))
	}
	switch {
	case !s.attached(w):
		return w.KeptUntil
	case ownBehind && alive.Before(w.WaitUntil):
		return alive
	}
	return w.WaitUntil
}
