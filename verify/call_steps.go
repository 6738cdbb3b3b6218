package verify

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// callOperation returns the operation of a call, nil if its answer says nothing about the lock or if
// the operation of an event stands for it.
func (t *lockHistory) callOperation(c *Call) *operation {
	step := t.stepOf(c)
	if step == nil {
		return nil
	}
	o := &operation{text: c.requestText() + ": " + c.responseText(), call: c, from: c.Sent, to: c.Answered, before: -1,
		step: step}
	if c.Outcome() == Unknown {
		o.to = t.last + 1
	}
	first, last := t.epochsOf(c)
	o.isIn(t.epochs, first, last)
	return o
}

// epochsOf returns the epochs of which one has decided the call, as far as the lock that it shows bounds them.
func (t *lockHistory) epochsOf(c *Call) (first, last int) {
	first, last = t.epochs.ofCall(c)
	if g, ok := c.Response.(lock.Grant); ok {
		for _, l := range t.groupOf(c).leases {
			if l.matches(g.Lease) {
				return t.epochs.ofAnswer(l, c)
			}
		}
	}
	if seen, ok := c.Response.(lock.Lock); ok {
		if i, found := t.event(seen.Revision); found {
			first = max(first, t.epochs.of(&t.events[i]))
		}
		if i, found := t.event(seen.Revision + 1); found {
			last = min(last, t.epochs.of(&t.events[i]))
		}
	}
	return first, max(first, last)
}

// A step returns the lock after an operation, false if the rules do not allow the operation.
type step func(lock.Record) (lock.Record, bool)

func (t *lockHistory) stepOf(c *Call) step {
	switch a := c.Request.(type) {
	case lock.Acquire:
		if c.Outcome() == Done {
			return t.acquireStep(a, grant(c))
		}
		return t.refusalStep(c, a.LeaseID)
	case lock.Renew:
		return t.renewStep(c, a)
	case lock.Release:
		return t.releaseStep(c, a)
	case lock.Revoke:
		return t.revokeStep(c, a)
	case string, paddock.Watch:
		if look, ok := c.Response.(lock.Lock); ok {
			return t.readStep(look)
		}
	case lock.Verify:
		if v, ok := c.Response.(lock.Verification); ok {
			return verifyStep(a, v)
		}
	case lock.FencedWrite:
		return t.writeStep(c, a)
	}
	return nil
}

// acquireStep requires that the lease in the answer of an acquire is held.
func (t *lockHistory) acquireStep(a lock.Acquire, g lock.Grant) step {
	return func(s lock.Record) (lock.Record, bool) {
		i, ok := findLease(s, a.LeaseID)
		if !ok {
			return s, false
		}
		l := s.Leases[i]
		same := l.Token == g.Token && l.Slot == g.Slot && l.Slots == g.Slots && !l.Unclaimed()
		return s, same &&
			(endUnknown(l) || l.AcquiredAt.Equal(g.AcquiredAt) && l.ExpiresAt.Equal(g.ExpiresAt))
	}
}

// renewStep applies a renewal. An answered one happened at the earliest time that leads to the
// answered end. One without an answer makes the end unknown.
func (t *lockHistory) renewStep(c *Call, r lock.Renew) step {
	switch c.Outcome() {
	case Unknown:
		return lostRenewalStep(r.LeaseID)
	case Done:
		g := grant(c)
		return func(s lock.Record) (lock.Record, bool) { return t.applyRenewal(s, r, g) }
	}
	return t.refusalStep(c, r.LeaseID)
}

// lostRenewalStep applies a renewal without an answer: if the lease is held, its end becomes unknown.
func lostRenewalStep(id lock.LeaseID) step {
	return func(s lock.Record) (lock.Record, bool) {
		i, ok := findLease(s, id)
		if !ok {
			return s, true
		}
		l := s.Leases[i]
		l.ExpiresAt, l.ClaimDeadline = unknownEnd(), time.Time{}
		return withLease(s, i, l), true
	}
}

func (t *lockHistory) applyRenewal(s lock.Record, r lock.Renew, g lock.Grant) (lock.Record, bool) {
	i, ok := findLease(s, r.LeaseID)
	if !ok || s.Leases[i].Token != g.Token || s.Leases[i].Slot != g.Slot || s.Leases[i].Slots != g.Slots {
		return s, false
	}
	l := s.Leases[i]
	if g.Session != 0 {
		return s, true // it moves nothing
	}
	if endUnknown(l) {
		l.TTL, l.Suspect, l.AcquiredAt, l.ExpiresAt = g.TTL, false, g.AcquiredAt, g.ExpiresAt
		return withLease(s, i, l), true
	}
	if r.TTL = cmp.Or(r.TTL, l.TTL); t.ruled { // a rule may have shortened it, which another check judges
		r.TTL = min(r.TTL, g.TTL)
	}
	at := g.ExpiresAt.Add(-r.TTL)
	if at.Before(s.ChangedAt) {
		at = s.ChangedAt
	}
	r.Locks, r.Metadata = []string{t.name}, nil
	d := r.Apply(viewAt(s, at))
	if d.Err != nil || !d.Leases[0].ExpiresAt.Equal(g.ExpiresAt) || !d.Leases[0].AcquiredAt.Equal(g.AcquiredAt) {
		return s, false
	}
	return withLease(s, i, d.Leases[0]), true
}

// releaseStep requires that the lease of an answered release is not held. The release itself is the
// operation of its event.
func (t *lockHistory) releaseStep(c *Call, r lock.Release) step {
	switch c.Outcome() {
	case Done:
		return absent(r.LeaseID)
	case Refused:
		return t.refusalStep(c, r.LeaseID)
	}
	return nil
}

func absent(id lock.LeaseID) step {
	return func(s lock.Record) (lock.Record, bool) {
		_, ok := findLease(s, id)
		return s, !ok
	}
}

// refusalStep requires that the lock justifies the refusal of a call with that lease_id. One with deadlock says nothing
// about the lock alone.
func (t *lockHistory) refusalStep(c *Call, id lock.LeaseID) step {
	var e *lock.Error
	if !errors.As(c.Err, &e) || c.Outcome() != Refused {
		return nil
	}
	switch e.Code {
	case lock.ErrLeaseLost:
		return func(s lock.Record) (lock.Record, bool) {
			i, ok := findLease(s, id)
			return s, !ok || e.Ended == lock.Expired && maxHoldReached(s.Leases[i], e.EndedAt)
		}
	case lock.ErrHeld:
		a, _ := c.Request.(lock.Acquire)
		return func(s lock.Record) (lock.Record, bool) {
			return s, t.heldIsJustified(s, a, e, t.epochs.mayPause(c)) || c.whole != nil && e.Holder == ""
		}
	}
	return nil
}

// maxHoldReached reports whether the lease may have reached its max hold at that time: it is held
// until its grace is over, but renewals are refused. A lease with an unknown end may have at any time.
func maxHoldReached(l lock.Lease, end time.Time) bool {
	if l.MaxHold == 0 {
		return false
	}
	return endUnknown(l) || !end.Before(l.ExpiresAt)
}

// heldIsJustified reports whether a refusal with lock_held was correct. The refusal must name a
// current holder. A call that does not wait, while no request waits, must be incompatible with the
// held leases, unless grants may be paused.
func (t *lockHistory) heldIsJustified(s lock.Record, a lock.Acquire, e *lock.Error, paused bool) bool {
	if e.Holder == "" {
		// Another call took over its place, and the lock was free; or a set waits for it and for others.
		return a.Wait > 0 || a.KeepPlace || e.Ahead > 0 && t.hasSets()
	}
	if e.Newest != 0 && e.Newest != s.Token {
		return false
	}
	holds := false
	for _, l := range s.Leases {
		holds = holds || l.Holder == e.Holder
	}
	byRule := a.Locks[0].Mode == lock.Permit && a.Locks[0].Capacity == 0 // how many permits there were is not known here
	if !holds || a.Wait > 0 || a.KeepPlace || e.Ahead > 0 || byRule || paused {
		return holds
	}
	if _, mine := findLease(s, a.LeaseID); mine {
		return false
	}
	a = withLock(t.withoutSession(a), t.name)
	a.TTL = cmp.Or(a.TTL, time.Hour)
	return errors.Is(a.Apply(viewAt(s, s.ChangedAt)).Err, lock.ErrHeld)
}

// revokeStep checks the lock that a revocation returned, or that the token did not hold the lock. The
// ends of leases are operations of their events.
func (t *lockHistory) revokeStep(c *Call, r lock.Revoke) step {
	if l, ok := c.Response.(lock.Lock); ok {
		return t.readStep(l)
	}
	if !errors.Is(c.Err, lock.ErrTokenMismatch) {
		return nil
	}
	return func(s lock.Record) (lock.Record, bool) {
		r.Name = t.name
		over := s // after the grace of revoked leases
		over.Leases = slices.DeleteFunc(slices.Clone(s.Leases), func(l lock.Lease) bool {
			return l.Revoked() || !r.AcquiredAt.IsZero() && endUnknown(l) // its start may have moved when it was claimed
		})
		mismatch := func(s lock.Record) bool {
			return errors.Is(r.Apply(viewAt(s, s.ChangedAt)).Err, lock.ErrTokenMismatch)
		}
		return s, mismatch(s) || mismatch(over)
	}
}

// readStep requires that the lock is as the read showed it. A plain read may precede a grant with
// an earlier timestamp, so it does not advance the lock's time.
func (t *lockHistory) readStep(seen lock.Lock) step {
	return func(s lock.Record) (lock.Record, bool) {
		is, open := s.Lock(seen.AsOf), 0
		for _, l := range s.ActiveLeases(seen.AsOf) {
			if endUnknown(l) {
				open++
			}
		}
		if is.Token != seen.Token || open == 0 && is.State != seen.State || len(seen.Leases) > len(is.Leases) {
			return s, false
		}
		matched := 0
		for _, l := range s.ActiveLeases(seen.AsOf) {
			h, ok := leaseInSlot(seen, l.Slot)
			switch {
			case !ok && endUnknown(l):
			case !ok || h.Token != l.Token || h.Slots != l.Slots || h.Holder != l.Holder || h.Mode != l.Mode || h.Revoked != l.Revoked():
				return s, false
			case !endUnknown(l) && !h.AcquiredAt.Equal(l.AcquiredAt),
				!endUnknown(l) && !h.ExpiresAt.Equal(l.ExpiresAt) && !unclaimed(l, h):
				return s, false
			default:
				matched++
			}
		}
		return s, matched == len(seen.Leases)
	}
}

// unclaimed reports whether the read showed the lease before it was claimed, at the time of its grant.
func unclaimed(l lock.Lease, h lock.LeaseInfo) bool {
	return l.Place != 0 && h.ExpiresAt.Equal(h.AcquiredAt.Add(lock.ClaimTimeout))
}

func leaseInSlot(l lock.Lock, slot int) (lock.LeaseInfo, bool) {
	for _, h := range l.Leases {
		if h.Slot == slot {
			return h, true
		}
	}
	return lock.LeaseInfo{}, false
}

// verifyStep requires that the token has the status that was answered. It is exact: an ended token
// stays ended.
func verifyStep(v lock.Verify, got lock.Verification) step {
	return func(s lock.Record) (lock.Record, bool) {
		is := v.Check(s, got.CheckedAt)
		for _, l := range s.ActiveLeases(got.CheckedAt) {
			if l.Token == v.Token && endUnknown(l) {
				over := got.Status == lock.Ended && v.Token == s.Token || got.Status == lock.Stale && v.Token < s.Token
				return s, is.Newest == got.Newest && (got.Status == lock.Current || over)
			}
		}
		// A lease that is not claimed yet has ClaimTimeout left.
		left := len(s.Leases) != 1 || near(is.Remaining, got.Remaining) ||
			s.Leases[0].Place != 0 && near(lock.ClaimTimeout, got.Remaining)
		return afterVerification(s, v, got), is.Status == got.Status && is.Newest == got.Newest && left
	}
}

// afterVerification returns the lock after a verification. A token that was found to have ended can never be
// renewed, whatever the time of the renewal, so its lease gets a max hold that it has reached. A token that is
// current may have been found so by one of its leases alone. The lock's time does not advance: later grants may have
// been decided a moment before.
func afterVerification(s lock.Record, v lock.Verify, got lock.Verification) lock.Record {
	if got.Status == lock.Current {
		return s
	}
	live := s.ActiveLeases(got.CheckedAt)
	for i, l := range s.Leases {
		if l.Token != v.Token || v.Slot != nil && !l.Slots.Include(l.Slot, *v.Slot) || endUnknown(l) ||
			slices.ContainsFunc(live, func(o lock.Lease) bool { return o.Slot == l.Slot }) {
			continue
		}
		l.MaxHold = max(l.ExpiresAt.Sub(l.AcquiredAt), 1)
		s = withLease(s, i, l)
	}
	return s
}

// near reports whether two durations are equal to the millisecond, which is the precision of the API.
func near(a, b time.Duration) bool { return (a - b).Abs() <= time.Millisecond }

// writeStep requires that the fenced write was accepted or refused correctly, by its token.
func (t *lockHistory) writeStep(c *Call, w lock.FencedWrite) step {
	passed := c.Outcome() == Done || errors.Is(c.Err, lock.ErrVersionMismatch)
	if w.Slot != 0 && !passed {
		return nil // the state has no history of slots to decide this
	}
	var e *lock.Error
	errors.As(c.Err, &e)
	switch {
	case passed:
		return func(s lock.Record) (lock.Record, bool) {
			newest, err := w.RequiredToken(s, s.ChangedAt)
			return s, err == nil && lock.CheckFence(w.Token, 0, newest) == nil
		}
	case errors.Is(c.Err, lock.ErrStaleToken):
		return func(s lock.Record) (lock.Record, bool) { return s, s.Token > w.Token || e.Newest > s.Token }
	case errors.Is(c.Err, lock.ErrUnknownToken):
		return func(s lock.Record) (lock.Record, bool) {
			return s, w.Token > s.Token && (e.Newest == 0 || e.Newest == s.Token)
		}
	}
	return nil
}
