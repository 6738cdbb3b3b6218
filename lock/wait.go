package lock

import (
	"cmp"
	"slices"
	"time"
)

// enqueue appends a to the queues of its locks, if it waits or keeps its place. Otherwise it refuses.
func (d *decider) enqueue(a Acquire) Decision {
	if a.Wait == 0 && !a.KeepPlace {
		return d.finish(errNotGranted(d.locks, a.members(), a.LeaseID))
	}
	if a.LimitReached {
		return d.finish(errLimitReached(errNotGranted(d.locks, a.members(), a.LeaseID)))
	}
	for _, s := range d.locks {
		if n, full := s.isQueueFull(a.maxWaiters); full {
			return d.finish(errQueueFull(d.locks, s, n))
		}
	}
	set, waiters := d.set(), make([]Waiter, len(d.locks))
	for i, m := range a.members() {
		s := d.locks[i]
		l := a.newLease(m, set)
		s.emit(Event{Kind: Queued, Place: s.record.Revision + 1}, l)
		w := Waiter{Place: s.record.Revision, Lease: l, Capacity: m.Capacity, JoinedAt: s.now}
		if a.Wait > 0 {
			w = w.attach(a, s.now)
		}
		queue := make([]*Waiter, len(s.record.Queue)+1)
		queue[copy(queue, s.record.Queue)] = &w
		s.record.Queue, waiters[i] = queue, w
	}
	if err := d.waitsForItself(a); err != nil {
		d.removeWaiters(a.LeaseID, reasonDeadlock)
		d.promote()
		return d.finish(err)
	}
	return d.waitOrEnd(a, waiters)
}

// waitsForItself returns the refusal of a call that has just joined, if the task of the call holds what it waits for,
// so that it would wait for itself. Deadlocks of several tasks are found later, see [BreakDeadlock].
func (d *decider) waitsForItself(a Acquire) error {
	thread := a.Thread()
	if thread == "" || a.Wait == 0 {
		return nil
	}
	own := func(l Lease) bool { return l.Task.Includes(thread) }
	if !slices.ContainsFunc(d.locks, func(s *lockState) bool { return slices.ContainsFunc(s.record.Leases, own) }) {
		return nil
	}
	if found := d.deadlocksOf(a.LeaseID); len(found) > 0 {
		return DeadlockError(found[0].Cycle)
	}
	return nil
}

// resumeWait continues a wait at the places that an earlier call with the same LeaseID took.
func (d *decider) resumeWait(a Acquire, waiters []Waiter) Decision {
	for i, s := range d.locks {
		waiters[i] = waiters[i].attach(a, s.now)
	}
	if leases, ok := d.promoteNow(waiters); ok {
		return d.finishWithLeases(d.claim(leases, a.Attachment), false)
	}
	if a.Wait > 0 {
		for i, s := range d.locks {
			s.replaceWaiter(waiters[i])
		}
	}
	return d.waitOrEnd(a, waiters)
}

// waitOrEnd returns the decision for the call of a, whose places are those of the waiters: it waits, or ends its wait
// at once.
func (d *decider) waitOrEnd(a Acquire, waiters []Waiter) Decision {
	if a.Wait == 0 {
		return d.finish(d.endWait(waiters, a.KeepPlace))
	}
	out := d.finish(nil)
	out.Queued = true
	return out
}

// promoteNow attaches the waiters of a call, promotes, and returns its leases if it was granted the locks. Otherwise
// they stay in the queues with a wait that has almost ended; the caller must replace or remove them.
func (d *decider) promoteNow(waiters []Waiter) ([]Lease, bool) {
	for i, s := range d.locks {
		w := waiters[i]
		w.Attachment, w.Replica, w.WaitUntil = cmp.Or(w.Attachment, duringDecision), s.view.Self, s.now.Add(1)
		s.replaceWaiter(w)
	}
	d.promote()
	return d.leases(waiters[0].Lease.ID)
}

// duringDecision is the attachment of a call that does not wait, for the time of its own decision.
const duringDecision Attachment = -1

// endWait ends the wait of a call, whose places are those of the waiters, and returns its refusal.
func (d *decider) endWait(waiters []Waiter, keep bool) error {
	members, kept := make([]Member, len(d.locks)), time.Duration(0)
	for i, s := range d.locks {
		w := waiters[i]
		members[i] = Member{Name: s.record.Name, Mode: w.Lease.Mode, Capacity: w.Capacity}
		if keep {
			kept = s.detach(w)
		} else {
			s.dequeue(w, reasonWaitEnded)
		}
	}
	d.promote()
	return errWaitEnded(d.locks, members, waiters[0].Lease.ID, kept)
}

// removeWaiters removes the waiters with the LeaseID, and returns how many there were. The caller then promotes.
func (d *decider) removeWaiters(id LeaseID, reason string) (n int) {
	for _, s := range d.locks {
		if w, ok := s.waiter(id); ok {
			s.dequeue(w, reason)
			n++
		}
	}
	return n
}

// claim assigns the leases to the call, see [lockState.assign].
func (d *decider) claim(leases []Lease, by Attachment) []Lease {
	for i, s := range d.locks {
		leases[i] = s.assign(leases[i], by)
	}
	return leases
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

// A Claim asks whether a waiting call has been granted the lock, and claims the grant. A replica sends it after a
// wake-up; it has no effect while the call still waits.
type Claim struct {
	Name       string
	Set        []string // in order, instead of Name
	LeaseID    LeaseID
	Attachment Attachment
	Place      int64     // at the first of the locks as they are decided; zero if it is not known
	SessionID  SessionID // as in the Acquire
}

// Names returns the lock's name, or the set.
func (c Claim) Names() []string { return namesOf(c.Name, c.Set) }

// Refs returns the leases of c.
func (c Claim) Refs() []LeaseRef { return refsOf(c.Names(), c.LeaseID) }

// Apply returns the lease, or sets Queued if the call still waits, or refuses if it waits no longer.
func (c Claim) Apply(v View) Decision {
	d := begin(v)
	d.applyTime()
	if leases, all := d.leases(c.LeaseID); all && leases[0].Attachment == c.Attachment {
		return d.finishWithLeases(d.claim(leases, c.Attachment), false)
	}
	if waiters, all := d.waiters(c.LeaseID); all && waiters[0].Attachment == c.Attachment {
		out := d.finish(nil)
		out.Queued = true
		return out
	}
	return d.finish(cmp.Or(d.checkSession(c.SessionID), d.refuseReplaced(c.LeaseID, c.Place)))
}

// refuseReplaced returns the refusal of a call that waits no longer at its place: another call has taken or released
// it, or the records of locks are gone. It removes what is left of the places then.
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
	Name       string
	Set        []string // in order, instead of Name
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
}

// Names returns the lock's name, or the set.
func (l Leave) Names() []string { return namesOf(l.Name, l.Set) }

// Refs returns the leases of l.
func (l Leave) Refs() []LeaseRef { return refsOf(l.Names(), l.LeaseID) }

// Apply removes or detaches the waiter, or withdraws the grant. It does not change a place or a lease that another
// call with the same LeaseID has taken over.
func (l Leave) Apply(v View) Decision {
	d := begin(v)
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
		return d.finish(cmp.Or(d.checkSession(l.SessionID), d.refuseReplaced(l.LeaseID, l.Place)))
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
		w.Capacity = s.record.Capacity
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

// reinsertWaiter puts w back at its place. It emits no event.
func (s *lockState) reinsertWaiter(w Waiter) {
	byPlace := func(o *Waiter, place int64) int { return cmp.Compare(o.Place, place) }
	i, _ := slices.BinarySearchFunc(s.record.Queue, w.Place, byPlace)
	s.record.Queue = slices.Insert(slices.Clone(s.record.Queue), i, &w)
}
