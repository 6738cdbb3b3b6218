package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A leaseInterval is the time on the clock of an epoch in which a lease is proven to have been held: from its grant,
// or from when the epoch had begun, to the latest end that was promised, unless it was ended before. One that stays
// is held until its event.
type leaseInterval struct {
	*lease
	epoch    int
	carried  bool // the lease was granted in an epoch before
	from, to time.Time
	proof    []*Call
}

// exclusion checks, by the database's clock, that conflicting leases do not overlap and that the
// later one has the greater token.
func (x *examination) exclusion(t *lockHistory, c *Check) {
	var intervals []leaseInterval
	for _, l := range t.leases {
		intervals = append(intervals, t.intervals(l)...)
	}
	slices.SortStableFunc(intervals, leaseInterval.compare)
	var current []leaseInterval
	newest := map[lock.Mode]leaseInterval{}
	slots := map[int]leaseInterval{}
	for _, s := range intervals {
		c.Examined++
		current = slices.DeleteFunc(current, func(o leaseInterval) bool { return o.epoch < s.epoch || !s.from.Before(o.to) })
		for _, o := range current {
			if conflict(o.mode, s.mode) || o.sharesSlot(s.slot, s.slots) {
				c.reportOverlap(t, o, s)
			}
		}
		current = append(current, s)
		out := 0
		for _, o := range current {
			out += o.slots.Count()
		}
		if permits := t.capacity; s.mode == lock.Permit && permits > 0 && out > permits {
			c.violated(t, fmt.Sprintf("%d permits were held at %s; the capacity is %d.", out, clock(s.from),
				permits), proofs(current...), s.granted)
		}
		if s.carried {
			continue // its token was checked before
		}
		for mode, o := range newest {
			if conflict(mode, s.mode) {
				c.checkTokenGrows(t, o, s)
			}
		}
		for _, slot := range s.slots.All(s.slot) {
			if o, ok := slots[slot]; ok && s.mode == lock.Permit && o.mode == lock.Permit {
				c.checkTokenGrows(t, o, s)
			}
			slots[slot] = s
		}
		if o, ok := newest[s.mode]; !ok || s.token >= o.token {
			newest[s.mode] = s
		}
	}
}

func (c *Check) reportOverlap(t *lockHistory, o, s leaseInterval) {
	c.violated(t, fmt.Sprintf("%q was granted the lock at %s with token %d while %q held it with token %d, until %s.",
		s.holder, clock(s.from), s.token, o.holder, o.token, clock(o.to)), proofs(o, s), o.granted, s.granted)
}

func (c *Check) checkTokenGrows(t *lockHistory, o, s leaseInterval) {
	if s.token <= o.token && o.startsBefore(s) {
		c.violated(t, fmt.Sprintf(
			"%q was granted the lock at %s with token %d, which is not greater than %d, granted to %q at %s.",
			s.holder, clock(s.from), s.token, o.token, o.holder, clock(o.from)), proofs(o, s), o.granted, s.granted)
	}
}

// startsBefore reports whether s begins before o.
func (s leaseInterval) startsBefore(o leaseInterval) bool {
	return s.epoch < o.epoch || s.epoch == o.epoch && s.from.Before(o.from)
}

// compare orders intervals by their begin. Of leases that one commit granted, at one instant, the first has the
// smallest token: it may have been withdrawn at once, because its caller had left.
func (s leaseInterval) compare(o leaseInterval) int {
	return cmp.Or(cmp.Compare(s.epoch, o.epoch), s.from.Compare(o.from), cmp.Compare(s.token, o.token))
}

func proofs(intervals ...leaseInterval) []*Call {
	var all []*Call
	for _, s := range intervals {
		all = append(all, s.proof...)
	}
	return all
}

// intervals returns the intervals of a lease, one for each epoch in which something is proven about it.
func (t *lockHistory) intervals(l *lease) (all []leaseInterval) {
	last := len(t.epochs) - 1
	if l.ended != nil {
		last = t.epochs.of(l.ended)
	}
	for k := l.began(t); k <= last; k++ {
		if s, ok := t.interval(l, k); ok {
			all = append(all, s)
		}
	}
	return all
}

// interval returns the interval of a lease in an epoch, false if nothing is proven about it.
func (t *lockHistory) interval(l *lease, k int) (leaseInterval, bool) {
	s := leaseInterval{lease: l, epoch: k, carried: k > l.began(t)}
	switch {
	case s.carried:
		s.from = t.epochs[k].by
	case l.granted != nil:
		s.from = l.granted.At
	}
	for _, c := range l.answers() {
		if g := grant(c); !s.carried && l.answeredIn(t, k, c) && (s.from.IsZero() || g.AcquiredAt.Before(s.from)) {
			s.from = g.AcquiredAt
		}
	}
	end, by := l.promisedEnd(t, k)
	if s.to = end; by != nil {
		s.proof = []*Call{by}
	}
	if first := l.firstAnswer(); first != nil {
		s.proof = append(s.proof, first)
	}
	switch endsHere := l.ended != nil && t.epochs.of(l.ended) == k; {
	case endsHere && (l.ended.Kind != lock.Expired || s.to.IsZero()):
		if s.to.IsZero() || l.ended.At.Before(s.to) || l.stays() {
			s.to = l.ended.At
		}
	case l.ended == nil && t.mayHaveEnded(l):
		s.to = s.from
	case !endsHere && l.stays() && l.granted != nil:
		s.to = endless
	}
	return s, !s.from.IsZero() && (!s.carried || s.from.Before(s.to))
}

// mayHaveEnded reports whether a release or a revocation may have ended the lease although there
// is no event of it.
func (t *lockHistory) mayHaveEnded(l *lease) bool {
	ends := func(c *Call) bool { return c.Outcome() == Done || c.Outcome() == Unknown }
	if slices.ContainsFunc(l.group.releaseCalls(), ends) {
		return true
	}
	return slices.ContainsFunc(t.calls, func(c *Call) bool {
		r, ok := c.Request.(lock.Revoke)
		return ok && r.Token == l.token && ends(c)
	})
}

// clock formats a time of the database's clock.
func clock(at time.Time) string { return at.UTC().Format("15:04:05.000000") }

// A holdInterval is a time, on the recorder's clock, in which a client counted on a lease: from an
// answer until the Until that it carried.
type holdInterval struct {
	*lease
	from, to time.Duration
	proof    *Call
}

// clientsExclude checks that no two clients counted on conflicting leases at the same time.
func (x *examination) clientsExclude(t *lockHistory, c *Check) {
	if x.Start.IsZero() {
		return
	}
	var all []holdInterval
	for _, l := range t.leases {
		all = append(all, x.holdIntervals(t, l)...)
	}
	slices.SortStableFunc(all, func(a, b holdInterval) int { return cmp.Compare(a.from, b.from) })
	var now []holdInterval
	for _, b := range all {
		c.Examined++
		now = slices.DeleteFunc(now, func(o holdInterval) bool { return o.to <= b.from })
		others := map[*lease]bool{b.lease: true}
		for _, o := range now {
			if o.lease == b.lease {
				continue
			}
			others[o.lease] = true
			if conflict(o.mode, b.mode) || o.sharesSlot(b.slot, b.slots) {
				c.violated(t, fmt.Sprintf(
					"%q counted on the lock with token %d from %s, while %q counted on it with token %d until %s.",
					b.holder, b.token, sinceStart(b.from), o.holder, o.token, sinceStart(o.to)),
					[]*Call{o.proof, b.proof}, o.granted, b.granted)
			}
		}
		out := 0
		for l := range others {
			out += l.slots.Count()
		}
		if b.mode == lock.Permit && t.capacity > 0 && out > t.capacity {
			c.violated(t, fmt.Sprintf("%d clients counted on %d permits at %s; the capacity is %d.", len(others), out,
				sinceStart(b.from), t.capacity), proofCalls(now, b), b.granted)
		}
		now = append(now, b)
	}
}

func proofCalls(beliefs []holdInterval, more ...holdInterval) []*Call {
	var all []*Call
	for _, b := range append(slices.Clone(beliefs), more...) {
		all = append(all, b.proof)
	}
	return all
}

// holdIntervals returns when the client counted on the lease. That ends when it releases the lease
// or learns that it is lost, and when an operator revokes it.
func (x *examination) holdIntervals(t *lockHistory, l *lease) []holdInterval {
	if l.group == nil {
		return nil
	}
	given := l.givenUpBy(t)
	var all []holdInterval
	for _, c := range slices.Concat(l.acquired, l.renewed) {
		until := grant(c).Until
		if until.IsZero() || slices.Contains(x.options.PausedClients, c.Client) {
			continue
		}
		b := holdInterval{lease: l, from: c.Answered, to: min(until.Sub(x.Start), given), proof: c}
		if b.from < b.to {
			all = append(all, b)
		}
	}
	return all
}

// givenUpBy returns the latest time at which the lease was released, lost or revoked, as far as its
// holder and the operators knew.
func (l *lease) givenUpBy(t *lockHistory) time.Duration {
	at := t.last + 1
	for _, c := range l.group.releaseCalls() {
		at = min(at, c.Sent)
	}
	for _, c := range slices.Concat(l.group.renews, l.group.acquires) {
		if errors.Is(c.Err, lock.ErrLeaseLost) {
			at = min(at, c.Answered)
		}
	}
	for _, c := range t.calls {
		if r, ok := c.Request.(lock.Revoke); ok && r.Token == l.token && mayEnd(c) {
			at = min(at, c.Sent)
		}
	}
	return at
}

// uniqueness checks that no lease_id had two leases and no token was granted twice. After a restore
// a lease_id may have another lease, since the first one is forgotten.
func (x *examination) uniqueness(c *Check) {
	type grantee struct {
		*lease
		t *lockHistory
	}
	granted := map[lock.Token]grantee{} // the leases of a set have one token
	for _, t := range x.locks {
		for _, r := range t.groups {
			if len(r.acquires) > 0 && !x.options.Restored {
				c.Examined++
				r.grantedOnce(t, c)
			}
		}
		for _, l := range t.leases {
			c.Examined++
			o, again := granted[l.token]
			if !again {
				granted[l.token] = grantee{l, t}
				continue
			}
			if o.t != t && !o.jointWith(t) && !l.jointWith(o.t) || o.t == t && (o.mode != lock.Shared || l.mode != lock.Shared) {
				c.violated(t,
					fmt.Sprintf("Token %d was granted to %q, and to %q of %s.", l.token, l.holder, o.holder, o.t.name),
					[]*Call{o.firstAnswer(), l.firstAnswer()}, l.granted)
			}
		}
	}
}

// jointWith reports whether the lease was acquired together with one of the lock t, so that they may have one token.
func (l *lease) jointWith(t *lockHistory) bool {
	return l.group != nil && slices.Contains(l.group.set, t.name)
}

// grantedOnce checks that at most one lease was granted under the lease_id, apart from grants that
// were withdrawn before a client knew of them.
func (r *callGroup) grantedOnce(t *lockHistory, c *Check) {
	var kept []*lease
	for _, l := range r.leases {
		if l.ended == nil || l.ended.Kind != lock.Withdrawn {
			kept = append(kept, l)
		}
	}
	if len(kept) > 1 {
		a, b := kept[0], kept[1]
		c.violated(t,
			fmt.Sprintf("One lease_id of %q was granted the lock twice: token %d in slot %d, and token %d in slot %d.",
				r.holder(), a.token, a.slot, b.token, b.slot), append(r.acquires[:len(r.acquires):len(r.acquires)],
				a.firstAnswer(), b.firstAnswer()), a.granted, b.granted)
	}
}
