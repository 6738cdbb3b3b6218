package verify

import (
	"cmp"
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
		if l.firstAnswer() == nil {
			continue
		}
		if l.ended != nil && l.ended.Kind == lock.Expired {
			end, by := l.promisedEnd(t, t.epochs.of(l.ended))
			c.Examined++
			if l.ended.At.Before(end) {
				c.violated(t,
					fmt.Sprintf("The lease of %q with token %d expired at %s, but its holder was promised %s.",
						l.holder, l.token, clock(l.ended.At), clock(end)), []*Call{by}, l.granted, l.ended)
			}
			if l.stays() {
				by := cmp.Or(by, l.firstAnswer())
				c.violated(t, fmt.Sprintf("The lease of %q with token %d expired at %s, but it was acquired with on_expiry hold, "+
					"so it never ends by itself.", l.holder, l.token, clock(l.ended.At)), []*Call{by}, l.granted, l.ended)
			}
		}
		if l.group == nil {
			continue
		}
		for _, call := range slices.Concat(l.group.acquires, l.group.renews, l.group.releases) {
			var e *lock.Error
			if errors.As(call.Err, &e) && e.Code == lock.ErrLeaseLost && (e.Token == l.token || e.Token == 0) {
				t.refusedEarly(l, call, e, x.clock, c)
			}
		}
	}
}

// graceKept checks that a revocation that does not skip the grace leaves it to the holder: no
// conflicting lease is granted before the grace is over.
func (t *lockHistory) graceKept(l *lease, c *Check) {
	if l.ended == nil || l.ended.Kind != lock.Revoked {
		return
	}
	c.Examined++
	for _, next := range t.leases {
		g := next.granted
		if g == nil || g.Revision < l.ended.Revision || l.skipped != nil && g.Revision > l.skipped.Revision {
			continue
		}
		end, by := l.graceEnd(t, t.epochs.of(g))
		if by == nil || !g.At.Before(end) {
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

// graceEnd returns the earliest end of a revoked lease's grace on the clock of an epoch, and the answer that told the
// holder of that grace. A grace that is not over when an epoch begins begins again. The answer is nil if the lease
// was not revoked, the revocation skipped the grace, or that is unknown. The grace starts at the revocation, or at
// the end of the lease if that came first. The holder may have renewed the lease for longer than it knows.
func (l *lease) graceEnd(t *lockHistory, k int) (time.Time, *Call) {
	if l.ended == nil || l.ended.Kind != lock.Revoked || k < t.epochs.of(l.ended) {
		return time.Time{}, nil
	}
	if skipped, known := t.revokedSkippingGrace(l); skipped || !known {
		return time.Time{}, nil
	}
	if k > t.epochs.of(l.ended) {
		end, by := l.graceEnd(t, k-1)
		if e := t.epochs[k]; by != nil && !e.from.IsZero() && !e.endedBy.IsZero() && end.After(e.endedBy) {
			return e.from.Add(grant(by).Grace), by
		}
		return time.Time{}, nil
	}
	end, by := l.promisedEnd(t, k)
	if by == nil {
		return time.Time{}, nil
	}
	if latest := l.ended.At.Add(grant(by).Grace); latest.Before(end) {
		end = latest
	}
	return end, by
}

// refusedEarly checks a lease_lost answer: the lease had reached its end, or was ended by a call.
func (t *lockHistory) refusedEarly(l *lease, call *Call, e *lock.Error, dial clockBounds, c *Check) {
	k, last := t.epochs.ofCall(call)
	if l.ended != nil && e.Ended != 0 {
		k, last = t.epochs.of(l.ended), t.epochs.of(l.ended) // another check compares it with the answer
	}
	end, by := l.promisedEnd(t, k)
	if k != last || by == nil || call.Sent <= by.Answered {
		return
	}
	c.Examined++
	if a, ok := l.group.acquire(); ok && a.MaxHold > 0 {
		end = end.Add(-grant(by).Grace) // at its max hold, renewals are refused at the end without grace
	}
	switch {
	case e.Ended == lock.Expired && e.EndedAt.Before(end):
		c.violated(t, fmt.Sprintf("%q was told that its lease with token %d expired at %s, but was promised %s.",
			l.holder, l.token, clock(e.EndedAt), clock(end)),
			[]*Call{by, call}, l.granted, l.ended)
	case e.Ended == 0 && !t.mayHaveEnded(l):
		if latest, known := dial.latest(k, call.Answered); known && latest.Before(end) {
			c.violated(t, fmt.Sprintf(
				"%q was told, at %s at the latest, that its lease with token %d is lost, but was promised %s.",
				l.holder, clock(latest), l.token, clock(end)),
				[]*Call{by, call}, l.granted, l.ended)
		}
	}
}

// clockSpan is how long the database's clock and the recorder's are assumed to keep their offset, in one epoch.
const clockSpan = 30 * time.Second

// clockBounds bound the database's clock by the recorder's. An answer that carries the time of its
// decision bounds their offset: the decision came before the answer and after the sending. A grant
// bounds only the first, since it may be decided as of a moment before the call. If bounds contradict
// each other, because a clock was set, nothing is known.
type clockBounds struct {
	start    time.Time
	epochs   epochs
	maxAhead map[clockPart]time.Duration // upper bound of the database's clock minus the recorder's
	minAhead map[clockPart]time.Duration
}

// A clockPart is a span of time in which the database's clock and the recorder's keep their offset.
type clockPart struct{ epoch, span int }

func (h History) clockBounds(all epochs) clockBounds {
	d := clockBounds{start: h.Start, epochs: all, maxAhead: map[clockPart]time.Duration{}, minAhead: map[clockPart]time.Duration{}}
	for i := range h.Calls {
		c := &h.Calls[i]
		if at, ok := c.decidedAt(); ok {
			d.observe(c, at)
		}
	}
	return d
}

// decidedAt returns when the call was decided, if its answer says so.
func (c *Call) decidedAt() (time.Time, bool) {
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

func (d clockBounds) observe(c *Call, at time.Time) {
	k, last := d.epochs.ofCall(c)
	if k != last {
		return
	}
	ahead := at.Sub(d.start)
	part := clockPart{k, int(c.Answered / clockSpan)}
	if least, ok := d.minAhead[part]; !ok || ahead-c.Answered > least {
		d.minAhead[part] = ahead - c.Answered
	}
	if c.Verb == Acquire {
		return
	}
	if most, ok := d.maxAhead[part]; !ok || ahead-c.Sent < most {
		d.maxAhead[part] = ahead - c.Sent
	}
}

// part returns the part of the epoch that contains the time. A time before the epoch is in its first part, one after
// it in its last.
func (d clockBounds) part(k int, at time.Duration) clockPart {
	if k+1 < len(d.epochs) {
		at = min(at, d.epochs[k+1].after)
	}
	return clockPart{k, int(max(at, d.epochs[k].before) / clockSpan)}
}

// earliest returns the earliest time that the clock of the epoch can have shown, false if unknown.
func (d clockBounds) earliest(k int, at time.Duration) (time.Time, bool) {
	part := d.part(k, at)
	least, ok := d.minAhead[part]
	if most, bounded := d.maxAhead[part]; !ok || bounded && least > most+time.Millisecond {
		return time.Time{}, false
	}
	return d.start.Add(at + least), true
}

// latest returns the latest time that the clock of the epoch can have shown, false if unknown.
func (d clockBounds) latest(k int, at time.Duration) (time.Time, bool) {
	part := d.part(k, at)
	most, ok := d.maxAhead[part]
	if !ok || d.minAhead[part] > most+time.Millisecond {
		return time.Time{}, false
	}
	return d.start.Add(at + max(most, d.minAhead[part])), true
}
