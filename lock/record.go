package lock

import (
	"slices"
	"time"
)

// A Record is the complete state of one lock. The zero Record with a name is a lock that was never used.
type Record struct {
	Name      string
	Revision  int64     // number of transitions
	Token     Token     // the newest granted; zero for none
	LastEnd   Kind      // how the newest grant ended; zero while it is active
	ChangedAt time.Time // time of the last transition
	// Leases are at most one exclusive lease, or shared leases, or those of up to Capacity permits. A lease stays here until
	// its end is recorded, so some may have expired, see ActiveLeases. A revoked lease stays until its grace is over.
	Leases   []Lease
	Capacity int // of the permits in Leases; zero if there are none
	// Closed is how the lock was closed by a Release since its newest grant, nil if it was not. It may be over. It is
	// shared, so never modify it in place.
	Closed *Closure
	// Queue contains the waiters in order. Several Records may share one Waiter, so never modify a Waiter in place:
	// copy the slice and the Waiter.
	Queue []*Waiter
}

// A Replica is the random number that identifies one process of the service. The zero Replica is none.
type Replica int64

// A Waiter is a place in the queue of a lock.
type Waiter struct {
	Place    int64 // the lock's revision when the place was taken: the order of the queue
	Lease    Lease // the requested lease: no slot, token or instants yet
	Capacity int   // number of permits that there are, for mode Permit
	Permits  int   // how many of them it asks for; zero: one
	Once     bool  // as in the Acquire
	JoinedAt time.Time

	Caller Caller // who made the call that waits, or that waited last

	// The waiting call. A waiter is attached while its call waits and its replica is alive. A detached waiter keeps
	// its place until KeptUntil and is skipped.
	Attachment Attachment // zero: none
	Replica    Replica    // serves the call
	WaitUntil  time.Time  // when the call's wait ends
	AliveUntil time.Time  // until when the replica is known to be alive
	KeptUntil  time.Time  // when the place is removed, unless a call is attached

	// GrantedUnclaimed reports whether the waiter was granted the lock, and its replica has not claimed the grant
	// yet.
	GrantedUnclaimed bool
}

// ActiveLeases returns the leases that have not ended at now, those in grace included.
func (r Record) ActiveLeases(now time.Time) []Lease {
	return slices.DeleteFunc(slices.Clone(r.Leases), func(l Lease) bool { return !now.Before(l.EndsAt()) })
}

// firstUnrevoked returns the first lease that is not revoked, false if there is none.
func (r Record) firstUnrevoked() (Lease, bool) {
	for i := range r.Leases {
		if !r.Leases[i].Revoked() {
			return r.Leases[i], true
		}
	}
	return Lease{}, false
}

// firstReader returns the first shared lease that is not revoked, false if there is none.
func (r Record) firstReader() (Lease, bool) {
	for i := range r.Leases {
		if l := &r.Leases[i]; l.Mode == Shared && !l.Revoked() {
			return *l, true
		}
	}
	return Lease{}, false
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

// permits returns how many permits the leases have.
func (r *Record) permits() (n int) {
	for i := range r.Leases {
		n += r.Leases[i].Permits()
	}
	return n
}

// isCompatible reports whether what m asks for can be granted beside the current leases.
func (r Record) isCompatible(m Member) bool {
	if len(r.Leases) == 0 {
		return m.Mode != Permit || m.permits() <= m.Capacity // a rule may have made it less since the call joined the queue
	}
	switch first := &r.Leases[0]; {
	case m.Mode.IsIntention() || first.Mode.IsIntention():
		return len(r.Leases) < MaxHolders && r.fitsInTree(m.Mode)
	case m.Mode != first.Mode || m.Mode == Exclusive:
		return false
	case m.Mode == Permit:
		return m.Capacity == r.Capacity && r.permits()+m.permits() <= m.Capacity
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

// Attached reports whether a call waits at the place at now, in the view of the replica self. For waiters that self
// serves, AliveUntil does not matter.
func (w Waiter) Attached(now time.Time, self Replica) bool { return w.attachedAt(now, now, self) }

// attachedAt is Attached with two times. now, the time of the decision, decides whether the wait has ended. clock, the
// database's clock, decides whether the replica is alive. It is earlier than now if it was set back.
func (w *Waiter) attachedAt(now, clock time.Time, self Replica) bool {
	return (w.Replica == self || clock.Before(w.AliveUntil)) && w.Attachment != 0 && now.Before(w.WaitUntil)
}

// hasLapsed reports whether no call waits at the place, and the place is kept no longer.
func (w Waiter) hasLapsed(now time.Time, self Replica) bool {
	return !w.Attached(now, self) && !now.Before(w.KeptUntil)
}

// Member returns what the waiter asks for.
func (w *Waiter) Member() Member {
	return Member{Name: w.Lease.Name, Mode: w.Lease.Mode, Capacity: w.Capacity, Permits: w.Permits}
}

// detach returns w without a call. Its place is kept until the wait that the call asked for is over, and for
// PlaceRetention at least.
func (w Waiter) detach(now time.Time) Waiter {
	if w.KeptUntil = now.Add(PlaceRetention); w.WaitUntil.After(w.KeptUntil) {
		w.KeptUntil = w.WaitUntil
	}
	w.Attachment, w.Replica, w.WaitUntil, w.AliveUntil = 0, 0, now, now
	w.GrantedUnclaimed = false
	return w
}

// SetTokens replaces the provisional tokens of the record by known ones, see [Token.Known].
func (r *Record) SetTokens(first Token) {
	r.Token = r.Token.Known(first)
	setTokens(r.Leases, first)
}

// OfSession returns the leases and places that the session has of the lock.
func (r Record) OfSession(ref SessionRef) (all []SessionLock) {
	for i := range r.Leases {
		if l := &r.Leases[i]; l.Session == ref && !l.Mode.IsIntention() {
			all = append(all, SessionLock{Name: r.Name, Mode: l.Mode, Slot: l.Slot, Slots: l.Slots, Token: l.Token})
		}
	}
	for _, w := range r.Queue {
		if w.Lease.Session == ref && !w.GrantedUnclaimed && !w.Lease.Mode.IsIntention() {
			all = append(all, SessionLock{Name: r.Name, Mode: w.Lease.Mode, Place: w.Place})
		}
	}
	return all
}

// isDone reports whether a release has closed the lock at now.
func (r Record) isDone(now time.Time) bool { return r.Closed != nil && now.Before(r.Closed.Until) }
