package verify

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// noEarlyEnd checks that no lease expired before the end promised to its holder, grace included, that no lease that stays
// expired at all, and that revocations leave the grace.
func (x *examination) noEarlyEnd(t *lockHistory, c *Check) {
	for _, l := range t.leases {
		t.graceKept(l, c)
		end, by := l.promisedEnd()
		if by == nil || l.crossesEpoch(t) {
			continue
		}
		if l.ended != nil && l.ended.Kind == lock.Expired {
			c.Examined++
			if l.ended.At.Before(end) {
				c.violated(t,
					fmt.Sprintf("The lease of %q with token %d expired at %s, but its holder was promised %s.",
						l.holder, l.token, clock(l.ended.At), clock(end)), []*Call{by}, l.granted, l.ended)
			}
			if l.stays() {
				c.violated(t, fmt.Sprintf("The lease of %q with token %d expired at %s, but it was acquired with on_expiry hold, "+
					"so it never ends by itself.", l.holder, l.token, clock(l.ended.At)), []*Call{by}, l.granted, l.ended)
			}
		}
		if l.group == nil {
			continue
		}
		for _, call := range slices.Concat(l.group.acquires, l.group.renews, l.group.releases) {
			var e *lock.Error
			if errors.As(call.Err, &e) && e.Code == lock.ErrLeaseLost && (e.Token == l.token || e.Token == 0) &&
				call.Sent > by.Answered {
				c.Examined++
				t.refusedEarly(l, call, e, x.clock, c)
			}
		}
	}
}

// graceKept checks that a revocation that does not skip the grace leaves it to the holder: no
// conflicting lease is granted before the grace is over.
func (t *lockHistory) graceKept(l *lease, c *Check) {
	end, by := l.graceEnd(t)
	if by == nil {
		return
	}
	c.Examined++
	for _, next := range t.leases {
		g := next.granted
		if g == nil || g.Revision < l.ended.Revision || !g.At.Before(end) ||
			l.skipped != nil && g.Revision > l.skipped.Revision {
			continue
		}
		if conflict(next.mode, l.mode) || l.sharesSlot(next.slot, next.slots) {
			c.violated(t, fmt.Sprintf("%q was granted the lock with token %d at %s, "+
				"during the grace of %q, whose revoked token %d had grace until %s.",
				next.holder, next.token, clock(g.At), l.holder, l.token, clock(end)), []*Call{by}, l.ended, g)
			return
		}
	}
}

// graceEnd returns the earliest end of a revoked lease's grace, and the answer that told the holder
// of that grace. The answer is nil if the lease was not revoked, the revocation skipped the grace, or
// that is unknown. The grace starts at the revocation, or at the end of the lease if that came first.
// The holder may have renewed the lease for longer than it knows.
func (l *lease) graceEnd(t *lockHistory) (time.Time, *Call) {
	if l.ended == nil || l.ended.Kind != lock.Revoked || l.crossesEpoch(t) {
		return time.Time{}, nil
	}
	if skipped, known := t.revokedSkippingGrace(l); skipped || !known {
		return time.Time{}, nil
	}
	end, by := l.promisedEnd()
	if by == nil {
		return time.Time{}, nil
	}
	if latest := l.ended.At.Add(grant(by).Grace); latest.Before(end) {
		end = latest
	}
	return end, by
}

// promisedEnd returns the latest end, grace included, that an answer promised, and that answer.
func (l *lease) promisedEnd() (end time.Time, by *Call) {
	for _, c := range slices.Concat(l.acquired, l.renewed) {
		if g := grant(c); g.ExpiresAt.Add(g.Grace).After(end) {
			end, by = g.ExpiresAt.Add(g.Grace), c
		}
	}
	return end, by
}

// refusedEarly checks a lease_lost answer: the lease had reached its end, or was ended by a call.
func (t *lockHistory) refusedEarly(l *lease, call *Call, e *lock.Error, dial clockBounds, c *Check) {
	end, by := l.promisedEnd()
	if a, ok := l.group.acquire(); ok && a.MaxHold > 0 {
		end = end.Add(-grant(by).Grace) // at its max hold, renewals are refused at the end without grace
	}
	switch {
	case e.Ended == lock.Expired && e.EndedAt.Before(end):
		c.violated(t, fmt.Sprintf("%q was told that its lease with token %d expired at %s, but was promised %s.",
			l.holder, l.token, clock(e.EndedAt), clock(end)),
			[]*Call{by, call}, l.granted, l.ended)
	case e.Ended == 0 && !t.mayHaveEnded(l):
		if latest, known := dial.latest(call.Answered); known && latest.Before(end) {
			c.violated(t, fmt.Sprintf(
				"%q was told, at %s at the latest, that its lease with token %d is lost, but was promised %s.",
				l.holder, clock(latest), l.token, clock(end)),
				[]*Call{by, call}, l.granted, l.ended)
		}
	}
}

// clockSpan is how long the database's clock and the recorder's are assumed to keep their offset.
const clockSpan = 30 * time.Second

// clockBounds bound the database's clock by the recorder's. An answer that carries the time of its
// decision bounds their offset: the decision came before the answer and after the sending. A grant
// bounds only the first, since it may be decided as of a moment before the call. If bounds contradict
// each other, because a clock was set, nothing is known.
type clockBounds struct {
	start    time.Time
	maxAhead map[int]time.Duration // upper bound of the database's clock minus the recorder's, in each span
	minAhead map[int]time.Duration
}

func (h History) clockBounds() clockBounds {
	d := clockBounds{start: h.Start, maxAhead: map[int]time.Duration{}, minAhead: map[int]time.Duration{}}
	for _, c := range h.Calls {
		if at, ok := c.decidedAt(); ok {
			d.observe(c, at)
		}
	}
	return d
}

// decidedAt returns when the call was decided, if its answer says so.
func (c Call) decidedAt() (time.Time, bool) {
	switch got := c.Response.(type) {
	case lock.Lock:
		return got.AsOf, true
	case lock.Verification:
		return got.CheckedAt, true
	case lock.Grant:
		a, ok := c.Request.(lock.Acquire)
		return got.AcquiredAt, ok && !got.Replayed && a.Wait == 0
	}
	return time.Time{}, false
}

func (d clockBounds) observe(c Call, at time.Time) {
	ahead := at.Sub(d.start)
	span := int(c.Answered / clockSpan)
	if least, ok := d.minAhead[span]; !ok || ahead-c.Answered > least {
		d.minAhead[span] = ahead - c.Answered
	}
	if c.Verb == Acquire {
		return
	}
	if most, ok := d.maxAhead[span]; !ok || ahead-c.Sent < most {
		d.maxAhead[span] = ahead - c.Sent
	}
}

// earliest returns the earliest time that the database's clock can have shown, false if unknown.
func (d clockBounds) earliest(at time.Duration) (time.Time, bool) {
	span := int(at / clockSpan)
	least, ok := d.minAhead[span]
	if most, bounded := d.maxAhead[span]; !ok || bounded && least > most+time.Millisecond {
		return time.Time{}, false
	}
	return d.start.Add(at + least), true
}

// latest returns the latest time that the database's clock can have shown, false if unknown.
func (d clockBounds) latest(at time.Duration) (time.Time, bool) {
	span := int(at / clockSpan)
	most, ok := d.maxAhead[span]
	if !ok || d.minAhead[span] > most+time.Millisecond {
		return time.Time{}, false
	}
	return d.start.Add(at + max(most, d.minAhead[span])), true
}
