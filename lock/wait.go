package lock

import (
	"cmp"
	"slices"
	"time"
)

// A Claim asks whether a waiting call has been granted the lock, and claims the grant. A replica sends it after a
// wake-up; it has no effect while the call still waits.
type Claim struct {
	Locks      []string // in order
	LeaseID    LeaseID
	Attachment Attachment
	Place      int64     // at the first of the locks as they are decided; zero if it is not known
	SessionID  SessionID // as in the Acquire
	Once       bool      // as in the Acquire
	Requested  []string  // as in the Acquire
}

// Names returns the Locks.
func (c Claim) Names() []string { return c.Locks }

// Traits returns those of a question about a place.
func (c Claim) Traits() Traits {
	return Traits{Lease: c.LeaseID, Session: c.SessionID.Ref(), Queue: Claims}
}

// In returns c with the ancestors of its locks.
func (c Claim) In(p *Policy) (Command, error) {
	c.Locks, c.Requested = p.trees().expand(c.Locks)
	return c, nil
}

// Apply returns the lease, or sets Queued if the call still waits, or refuses if it waits no longer.
func (c Claim) Apply(v View) Decision {
	d := begin(v, c.Requested)
	d.applyTime()
	if leases, all := d.leases(c.LeaseID); all && leases[0].Attachment == c.Attachment {
		return d.finishWithLeases(d.claim(leases, c.Attachment), false)
	}
	if waiters, all := d.waiters(c.LeaseID); all && waiters[0].Attachment == c.Attachment {
		return d.finishWaiting()
	}
	return d.finish(cmp.Or(d.checkSession(c.SessionID), d.refuseDone(c.LeaseID, c.Once), d.refuseReplaced(c.LeaseID, c.Place)))
}

// refuseDone returns the refusal of a call that no longer waits, because the work that it is for is done; nil if that is
// not why.
func (d *decider) refuseDone(id LeaseID, once bool) error {
	if some, _ := d.waiters(id); !once || len(some) > 0 || d.hasEnded(id) {
		return nil
	}
	for _, s := range d.locks {
		if s.record.Closed != nil && !s.above {
			return errDone(s)
		}
	}
	return nil
}

// refuseReplaced returns the refusal of a call that no longer waits at its place: another call has taken or released
// the place, or records of its locks are gone. If records are gone, it removes the places that remain.
func (d *decider) refuseReplaced(id LeaseID, place int64) error {
	if d.hasEnded(id) {
		return errLost(d.locks, id)
	}
	some, all := d.waiters(id) // a call takes and gives up its places together
	for i, s := range d.locks {
		_, waits := s.waiter(id)
		if r := s.record; r.Revision == 0 || i == 0 && r.Revision < place || len(some) > 0 && !all && !waits {
			if d.removeWaiters(id, reasonPlaceLapsed) > 0 {
				d.promote()
			}
			return errRecordGone(r.Name)
		}
	}
	return errReplaced(d.locks[0])
}

// A Leave ends the wait of a call: its time is over, its client is disconnected, or its replica stops.
type Leave struct {
	Locks      []string // in order
	LeaseID    LeaseID
	Attachment Attachment
	Place      int64 // as in a Claim
	// KeepPlace keeps the place until the wait of the call would have ended, and for PlaceRetention at least. Set it for
	// a Disconnected call, unless its LeaseID was generated, so that no client can return with it.
	KeepPlace bool
	// Disconnected reports whether the client is gone. It decides what happens if the call was granted the lock before
	// the Leave: if set, the grant is withdrawn, and with KeepPlace the waiter returns to its place. If not set, the
	// Leave returns the grant.
	Disconnected bool
	WaitLeft     time.Duration // how much was left of the wait, for a place whose waiter was granted the lock before
	SessionID    SessionID     // as in the Acquire
	Once         bool          // as in the Acquire
	Requested    []string      // as in the Acquire
}

// Names returns the Locks.
func (l Leave) Names() []string { return l.Locks }

// Traits returns those of the end of a wait.
func (l Leave) Traits() Traits {
	return Traits{Lease: l.LeaseID, Session: l.SessionID.Ref(), Queue: Leaves}
}

// In returns l with the ancestors of its locks.
func (l Leave) In(p *Policy) (Command, error) {
	l.Locks, l.Requested = p.trees().expand(l.Locks)
	return l, nil
}

// Apply removes or detaches the waiter, or withdraws the grant. It does not change a place or a lease that another
// call with the same LeaseID has taken over.
func (l Leave) Apply(v View) Decision {
	d := begin(v, l.Requested)
	d.applyTime()
	if leases, all := d.leases(l.LeaseID); all && leases[0].Attachment == l.Attachment {
		if !l.Disconnected {
			return d.finishWithLeases(d.claim(leases, l.Attachment), false)
		}
		for i, s := range d.locks {
			s.withdrawDisconnected(leases[i], l)
		}
		d.promote()
		return d.finish(nil)
	}
	waiters, all := d.waiters(l.LeaseID)
	switch {
	case !all || waiters[0].Attachment != l.Attachment:
		return d.finish(cmp.Or(d.checkSession(l.SessionID), d.refuseDone(l.LeaseID, l.Once), d.refuseReplaced(l.LeaseID, l.Place)))
	case l.Disconnected:
		for i, s := range d.locks {
			if l.KeepPlace {
				s.detach(waiters[i])
			} else {
				s.dequeue(waiters[i], reasonDisconnected)
			}
		}
		d.promote()
		return d.finish(nil)
	}
	if leases, ok := d.promoteNow(slices.Clone(waiters)); ok { // the wait ended before the Leave was decided, but the lock is free
		return d.finishWithLeases(d.claim(leases, l.Attachment), false)
	}
	return d.finish(d.endWait(waiters, l.KeepPlace))
}

// withdrawDisconnected withdraws a grant whose client is gone. by.KeepPlace returns the waiter to its place. The caller
// then promotes.
func (s *lockState) withdrawDisconnected(l Lease, by Leave) {
	w := Waiter{Place: l.Place, Lease: l.asRequested(), JoinedAt: l.AcquiredAt, WaitUntil: s.now.Add(by.WaitLeft)}
	if l.Mode == Permit {
		w.Capacity, w.Permits = s.record.Capacity, l.Permits()
	}
	if queued, ok := s.waiter(l.ID); ok {
		w = queued
		s.removeWaiter(l.ID)
	}
	if l.Place == 0 || !by.KeepPlace {
		s.withdraw(l, reasonDisconnected, 0)
	} else {
		s.withdraw(l, reasonCallLost, l.Place)
		s.reinsertWaiter(w.detach(s.now))
	}
}
