package lock

import (
	"cmp"
	"slices"
	"time"
)

// A basis is what a decision on several locks has in common.
type basis struct {
	view  View
	begin time.Time // of what is granted or renewed, see decider
	drawn int       // how many tokens
}

// drawToken returns the next token.
func (b *basis) drawToken() Token {
	b.drawn++
	return b.view.Tokens()
}

// hasDrawnAll reports whether the decision has drawn all tokens that promotions may have. One is left for the command.
func (b *basis) hasDrawnAll() bool { return b.drawn >= MaxTokens-1 }

// paused reports whether grants are paused after a fail-over or a restore.
func (b *basis) paused() bool { return b.view.Now.Before(b.view.GrantsPausedUntil) }

// isDone reports whether a Release has closed the lock, and it is not open again.
func (s *lockState) isDone() bool { return s.record.isDone(s.view.Now) }

// freezeOf returns the freeze that stops grants of the lock in the mode for the longest time, nil if there is none.
func (s *lockState) freezeOf(m Mode) *Freeze { return longestFreeze(s.freezes, s.record.Name, m) }

// isClosed reports whether nothing may be granted in the mode now, whatever the leases.
func (s *lockState) isClosed(m Mode) bool { return s.paused() || s.isDone() || s.freezeOf(m) != nil }

// A lockState is the state of one lock while a command is decided: its record as changed so far, and the events. It
// changes the record and emits events; the [decider] makes the decisions.
type lockState struct {
	*basis
	now      time.Time // of the lock
	freezes  []Freeze  // in force that stop grants of the lock, in some mode at least
	rule     *Rule     // that applies to the lock, nil for none
	above    bool      // the request does not name the lock: it is an ancestor of one that it names
	record   Record
	changed  bool
	events   []Event
	ended    []EndedLease
	losses   []SessionLoss
	promoted []Waiter
	ousted   []Waiter
	claimed  time.Duration
	// ready are the waiters of sets that are next at this lock and fit, see promoteInTurn: one at most, outside of trees.
	ready []*Waiter
	// madeRoom: this decision removed a lease or a waiter, or time may have, so a waiting set may now be grantable.
	// timePassed: a set may have become grantable because time passed, although the record is unchanged.
	madeRoom   bool
	timePassed bool
	// deferred: a waiter that fits is left to the next decision, because this one has spent its events or tokens.
	deferred bool
}

// index returns the index of the lease with that ID, or -1.
func (s *lockState) index(id LeaseID) int {
	return slices.IndexFunc(s.record.Leases, func(l Lease) bool { return l.ID == id })
}

// lease returns the lease with that ID. A revoked lease has ended and is not returned.
func (s *lockState) lease(id LeaseID) (Lease, bool) {
	i := slices.IndexFunc(s.record.Leases, func(l Lease) bool { return l.ID == id && !l.Revoked() })
	if i < 0 {
		return Lease{}, false
	}
	return s.record.Leases[i], true
}

// isUndelivered reports whether no client can know of the lease yet.
func (s *lockState) isUndelivered(l Lease) bool {
	return l.Unclaimed() || slices.ContainsFunc(s.promoted, func(w Waiter) bool { return w.Lease.ID == l.ID })
}

// waiter returns the waiter with the lease ID.
func (s *lockState) waiter(id LeaseID) (Waiter, bool) {
	i := slices.IndexFunc(s.record.Queue, func(w *Waiter) bool { return w.Lease.ID == id })
	if i < 0 {
		return Waiter{}, false
	}
	return *s.record.Queue[i], true
}

// leaseOrPlace returns the lease with that ID, or what its waiter asks for.
func (s *lockState) leaseOrPlace(id LeaseID) (Lease, bool) {
	if l, ok := s.lease(id); ok {
		return l, true
	}
	w, ok := s.waiter(id)
	return w.Lease, ok
}

// attached reports whether a call waits at the place, and can be granted what it asks for. If a rule has made the capacity
// less than that, the waiter is skipped until its wait ends or the capacity grows: it must not block the others for ever.
func (s *lockState) attached(w *Waiter) bool {
	return w.attachedAt(s.now, s.view.Now, s.view.Self) && checkPermits(w.Member()) == nil && !s.hasLostSession(&w.Lease)
}

// hasLostSession reports whether the lease, or what a waiter asks for, is of a session that is over. That is decided
// by the database's clock, even if the lock's time is ahead of it: no lock decides on a session.
func (s *lockState) hasLostSession(l *Lease) bool {
	return l.Session != 0 && !s.view.Now.Before(l.ExpiresAt.Add(l.Grace))
}

// endOf returns the event that ended the lease, if it is known. A released place is not an ended lease.
func (s *lockState) endOf(id LeaseID) (Event, bool) {
	e, ok := s.lastEvent(id)
	return e, ok && e.Kind != Dequeued
}

// lastEvent returns the last known event that refers to the lease: how it has ended, or that its place was released.
// None is known at a lock above: the ends there are not read, see [Traits.Refs].
func (s *lockState) lastEvent(id LeaseID) (Event, bool) {
	if s.above {
		return Event{}, false
	}
	ref := RefOf(s.record.Name, id)
	for _, e := range slices.Backward(s.events) {
		if e.Ref == ref {
			return e, true
		}
	}
	e, ok := s.view.Ended[ref]
	return e, ok
}

// endDue ends what has ended by time.
func (s *lockState) endDue() {
	for _, l := range s.record.Leases {
		byItself, bySession := l.isDue(s.now), s.hasLostSession(&l)
		switch {
		case !byItself && !bySession:
		case l.Revoked():
			s.removeLease(l)
		case l.Unclaimed():
			s.withdraw(l, ReasonUnclaimed, l.Place)
		case l.stays():
			l.Suspect = true
			s.replaceLease(l)
			s.emit(Event{Kind: Suspected}, l)
		case byItself:
			s.endLease(l, Event{Kind: Expired})
		default:
			s.endLease(l, Event{Kind: Expired, Reason: reasonSessionExpired})
		}
	}
}

// grant adds the lease want of what m asks for, which must be compatible. It draws a token unless want has one. place is
// that of the waiter, or zero if it did not wait; by is who made the call.
func (s *lockState) grant(want Lease, m Member, place int64, by Caller) Lease {
	l := s.view.Policy.within(want).startedAt(s.begin)
	if l.Place = place; l.Unclaimed() && l.Session == 0 {
		l.ExpiresAt = l.ClaimDeadline
	}
	l.Slot, l.Slots = s.freeSlots(m)
	if first, ok := s.record.firstReader(); ok && l.Mode == Shared {
		l.Token = first.Token // readers that overlap share a token: no reader fences another
	} else if l.Token == 0 {
		l.Token = s.drawToken()
	}
	if l.Mode == Permit {
		s.record.Capacity = m.Capacity
	}
	s.record.Closed = nil
	s.record.Leases = append(slices.Clone(s.record.Leases), l)
	s.record.Token, s.record.LastEnd = max(s.record.Token, l.Token), 0 // readers may join an earlier token than one below
	s.emit(Event{Kind: Granted, Place: place, Caller: by}, l)
	return l
}

// assign gives the lease to the call. The TTL and max hold start now if the grant was still unclaimed. If an
// earlier decision granted the lease to another call, assign sets the Attachment to zero: a client may know of the
// lease, so the Leave of neither call may withdraw it.
func (s *lockState) assign(l Lease, by Attachment) Lease {
	switch {
	case l.Unclaimed():
		s.claimed = s.begin.Sub(l.ClaimDeadline.Add(-ClaimTimeout))
		l.ClaimDeadline = time.Time{}
		l = l.startedAt(s.begin)
		l.Attachment = by
		s.removeWaiter(l.ID)
	case l.Attachment == by:
		return l
	case s.isUndelivered(l):
		l.Attachment = by
	default:
		l.Attachment = 0
	}
	s.replaceLease(l)
	return l
}

// freeSlots returns the slots of the next lease of m: 0 for an exclusive one, else the first free ones from 1.
func (s *lockState) freeSlots(m Member) (first int, all Slots) {
	if m.Mode == Exclusive {
		return 0, ""
	}
	taken := make([]bool, s.record.permits()+m.permits()+1)
	take := func(slot int) {
		if slot < len(taken) {
			taken[slot] = true
		}
	}
	for i := range s.record.Leases {
		if l := &s.record.Leases[i]; l.Slots == "" {
			take(l.Slot)
		} else {
			for _, slot := range l.Slots.All(l.Slot) {
				take(slot)
			}
		}
	}
	first = 1 + slices.Index(taken[1:], false)
	if m.permits() == 1 {
		return first, ""
	}
	free := make([]int, 0, m.permits())
	for slot := first; len(free) < m.permits(); slot++ {
		if !taken[slot] {
			free = append(free, slot)
		}
	}
	return first, SlotsOf(free)
}

// replaceLease replaces the lease with the ID of l. It emits no event.
func (s *lockState) replaceLease(l Lease) {
	leases := slices.Clone(s.record.Leases)
	leases[slices.IndexFunc(leases, func(o Lease) bool { return o.ID == l.ID })] = l
	s.record.Leases, s.changed = leases, true
}

// endLease ends the lease and removes its waiter, if the grant was unclaimed. The event says how and why.
func (s *lockState) endLease(l Lease, e Event) {
	s.removeEnded(l, e.Kind)
	s.removeWaiter(l.ID)
	e.Ref = RefOf(s.record.Name, l.ID)
	s.emit(e, l)
}

// withdraw takes back a grant that no client knows of. The event has no Ref, so the lease_id may be granted again.
// place is the place to which the waiter returns, or zero if it leaves the queue.
func (s *lockState) withdraw(l Lease, reason string, place int64) {
	s.removeEnded(l, Withdrawn)
	if w, ok := s.waiter(l.ID); ok {
		w.GrantedUnclaimed = false
		s.replaceWaiter(w)
	}
	e := Event{Kind: Withdrawn, Reason: reason, Place: place}
	if reason != ReasonUnclaimed {
		e.Caller = s.view.Caller
	}
	s.emit(e, l)
}

// removeEnded removes the lease and records how it ended. If this decision granted it, its waiter is not notified.
func (s *lockState) removeEnded(l Lease, how Kind) {
	s.removePromoted(l.ID)
	s.removeLease(l)
	s.noteEnd(l, how)
}

// removePromoted removes the lease's waiter from those to notify.
func (s *lockState) removePromoted(id LeaseID) {
	s.promoted = slices.DeleteFunc(s.promoted, func(w Waiter) bool { return w.Lease.ID == id })
}

// removeLease removes the lease. It emits no event.
func (s *lockState) removeLease(l Lease) {
	left := make([]Lease, 0, max(len(s.record.Leases)-1, 0))
	for i := range s.record.Leases {
		if o := &s.record.Leases[i]; o.ID != l.ID {
			left = append(left, *o)
		}
	}
	if s.record.Leases = left; len(left) == 0 {
		s.record.Capacity = 0
	}
	s.changed, s.madeRoom = true, true
}

// noteEnd records how l has ended, and how the newest token has, if l was the last lease with that token.
func (s *lockState) noteEnd(l Lease, how Kind) {
	if l.Mode.IsIntention() {
		return // the lease that it stands for is noted
	}
	at := s.now
	if how == Expired {
		at = l.EndsAt()
	}
	s.ended = append(s.ended, EndedLease{ID: l.ID, Token: l.Token, Mode: l.Mode, How: how, Held: at.Sub(l.AcquiredAt)})
	active := func(o Lease) bool { return o.Token == l.Token && !o.Revoked() }
	if l.Token == s.record.Token && !slices.ContainsFunc(s.record.Leases, active) {
		s.record.LastEnd = how
	}
}

// replaceWaiter replaces the waiter at the place of w. It emits no event.
func (s *lockState) replaceWaiter(w Waiter) {
	queue := slices.Clone(s.record.Queue)
	queue[slices.IndexFunc(queue, func(o *Waiter) bool { return o.Place == w.Place })] = &w
	s.record.Queue, s.changed = queue, true
}

// reinsertWaiter puts w back at its place. It emits no event.
func (s *lockState) reinsertWaiter(w Waiter) {
	byPlace := func(o *Waiter, place int64) int { return cmp.Compare(o.Place, place) }
	i, _ := slices.BinarySearchFunc(s.record.Queue, w.Place, byPlace)
	s.record.Queue = slices.Insert(slices.Clone(s.record.Queue), i, &w)
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
	e := Event{Kind: Dequeued, Place: w.Place, Reason: reason, Caller: w.Caller}
	switch reason {
	case reasonPlaceReleased:
		e.Ref = RefOf(s.record.Name, w.Lease.ID) // so that a repeated Release succeeds
		e.Caller = s.view.Caller
	case reasonSessionClosed, reasonSessionRevoked:
		e.Caller = s.view.Caller
	case reasonSessionExpired, reasonPlaceLapsed:
		e.Caller = Caller{}
	}
	s.emit(e, w.Lease)
}

// emit appends e, a transition of the lease l, and increments the revision. A transition of an intention has no event:
// that of the lease that it stands for is at its own lock.
func (s *lockState) emit(e Event, l Lease) {
	s.record.Revision++
	s.record.ChangedAt = s.now
	s.changed = true
	if l.Mode.IsIntention() {
		return
	}
	e.At, e.Name, e.Revision = s.now, s.record.Name, s.record.Revision
	e.Slot, e.Slots, e.Mode, e.Holder, e.Token = l.Slot, l.Slots, l.Mode, l.Holder, l.Token
	if e.Session = cmp.Or(e.Session, l.Session); l.Set != nil {
		e.Set = l.together()
	}
	s.events = append(s.events, e)
}
