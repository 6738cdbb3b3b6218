package verify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A leaseInterval is the time on the database's clock in which a lease is proven to have
// been somebody's: from its grant to the latest end that an answer promised, unless
// it was ended before.
type leaseInterval struct {
	*lease
	from, to time.Time
	proof    []*Call
}

// exclusion checks by the instants that were answered that no two leases that
// conflict were there at once, and that the later of them has the greater token.
func (x *examination) exclusion(t *lockHistory, c *Check) {
	var spans []leaseInterval
	for _, l := range t.leases {
		if s, ok := t.interval(l); ok {
			spans = append(spans, s)
		}
	}
	slices.SortStableFunc(spans, func(a, b leaseInterval) int { return cmp.Or(a.from.Compare(b.from), cmp.Compare(a.token, b.token)) })
	var there []leaseInterval
	newest := map[lock.Mode]leaseInterval{}
	slots := map[int]leaseInterval{}
	for _, s := range spans {
		c.Examined++
		there = slices.DeleteFunc(there, func(o leaseInterval) bool { return !s.from.Before(o.to) })
		for _, o := range there {
			if conflict(o.mode, s.mode) || o.slot == s.slot {
				c.reportOverlap(t, o, s)
			}
		}
		there = append(there, s)
		if permits := t.capacity; s.mode == lock.Permit && permits > 0 && len(there) > permits {
			c.violated(t, fmt.Sprintf("%d permits were out at %s, of %d.", len(there), clock(s.from), permits), proofs(there...), s.granted)
		}
		for mode, o := range newest {
			if conflict(mode, s.mode) {
				c.checkTokenGrows(t, o, s)
			}
		}
		if o, ok := slots[s.slot]; ok && s.mode == lock.Permit && o.mode == lock.Permit {
			c.checkTokenGrows(t, o, s)
		}
		if o, ok := newest[s.mode]; !ok || s.token >= o.token {
			newest[s.mode] = s
		}
		slots[s.slot] = s
	}
}

func (c *Check) reportOverlap(t *lockHistory, o, s leaseInterval) {
	c.violated(t, fmt.Sprintf("%q was granted the lock at %s with token %d while %q had it with token %d, until %s.",
		s.holder, clock(s.from), s.token, o.holder, o.token, clock(o.to)), proofs(o, s), o.granted, s.granted)
}

func (c *Check) checkTokenGrows(t *lockHistory, o, s leaseInterval) {
	if s.token <= o.token && o.from.Before(s.from) {
		c.violated(t, fmt.Sprintf("%q was granted the lock at %s with token %d, which is not greater than %d, granted to %q at %s.",
			s.holder, clock(s.from), s.token, o.token, o.holder, clock(o.from)), proofs(o, s), o.granted, s.granted)
	}
}

func proofs(spans ...leaseInterval) []*Call {
	var all []*Call
	for _, s := range spans {
		all = append(all, s.proof...)
	}
	return all
}

// interval returns the span of a lease, false if nothing is proven of it.
func (t *lockHistory) interval(l *lease) (leaseInterval, bool) {
	s := leaseInterval{lease: l}
	if l.granted != nil {
		s.from = l.granted.At
	}
	for _, c := range slices.Concat(l.acquired, l.renewed) {
		g := grant(c)
		if s.from.IsZero() || g.AcquiredAt.Before(s.from) {
			s.from = g.AcquiredAt
		}
		if end := g.ExpiresAt.Add(g.Grace); end.After(s.to) {
			s.to, s.proof = end, []*Call{c}
		}
	}
	if first := l.firstAnswer(); first != nil {
		s.proof = append(s.proof, first)
	}
	if s.from.IsZero() || l.crossesEpoch(t) {
		return s, false
	}
	switch {
	case l.ended != nil && (l.ended.Kind != lock.Expired || s.to.IsZero()):
		if s.to.IsZero() || l.ended.At.Before(s.to) {
			s.to = l.ended.At
		}
	case l.ended == nil && t.mayHaveEnded(l):
		s.to = s.from
	}
	return s, true
}

// mayHaveEnded is whether the lease may have been ended by somebody, although no
// event tells of it.
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

// clock shows an instant of the database's clock.
func clock(at time.Time) string { return at.UTC().Format("15:04:05.000000") }
