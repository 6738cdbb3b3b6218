package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// enqueue appends a to the queues of its locks, if it waits or keeps its place. Otherwise it refuses.
func (ds deciders) enqueue(a Acquire) Decision {
	if a.Wait == 0 && !a.KeepPlace {
		return ds.finish(ds.errHeld(a.members(), a.LeaseID))
	}
	if a.LimitReached {
		return ds.finish(&Error{Code: ErrTooManyWaiters, RetryAfter: ds.errHeld(a.members(), a.LeaseID).RetryAfter,
			Detail: "The limit on waiting calls is reached and this lock is not free. Retry later."})
	}
	for _, d := range ds {
		if n, full := d.isQueueFull(a.maxWaiters); full {
			e := d.errHeld(0)
			return ds.finish(&Error{Code: ErrTooManyWaiters, RetryAfter: e.RetryAfter, Ahead: e.Ahead,
				Detail: fmt.Sprintf("The queue of %s is full: %d calls wait. Retry later.", ds.lockText(d), n)})
		}
	}
	set, waiters := ds.set(), make([]Waiter, len(ds))
	for i, m := range a.members() {
		d := ds[i]
		l := a.newLease(m, set)
		d.emit(Event{Kind: Queued, Place: d.record.Revision + 1}, l)
		w := Waiter{Place: d.record.Revision, Lease: l, Capacity: m.Capacity, JoinedAt: d.now}
		if a.Wait > 0 {
			w = w.attach(a, d.now)
		}
		queue := make([]*Waiter, len(d.record.Queue)+1)
		queue[copy(queue, d.record.Queue)] = &w
		d.record.Queue, waiters[i] = queue, w
	}
	if err := ds.waitsForItself(a); err != nil {
		ds.removeWaiters(a.LeaseID, reasonDeadlock)
		ds.promote()
		return ds.finish(err)
	}
	return ds.waitOrEnd(a, waiters)
}

// waitsForItself returns the refusal of a call that has just joined, if the task of the call holds what it waits for,
// so that it would wait for itself. Deadlocks of several tasks are found later, see [BreakDeadlock].
func (ds deciders) waitsForItself(a Acquire) error {
	thread := a.Thread()
	if thread == "" || a.Wait == 0 {
		return nil
	}
	own := func(l Lease) bool { return l.Task.Includes(thread) }
	if !slices.ContainsFunc(ds, func(d *decider) bool { return slices.ContainsFunc(d.record.Leases, own) }) {
		return nil
	}
	if found := ds.deadlocksOf(a.LeaseID); len(found) > 0 {
		return DeadlockError(found[0].Cycle)
	}
	return nil
}

// lockText returns how an error message calls the lock of d.
func (ds deciders) lockText(d *decider) string {
	if len(ds) == 1 {
		return "this lock"
	}
	return "the lock " + strconv.Quote(d.record.Name)
}

// resumeWait continues a wait at the places that an earlier call with the same LeaseID took.
func (ds deciders) resumeWait(a Acquire, waiters []Waiter) Decision {
	for i, d := range ds {
		waiters[i] = waiters[i].attach(a, d.now)
	}
	if leases, ok := ds.promoteNow(waiters); ok {
		return ds.finishWithLeases(ds.claim(leases, a.Attachment), false)
	}
	if a.Wait > 0 {
		for i, d := range ds {
			d.replaceWaiter(waiters[i])
		}
	}
	return ds.waitOrEnd(a, waiters)
}

// waitOrEnd returns the decision for the call of a, whose places are those of the waiters: it waits, or ends its wait
// at once.
func (ds deciders) waitOrEnd(a Acquire, waiters []Waiter) Decision {
	if a.Wait == 0 {
		return ds.finish(ds.endWait(waiters, a.KeepPlace))
	}
	out := ds.finish(nil)
	out.Queued = true
	return out
}

// promoteNow attaches the waiters of a call, promotes, and returns its leases if it was granted the locks. Otherwise
// they stay in the queues with a wait that has almost ended; the caller must replace or remove them.
func (ds deciders) promoteNow(waiters []Waiter) ([]Lease, bool) {
	for i, d := range ds {
		w := waiters[i]
		w.Attachment, w.Replica, w.WaitUntil = cmp.Or(w.Attachment, momentary), d.view.Self, d.now.Add(1)
		d.replaceWaiter(w)
	}
	ds.promote()
	return ds.leases(waiters[0].Lease.ID)
}

// momentary is the attachment of a call that does not wait, during its own decision.
const momentary Attachment = -1

// endWait ends the wait of a call, whose places are those of the waiters, and returns its refusal.
func (ds deciders) endWait(waiters []Waiter, keep bool) error {
	members, kept := make([]Member, len(ds)), time.Duration(0)
	for i, d := range ds {
		w := waiters[i]
		members[i] = Member{Name: d.record.Name, Mode: w.Lease.Mode, Capacity: w.Capacity}
		if keep {
			kept = d.detach(w)
		} else {
			d.dequeue(w, reasonWaitEnded)
		}
	}
	ds.promote()
	e := ds.errHeld(members, waiters[0].Lease.ID)
	if e.KeptFor = kept; keep {
		e.Detail += fmt.Sprintf(" Your place is kept for %d ms; retry with the same lease_id.", kept.Milliseconds())
	}
	return e
}

// removeWaiters removes the waiters with the LeaseID, and returns how many there were. The caller then promotes.
func (ds deciders) removeWaiters(id LeaseID, reason string) (n int) {
	for _, d := range ds {
		if w, ok := d.waiter(id); ok {
			d.dequeue(w, reason)
			n++
		}
	}
	return n
}

// claim assigns the leases to the call, see [decider.claim].
func (ds deciders) claim(leases []Lease, by Attachment) []Lease {
	for i, d := range ds {
		leases[i] = d.claim(leases[i], by)
	}
	return leases
}

// claim assigns the lease to the call. The TTL and max hold start now if the grant was still unclaimed. If an
// earlier decision granted the lease to another call, claim sets the Attachment to zero: a client may know of the
// lease, so the Leave of neither call may withdraw it.
func (d *decider) claim(l Lease, by Attachment) Lease {
	switch {
	case l.Unclaimed():
		d.claimed = d.begin.Sub(l.ClaimDeadline.Add(-ClaimTimeout))
		l.ClaimDeadline = time.Time{}
		l = l.begunAt(d.begin)
		l.Attachment = by
		d.removeWaiter(l.ID)
	case l.Attachment == by:
		return l
	case d.isUndelivered(l):
		l.Attachment = by
	default:
		l.Attachment = 0
	}
	d.replaceLease(l)
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
	ds := begin(v)
	ds.applyTime()
	if leases, all := ds.leases(c.LeaseID); all && leases[0].Attachment == c.Attachment {
		return ds.finishWithLeases(ds.claim(leases, c.Attachment), false)
	}
	if waiters, all := ds.waiters(c.LeaseID); all && waiters[0].Attachment == c.Attachment {
		out := ds.finish(nil)
		out.Queued = true
		return out
	}
	return ds.finish(cmp.Or(ds.checkSession(c.SessionID), ds.errReplaced(c.LeaseID, c.Place)))
}

// errReplaced returns the refusal of a call that waits no longer at its place: another call has taken or released it,
// or the records of locks are gone.
func (ds deciders) errReplaced(id LeaseID, place int64) error {
	if ds.hasEnded(id) {
		return ds.errLost(id)
	}
	some, all := ds.waiters(id) // a call takes and gives up its places together
	for i, d := range ds {
		_, waits := d.waiter(id)
		if r := d.record; r.Revision == 0 || i == 0 && r.Revision < place || len(some) > 0 && !all && !waits {
			if ds.removeWaiters(id, reasonPlaceLapsed) > 0 {
				ds.promote()
			}
			return &Error{Code: ErrHeld, RetryAfter: retrySoon, Detail: fmt.Sprintf("The row of %s in paddock.records is gone, and this "+
				"call's place in the queue with it: it was deleted by hand. Acquire again, to join at the end of the queue.", r.Name)}
		}
	}
	e := ds[0].errHeld(0)
	e.Detail = "A later call with the same lease_id took over or released this call's place. " + e.Detail
	return e
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
	ds := begin(v)
	ds.applyTime()
	if leases, all := ds.leases(l.LeaseID); all && leases[0].Attachment == l.Attachment {
		if !l.Disconnected {
			return ds.finishWithLeases(ds.claim(leases, l.Attachment), false)
		}
		for i, d := range ds {
			d.withdrawDisconnected(leases[i], l)
		}
		ds.promote()
		return ds.finish(nil)
	}
	waiters, all := ds.waiters(l.LeaseID)
	switch {
	case !all || waiters[0].Attachment != l.Attachment:
		return ds.finish(cmp.Or(ds.checkSession(l.SessionID), ds.errReplaced(l.LeaseID, l.Place)))
	case l.Disconnected:
		for i, d := range ds {
			if l.KeepPlace {
				d.detach(waiters[i])
			} else {
				d.dequeue(waiters[i], reasonDisconnected)
			}
		}
		ds.promote()
		return ds.finish(nil)
	}
	if leases, ok := ds.promoteNow(slices.Clone(waiters)); ok { // the wait ended before the Leave was decided, but the lock is free
		return ds.finishWithLeases(ds.claim(leases, l.Attachment), false)
	}
	return ds.finish(ds.endWait(waiters, l.KeepPlace))
}

// withdrawDisconnected withdraws a grant whose client is gone. by.KeepPlace returns the waiter to its place. The caller
// then promotes.
func (d *decider) withdrawDisconnected(l Lease, by Leave) {
	w := Waiter{Place: l.Place, Lease: l.asRequested(), JoinedAt: l.AcquiredAt, WaitUntil: d.now.Add(by.WaitLeft)}
	if l.Mode == Permit {
		w.Capacity = d.record.Capacity
	}
	if queued, ok := d.waiter(l.ID); ok {
		w = queued
		d.removeWaiter(l.ID)
	}
	if l.Place == 0 || !by.KeepPlace {
		d.withdraw(l, reasonDisconnected, 0)
	} else {
		d.withdraw(l, reasonCallLost, l.Place)
		d.reinsertWaiter(w.detach(d.now))
	}
}

// reinsertWaiter puts w back at its place. It emits no event.
func (d *decider) reinsertWaiter(w Waiter) {
	byPlace := func(o *Waiter, place int64) int { return cmp.Compare(o.Place, place) }
	i, _ := slices.BinarySearchFunc(d.record.Queue, w.Place, byPlace)
	d.record.Queue = slices.Insert(slices.Clone(d.record.Queue), i, &w)
}
