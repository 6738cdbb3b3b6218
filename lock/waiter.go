package lock

import "time"

// A Replica is the random number that identifies one process of the service. The zero Replica is none.
type Replica int64

// An Attachment is the random number that identifies one waiting call. A place belongs to the lease_id; the
// attachment identifies the call that waits there now, so that an abandoned call cannot affect the call that replaced
// it. The zero Attachment is none.
type Attachment int64

// A Waiter is a place in the queue of a lock.
type Waiter struct {
	Place    int64 // the lock's revision when the place was taken: the order of the queue
	Lease    Lease // the requested lease: no slot, token or instants yet
	Capacity int   // number of permits, for mode Permit
	JoinedAt time.Time

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

// attach returns w with the call of a.
func (w Waiter) attach(a Acquire, now time.Time) Waiter {
	w.Attachment, w.Replica, w.Lease.Task = a.Attachment, a.Replica, a.Thread()
	w.WaitUntil, w.AliveUntil = now.Add(a.Wait), now.Add(ReplicaTTL)
	w.KeptUntil = w.WaitUntil.Add(PlaceRetention)
	return w
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
