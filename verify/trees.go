package verify

import (
	"fmt"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// trees returns the trees that were declared, as far as a call shows it.
func (h History) trees() lock.Trees {
	all := lock.Trees{}
	for i := range h.Calls {
		if c := &h.Calls[i]; c.Verb == DeclareTree && (c.Outcome() == Done || c.Outcome() == Unknown) {
			all[c.Name] = struct{}{}
		}
	}
	return all
}

// trees checks each lock in a tree against the locks above it: conflicting leases do not overlap, by the database's
// clock and by those of the clients, the later one has the greater token, and no call overtakes one that waits above or
// below.
func (x *examination) trees(c *Check) {
	byName := map[string]*lockHistory{}
	for _, t := range x.locks {
		byName[t.name] = t
	}
	for _, below := range x.locks {
		for _, name := range below.above {
			if above := byName[name]; above != nil {
				x.levels(above, below, c)
			}
		}
	}
}

// levels checks two locks, one above the other.
func (x *examination) levels(above, below *lockHistory, c *Check) {
	x.excludes(above, below, c)
	if !x.Start.IsZero() && !x.options.Restored {
		x.clientsExcludeLevels(above, below, c)
	}
	if !x.options.AllowOvertaking && !x.options.Restored {
		overtakes(above, below, c)
		overtakes(below, above, c)
	}
}

// excludes checks that conflicting leases of the two locks do not overlap on the database's clock.
func (x *examination) excludes(above, below *lockHistory, c *Check) {
	lower := below.allIntervals()
	for _, a := range above.allIntervals() {
		for _, b := range lower {
			if !conflict(a.mode, b.mode) {
				continue
			}
			c.Examined++
			first, second, of := a, b, below
			if b.compare(a) < 0 {
				first, second, of = b, a, above
			}
			switch {
			case first.epoch == second.epoch && second.from.Before(first.to):
				c.violated(of, fmt.Sprintf("%q was granted %s at %s with token %d while %q held %s with token %d, until %s.", second.holder,
					of.name, clock(second.from), second.token, first.holder, other(of, above, below).name, first.token, clock(first.to)),
					proofs(first, second), first.granted, second.granted)
			case second.token <= first.token && first.startsBefore(second) && !first.carried && !second.carried:
				c.violated(of, fmt.Sprintf("%q was granted %s with token %d, which is not greater than %d, granted before to %q for %s.",
					second.holder, of.name, second.token, first.token, first.holder, other(of, above, below).name),
					proofs(first, second), first.granted, second.granted)
			}
		}
	}
}

// other returns the one of the two locks that t is not.
func other(t, a, b *lockHistory) *lockHistory {
	if t == a {
		return b
	}
	return a
}

// allIntervals returns the intervals of the leases about which something is proven. An end by time alone is found,
// and has its event, when the lock itself is decided on. A decision on a lock above may have found it before. So of
// such a lease only what an answer promised is proven.
func (t *lockHistory) allIntervals() (all []leaseInterval) {
	for _, l := range t.leases {
		for _, s := range t.intervals(l) {
			if l.ended != nil && endedByTime(l.ended) {
				promised, _ := l.promisedEnd(t, s.epoch)
				s.to = earlier(s.to, later(s.from, promised))
			}
			all = append(all, s)
		}
	}
	return all
}

// clientsExcludeLevels checks that no two clients counted on conflicting leases of the two locks at the same time.
func (x *examination) clientsExcludeLevels(above, below *lockHistory, c *Check) {
	var lower []holdInterval
	for _, l := range below.leases {
		lower = append(lower, x.holdIntervals(below, l)...)
	}
	for _, l := range above.leases {
		for _, a := range x.holdIntervals(above, l) {
			for _, b := range lower {
				if conflict(a.mode, b.mode) && max(a.from, b.from) < min(a.to, b.to) {
					c.violated(below, fmt.Sprintf("%q counted on %s with token %d from %s to %s, while %q counted on %s with token %d from %s to %s.",
						a.holder, above.name, a.token, sinceStart(a.from), sinceStart(a.to), b.holder, below.name, b.token,
						sinceStart(b.from), sinceStart(b.to)), []*Call{a.proof, b.proof}, a.granted, b.granted)
				}
			}
		}
	}
}

// overtakes checks that no lease of t was granted to a call that came after a conflicting one which waited for the
// other lock all the time, and whose client was there.
func overtakes(t, other *lockHistory, c *Check) {
	mayBeAway := other.away()
	queued := map[int64]lock.Event{} // of t, by place
	for _, e := range t.events {
		if e.Kind == lock.Queued {
			queued[e.Place] = e
		}
	}
	waits := other.waits()
	for _, g := range t.events {
		if g.Kind != lock.Granted {
			continue
		}
		came, waited := queued[g.Place]
		if !waited {
			came = g
		}
		for _, w := range waits {
			if !conflict(w.joined.Mode, g.Mode) || mayBeAway(w.joined) {
				continue
			}
			c.Examined++
			if isBefore(w.joined, came) && (w.left == nil || isBefore(g, *w.left)) {
				c.violated(t, fmt.Sprintf("%q was granted %s, although %q waited for %s since before that call.", g.Holder, t.name,
					w.joined.Holder, other.name), nil, &w.joined, &g)
			}
		}
	}
}

// isBefore reports whether a was certainly decided before b, of another lock of the tree. Each decision in a tree
// writes the root, so ids are in the order of commits; but a commit has the events of many decisions, lock by lock.
// These have one time.
func isBefore(a, b lock.Event) bool { return a.ID < b.ID && a.At.Before(b.At) }

// A waitSpan is the time of a waiter in a queue.
type waitSpan struct {
	joined lock.Event
	left   *lock.Event // its grant or its removal; nil: it waits still
}

// waits returns the waits for the lock.
func (t *lockHistory) waits() (all []waitSpan) {
	for i, e := range t.events {
		if e.Kind != lock.Queued {
			continue
		}
		w := waitSpan{joined: e}
		at := slices.IndexFunc(t.events[i+1:], func(o lock.Event) bool {
			return o.Place == e.Place && (o.Kind == lock.Granted || o.Kind == lock.Dequeued)
		})
		if at >= 0 {
			w.left = &t.events[i+1+at]
		}
		all = append(all, w)
	}
	return all
}
