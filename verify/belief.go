package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A belief is a stretch of time, on the recorder's clock, in which a client believed
// that a lease was its own: from an answer until the Until that it carried.
type belief struct {
	*lease
	from, to time.Duration
	by       *Call
}

// believed checks that no two clients believed at once in leases that conflict.
func (x *examination) believed(t *tale, c *Check) {
	if x.Start.IsZero() {
		return
	}
	var all []belief
	for _, l := range t.leases {
		all = append(all, x.beliefs(t, l)...)
	}
	slices.SortStableFunc(all, func(a, b belief) int { return cmp.Compare(a.from, b.from) })
	var now []belief
	for _, b := range all {
		c.Examined++
		now = slices.DeleteFunc(now, func(o belief) bool { return o.to <= b.from })
		others := map[*lease]bool{b.lease: true}
		for _, o := range now {
			if o.lease == b.lease {
				continue
			}
			others[o.lease] = true
			if conflict(o.mode, b.mode) || o.slot == b.slot {
				c.violated(t, fmt.Sprintf("%q believed to have the lock with token %d from %s on, and %q with token %d until %s.",
					b.holder, b.token, after(b.from), o.holder, o.token, after(o.to)), []*Call{o.by, b.by}, o.granted, b.granted)
			}
		}
		if b.mode == lock.Permit && t.capacity > 0 && len(others) > t.capacity {
			c.violated(t, fmt.Sprintf("%d clients believed at %s to have one of %d permits.", len(others), after(b.from), t.capacity), calls(now, b), b.granted)
		}
		now = append(now, b)
	}
}

func calls(beliefs []belief, more ...belief) []*Call {
	var all []*Call
	for _, b := range append(slices.Clone(beliefs), more...) {
		all = append(all, b.by)
	}
	return all
}

// beliefs returns when the lease was believed in. That ends when the holder gives it
// up or is told that it is lost, and when an operator takes it away.
func (x *examination) beliefs(t *tale, l *lease) []belief {
	if l.of == nil || l.shaken(t) {
		return nil
	}
	given := l.givenUp(t)
	var all []belief
	for _, c := range slices.Concat(l.told, l.renewed) {
		until := grant(c).Until
		if until.IsZero() || slices.Contains(x.options.Paused, c.Client) {
			continue
		}
		b := belief{lease: l, from: c.Answered, to: min(until.Sub(x.Start), given), by: c}
		if b.from < b.to {
			all = append(all, b)
		}
	}
	return all
}

// givenUp returns when the lease was given up at the latest, for all that its holder
// and the operators knew.
func (l *lease) givenUp(t *tale) time.Duration {
	at := t.last + 1
	for _, c := range l.of.releases {
		at = min(at, c.Sent)
	}
	for _, c := range slices.Concat(l.of.renews, l.of.acquires) {
		if errors.Is(c.Err, lock.ErrLeaseLost) {
			at = min(at, c.Answered)
		}
	}
	for _, c := range t.calls {
		if r, ok := c.Asked.(lock.Revoke); ok && r.Token == l.token && mayEnd(c) {
			at = min(at, c.Sent)
		}
	}
	return at
}
