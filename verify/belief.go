package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A holdInterval is a stretch of time, on the recorder's clock, in which a client believed
// that a lease was its own: from an answer until the Until that it carried.
type holdInterval struct {
	*lease
	from, to time.Duration
	proof    *Call
}

// clientsExclude checks that no two clients clientsExclude at once in leases that conflict.
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
			if conflict(o.mode, b.mode) || o.slot == b.slot {
				c.violated(t, fmt.Sprintf("%q believed to have the lock with token %d from %s on, and %q with token %d until %s.",
					b.holder, b.token, sinceStart(b.from), o.holder, o.token, sinceStart(o.to)), []*Call{o.proof, b.proof}, o.granted, b.granted)
			}
		}
		if b.mode == lock.Permit && t.capacity > 0 && len(others) > t.capacity {
			c.violated(t, fmt.Sprintf("%d clients believed at %s to have one of %d permits.", len(others), sinceStart(b.from), t.capacity), proofCalls(now, b), b.granted)
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

// holdIntervals returns when the lease was believed in. That ends when the holder gives it
// up or is told that it is lost, and when an operator takes it away.
func (x *examination) holdIntervals(t *lockHistory, l *lease) []holdInterval {
	if l.group == nil || l.crossesEpoch(t) {
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

// givenUpBy returns when the lease was given up at the latest, for all that its holder
// and the operators knew.
func (l *lease) givenUpBy(t *lockHistory) time.Duration {
	at := t.last + 1
	for _, c := range l.group.releases {
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
