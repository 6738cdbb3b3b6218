package lock

import (
	"slices"
	"time"
)

// A turn is a command on its way to a decision about a single lock.
type turn struct {
	view     View
	now      time.Time
	state    Record
	changed  bool
	events   []Event
	promoted []Waiter
}

// begin starts a turn at the view's one lock by settling what time has changed.
// The lock's time does not run backwards, should the database's clock be set back.
func begin(v View) *turn {
	t := &turn{view: v, now: v.Now, state: v.Locks[0]}
	if t.now.Before(t.state.ChangedAt) {
		t.now = t.state.ChangedAt
	}
	for _, l := range t.state.Leases {
		if t.now.Before(l.EndsAt()) {
			continue
		}
		switch {
		case l.Revoked():
			t.drop(l)
		case l.Unclaimed():
			t.withdraw(l, notClaimed, l.Place)
		default:
			t.end(l, Expired, "")
		}
	}
	t.promote()
	return t
}

// decided returns the turn's outcome: a refusal unless err is nil.
func (t *turn) decided(err error) Decision {
	return Decision{
		Now: t.now, Locks: []Record{t.state}, Changed: t.changed, Events: t.events, Err: err,
		Promoted: t.promoted, Due: t.due(),
	}
}

// granted returns the turn's outcome where it gives the lease.
func (t *turn) granted(l Lease, replay bool) Decision {
	t.told(l.ID)
	d := t.decided(nil)
	d.Grant, d.Replay = l, replay
	return d
}

// told strikes the lease from those whose waiters are to be told.
func (t *turn) told(id LeaseID) {
	t.promoted = slices.DeleteFunc(t.promoted, func(w Waiter) bool { return w.Lease.ID == id })
}

// lease returns the lease that id proves. A revoked lease is none: it has ended.
func (t *turn) lease(id LeaseID) (Lease, bool) {
	i := slices.IndexFunc(t.state.Leases, func(l Lease) bool { return l.ID == id && !l.Revoked() })
	if i < 0 {
		return Lease{}, false
	}
	return t.state.Leases[i], true
}

// grant gives the lock to who wants it, who came from that place in the queue,
// zero for none. It must fit.
func (t *turn) grant(want Lease, capacity int, place int64) Lease {
	l := want
	l.Place, l.AcquiredAt, l.ExpiresAt = place, t.now, time.Time{}
	l.ExpiresAt = l.endFrom(t.now)
	if l.Unclaimed() {
		l.ExpiresAt = l.ClaimDeadline
	}
	l.Slot = t.freeSlot(l.Mode)
	if first, ok := t.state.holding(); ok && l.Mode == Shared {
		l.Token = first.Token // one phase, one token: no reader fences another
	} else {
		l.Token = t.view.Tokens()
	}
	if l.Mode == Permit {
		t.state.Capacity = capacity
	}
	t.state.Leases = append(slices.Clone(t.state.Leases), l)
	t.state.Token, t.state.LastEnd = l.Token, 0
	t.record(Event{Kind: Granted, Place: place}, l)
	return l
}

// freeSlot returns the slot that the next lease of the mode sits in: 0 for an
// exclusive one, else the first from 1 on that is free.
func (t *turn) freeSlot(m Mode) int {
	if m == Exclusive {
		return 0
	}
	taken := make([]bool, len(t.state.Leases)+2)
	for i := range t.state.Leases {
		if slot := t.state.Leases[i].Slot; slot < len(taken) {
			taken[slot] = true
		}
	}
	return 1 + slices.Index(taken[1:], false)
}

// replace puts l where the lease with its ID is. It is not a transition.
func (t *turn) replace(l Lease) {
	leases := slices.Clone(t.state.Leases)
	leases[slices.IndexFunc(leases, func(o Lease) bool { return o.ID == l.ID })] = l
	t.state.Leases, t.changed = leases, true
}

// end takes the lease away, and what was left of its waiting.
func (t *turn) end(l Lease, how Kind, reason string) {
	t.takeAway(l, how)
	t.forget(l.ID)
	t.record(Event{Kind: how, Reason: reason, Ref: RefOf(t.state.Name, l.ID)}, l)
}

// withdraw takes back a grant of which nobody was told. It was as if it had never
// been, so its lease_id may be granted again. The place is the one that it has in
// the queue again, zero for none.
func (t *turn) withdraw(l Lease, reason string, place int64) {
	t.takeAway(l, Withdrawn)
	if w, ok := t.waiter(l.ID); ok {
		w.GrantedUnclaimed = false
		t.reseat(w)
	}
	t.record(Event{Kind: Withdrawn, Reason: reason, Place: place}, l)
}

// takeAway removes the lease. Who came out of the queue to it in this turn has
// nothing to be told of any more.
func (t *turn) takeAway(l Lease, how Kind) {
	t.told(l.ID)
	t.drop(l)
	t.noteEnd(l, how)
}

// drop removes the lease, whose end is recorded elsewhere.
func (t *turn) drop(l Lease) {
	t.state.Leases = slices.DeleteFunc(slices.Clone(t.state.Leases), func(o Lease) bool { return o.ID == l.ID })
	if len(t.state.Leases) == 0 {
		t.state.Capacity = 0
	}
	t.changed = true
}

// noteEnd sets how the newest grant ended, if l, which has ended, was the last of it.
func (t *turn) noteEnd(l Lease, how Kind) {
	if l.Token == t.state.Token && !slices.ContainsFunc(t.state.Leases, func(o Lease) bool { return o.Token == l.Token && !o.Revoked() }) {
		t.state.LastEnd = how
	}
}

// record notes the transition e of l.
func (t *turn) record(e Event, l Lease) {
	t.state.Revision++
	t.state.ChangedAt = t.now
	t.changed = true
	e.At, e.Name, e.Revision = t.now, t.state.Name, t.state.Revision
	e.Slot, e.Mode, e.Holder, e.Token = l.Slot, l.Mode, l.Holder, l.Token
	t.events = append(t.events, e)
}
