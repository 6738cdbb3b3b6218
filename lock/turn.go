package lock

import (
	"slices"
	"time"
)

// A decider is a command on its way to a decision about a single lock.
type decider struct {
	view     View
	now      time.Time
	record    Record
	changed  bool
	events   []Event
	promoted []Waiter
}

// newDecider starts a turn at the view's one lock by settling what time has changed.
// The lock's time does not run backwards, should the database's clock be set back.
func newDecider(v View) *decider {
	t := &decider{view: v, now: v.Now, record: v.Locks[0]}
	if t.now.Before(t.record.ChangedAt) {
		t.now = t.record.ChangedAt
	}
	for _, l := range t.record.Leases {
		if t.now.Before(l.EndsAt()) {
			continue
		}
		switch {
		case l.Revoked():
			t.removeLease(l)
		case l.Unclaimed():
			t.withdraw(l, reasonUnclaimed, l.Place)
		default:
			t.endLease(l, Expired, "")
		}
	}
	t.promote()
	return t
}

// finish returns the turn's outcome: a refusal unless err is nil.
func (t *decider) finish(err error) Decision {
	return Decision{
		Now: t.now, Locks: []Record{t.record}, Changed: t.changed, Events: t.events, Err: err,
		Promoted: t.promoted, Due: t.nextDue(),
	}
}

// finishWithLease returns the turn's outcome where it gives the lease.
func (t *decider) finishWithLease(l Lease, replay bool) Decision {
	t.removePromoted(l.ID)
	d := t.finish(nil)
	d.Grant, d.Replay = l, replay
	return d
}

// removePromoted strikes the lease from those whose waiters are to be told.
func (t *decider) removePromoted(id LeaseID) {
	t.promoted = slices.DeleteFunc(t.promoted, func(w Waiter) bool { return w.Lease.ID == id })
}

// lease returns the lease that id proves. A revoked lease is none: it has ended.
func (t *decider) lease(id LeaseID) (Lease, bool) {
	i := slices.IndexFunc(t.record.Leases, func(l Lease) bool { return l.ID == id && !l.Revoked() })
	if i < 0 {
		return Lease{}, false
	}
	return t.record.Leases[i], true
}

// grant gives the lock to who wants it, who came from that place in the queue,
// zero for none. It must fit.
func (t *decider) grant(want Lease, capacity int, place int64) Lease {
	l := want
	l.Place, l.AcquiredAt, l.ExpiresAt = place, t.now, time.Time{}
	l.ExpiresAt = l.expiryFrom(t.now)
	if l.Unclaimed() {
		l.ExpiresAt = l.ClaimDeadline
	}
	l.Slot = t.freeSlot(l.Mode)
	if first, ok := t.record.firstUnrevoked(); ok && l.Mode == Shared {
		l.Token = first.Token // one phase, one token: no reader fences another
	} else {
		l.Token = t.view.Tokens()
	}
	if l.Mode == Permit {
		t.record.Capacity = capacity
	}
	t.record.Leases = append(slices.Clone(t.record.Leases), l)
	t.record.Token, t.record.LastEnd = l.Token, 0
	t.emit(Event{Kind: Granted, Place: place}, l)
	return l
}

// freeSlot returns the slot that the next lease of the mode sits in: 0 for an
// exclusive one, else the first from 1 on that is free.
func (t *decider) freeSlot(m Mode) int {
	if m == Exclusive {
		return 0
	}
	taken := make([]bool, len(t.record.Leases)+2)
	for i := range t.record.Leases {
		if slot := t.record.Leases[i].Slot; slot < len(taken) {
			taken[slot] = true
		}
	}
	return 1 + slices.Index(taken[1:], false)
}

// replaceLease puts l where the lease with its ID is. It is not a transition.
func (t *decider) replaceLease(l Lease) {
	leases := slices.Clone(t.record.Leases)
	leases[slices.IndexFunc(leases, func(o Lease) bool { return o.ID == l.ID })] = l
	t.record.Leases, t.changed = leases, true
}

// endLease takes the lease away, and what was left of its waiting.
func (t *decider) endLease(l Lease, how Kind, reason string) {
	t.removeEnded(l, how)
	t.removeWaiter(l.ID)
	t.emit(Event{Kind: how, Reason: reason, Ref: RefOf(t.record.Name, l.ID)}, l)
}

// withdraw takes back a grant of which nobody was told. It was as if it had never
// been, so its lease_id may be granted again. The place is the one that it has in
// the queue again, zero for none.
func (t *decider) withdraw(l Lease, reason string, place int64) {
	t.removeEnded(l, Withdrawn)
	if w, ok := t.waiter(l.ID); ok {
		w.GrantedUnclaimed = false
		t.replaceWaiter(w)
	}
	t.emit(Event{Kind: Withdrawn, Reason: reason, Place: place}, l)
}

// removeEnded removes the lease. Who came out of the queue to it in this turn has
// nothing to be told of any more.
func (t *decider) removeEnded(l Lease, how Kind) {
	t.removePromoted(l.ID)
	t.removeLease(l)
	t.setLastEnd(l, how)
}

// removeLease removes the lease, whose end is recorded elsewhere.
func (t *decider) removeLease(l Lease) {
	t.record.Leases = slices.DeleteFunc(slices.Clone(t.record.Leases), func(o Lease) bool { return o.ID == l.ID })
	if len(t.record.Leases) == 0 {
		t.record.Capacity = 0
	}
	t.changed = true
}

// setLastEnd sets how the newest grant ended, if l, which has ended, was the last of it.
func (t *decider) setLastEnd(l Lease, how Kind) {
	if l.Token == t.record.Token && !slices.ContainsFunc(t.record.Leases, func(o Lease) bool { return o.Token == l.Token && !o.Revoked() }) {
		t.record.LastEnd = how
	}
}

// emit notes the transition e of l.
func (t *decider) emit(e Event, l Lease) {
	t.record.Revision++
	t.record.ChangedAt = t.now
	t.changed = true
	e.At, e.Name, e.Revision = t.now, t.record.Name, t.record.Revision
	e.Slot, e.Mode, e.Holder, e.Token = l.Slot, l.Mode, l.Holder, l.Token
	t.events = append(t.events, e)
}
