package verify

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// noEarlyEnd checks that time has ended no lease before the end that its holder was
// told, grace included, and that revocations leave the grace.
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
				c.violated(t, fmt.Sprintf("The lease of %q with token %d expired at %s, and its holder had been told %s.",
					l.holder, l.token, clock(l.ended.At), clock(end)), []*Call{by}, l.granted, l.ended)
			}
		}
		if l.group == nil {
			continue
		}
		for _, call := range slices.Concat(l.group.acquires, l.group.renews, l.group.releases) {
			var e *lock.Error
			if errors.As(call.Err, &e) && e.Code == lock.ErrLeaseLost && (e.Token == l.token || e.Token == 0) && call.Sent > by.Answered {
				c.Examined++
				t.refusedEarly(l, call, e, x.clock, c)
			}
		}
	}
}

// graceKept checks that a revocation which does not skip the grace of a lease leaves it to
// its holder: no lease that conflicts is granted before it is over.
func (t *lockHistory) graceKept(l *lease, c *Check) {
	end, by := l.graceEnd(t)
	if by == nil {
		return
	}
	c.Examined++
	for _, next := range t.leases {
		g := next.granted
		if g == nil || g.Revision < l.ended.Revision || !g.At.Before(end) || l.skipped != nil && g.Revision > l.skipped.Revision {
			continue
		}
		if conflict(next.mode, l.mode) || next.slot == l.slot {
			c.violated(t, fmt.Sprintf("%q was granted the lock with token %d at %s, and the grace of %q, whose token %d was revoked, lasted until %s.",
				next.holder, next.token, clock(g.At), l.holder, l.token, clock(end)), []*Call{by}, l.ended, g)
			return
		}
	}
}

// graceEnd returns when the grace of a revoked lease was over at the earliest, and the answer
// that told the holder of that grace; nil if the lease was not revoked, the revocation
// skipped the grace, or that is not known. The grace begins with the revocation, or with the
// end of the lease if that was before. The holder may have renewed it for longer than it knows.
func (l *lease) graceEnd(t *lockHistory) (time.Time, *Call) {
	if l.ended == nil || l.ended.Kind != lock.Revoked || l.crossesEpoch(t) {
		return time.Time{}, nil
	}
	if atOnce, known := t.revokedSkippingGrace(l); atOnce || !known {
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

// promisedEnd returns the latest end, grace included, that the holder was told, and the
// answer that told it.
func (l *lease) promisedEnd() (end time.Time, by *Call) {
	for _, c := range slices.Concat(l.acquired, l.renewed) {
		if g := grant(c); g.ExpiresAt.Add(g.Grace).After(end) {
			end, by = g.ExpiresAt.Add(g.Grace), c
		}
	}
	return end, by
}

// refusedEarly checks that a lease which is said to be lost had come to its end, or
// was ended by somebody.
func (t *lockHistory) refusedEarly(l *lease, call *Call, e *lock.Error, dial clockBounds, c *Check) {
	end, by := l.promisedEnd()
	if a, ok := l.group.acquire(); ok && a.MaxHold > 0 {
		end = end.Add(-grant(by).Grace) // at its greatest hold it is refused at its end
	}
	switch {
	case e.Ended == lock.Expired && e.EndedAt.Before(end):
		c.violated(t, fmt.Sprintf("%q was told that its lease with token %d expired at %s, and had been told %s.", l.holder, l.token, clock(e.EndedAt), clock(end)),
			[]*Call{by, call}, l.granted, l.ended)
	case e.Ended == 0 && !t.mayHaveEnded(l):
		if latest, known := dial.latest(call.Answered); known && latest.Before(end) {
			c.violated(t, fmt.Sprintf("%q was told at %s at the latest that its lease with token %d is lost, and had been told %s.", l.holder, clock(latest), l.token, clock(end)),
				[]*Call{by, call}, l.granted, l.ended)
		}
	}
}
