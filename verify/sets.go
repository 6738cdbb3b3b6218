package verify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A jointSet is everything that was recorded about one set, by the order of its locks.
type jointSet struct {
	names  []string
	locks  []*lockHistory
	groups []*callGroup
}

// jointSets returns all sets, ordered by their first lock and their first call.
func (x *examination) jointSets() (all []jointSet) {
	byName := map[string]*lockHistory{}
	for _, t := range x.locks {
		byName[t.name] = t
	}
	for _, t := range x.locks {
		var of []jointSet
		for _, r := range t.groups {
			if len(r.set) == 0 || r.set[0] != t.name {
				continue
			}
			s := jointSet{names: r.set}
			for _, name := range r.set {
				o := byName[name]
				s.locks, s.groups = append(s.locks, o), append(s.groups, o.group(r.id))
			}
			of = append(of, s)
		}
		slices.SortFunc(of, func(a, b jointSet) int {
			return cmp.Compare(a.groups[0].acquires[0].ID, b.groups[0].acquires[0].ID)
		})
		all = append(all, of...)
	}
	return all
}

// sets checks that each set was granted in one decision, and that its leases ended together.
func (x *examination) sets(c *Check) {
	for _, s := range x.jointSets() {
		c.Examined++
		s.answeredAlike(c)
		for nth := range s.grants(c) {
			if leases := s.nth(nth); s.grantedTogether(leases, c) {
				s.endedTogether(leases, c)
				s.seenAfterEnd(leases, c)
			}
		}
	}
}

// grants returns how often the set was granted at all of its locks, which is more than once only if grants were
// withdrawn.
func (s jointSet) grants(c *Check) int {
	least, most := 0, 0
	counts := make([]int, len(s.locks))
	for i, r := range s.groups {
		for _, l := range r.leases {
			if l.granted != nil {
				counts[i]++
			}
		}
		if counts[i] < counts[least] {
			least = i
		}
		if counts[i] > counts[most] {
			most = i
		}
	}
	if n := counts[least]; n < counts[most] {
		l := s.groups[most].leases[n]
		c.violated(s.locks[most], fmt.Sprintf("A set of %q was granted in part: %s with token %d at %s, but not %s.",
			l.holder, s.names[most], l.token, clock(l.granted.At), s.names[least]), s.calls(), l.granted)
	}
	return counts[least]
}

// nth returns the leases of the set's nth grant, from 0.
func (s jointSet) nth(n int) []*lease {
	leases := make([]*lease, len(s.groups))
	for i, r := range s.groups {
		leases[i] = r.leases[n]
	}
	return leases
}

// calls returns the acquires of the set.
func (s jointSet) calls() []*Call { return s.groups[0].acquires }

// setSpread is the greatest difference between the instants of one decision at the locks of a set. Each lock goes by
// its own time, which does not run backwards: it may be ahead of the replica's reading of the clock, or of a clock
// that was set back.
const setSpread = time.Second

// atOnce reports whether two events of a set can be of one decision.
func (all epochs) atOnce(a, b *lock.Event) bool {
	return all.of(a) == all.of(b) && a.At.Sub(b.At).Abs() <= setSpread
}

// grantedTogether checks that the leases were granted at once and have one token. Only a shared lease that joined
// others has theirs.
func (s jointSet) grantedTogether(leases []*lease, c *Check) bool {
	first, drawn := leases[0], (*lease)(nil)
	for i, l := range leases {
		if !s.locks[i].epochs.atOnce(l.granted, first.granted) {
			c.violated(s.locks[i], fmt.Sprintf("A set of %q was granted in part: %s with token %d at %s, but %s at %s.",
				l.holder, s.names[0], first.token, clock(first.granted.At), s.names[i], clock(l.granted.At)), s.calls(), l.granted)
			return false
		}
		switch {
		case s.locks[i].joined(l):
		case drawn == nil:
			drawn = l
		case l.token != drawn.token:
			c.violated(s.locks[i], fmt.Sprintf("The leases of a set of %q have the tokens %d and %d.", l.holder, drawn.token,
				l.token), s.calls(), l.granted)
			return false
		}
	}
	return true
}

// joined reports whether the lease is a shared one that was granted beside others with its token.
func (t *lockHistory) joined(l *lease) bool {
	return l.mode == lock.Shared && slices.ContainsFunc(t.leases, func(o *lease) bool {
		return o.token == l.token && o.granted != nil && o.granted.Revision < l.granted.Revision
	})
}

// endedTogether checks that leases which a call ended were ended at once and in one way. Time ends them
// together, too, but each lock records that when it is next decided about. A lease of a session may have ended with
// it meanwhile.
func (s jointSet) endedTogether(leases []*lease, c *Check) {
	by := slices.IndexFunc(leases, func(l *lease) bool { return l.ended != nil && !endedByTime(l.ended) })
	if by < 0 {
		return
	}
	e := leases[by].ended
	for i, l := range leases {
		end := l.ended
		switch {
		case end == nil:
			c.violated(s.locks[by], fmt.Sprintf("The leases of a set of %q with token %d did not end together: %s was %s at %s, but %s was not.",
				l.holder, l.token, s.names[by], e.Kind, clock(e.At), s.names[i]), s.calls(), e)
			return
		case s.groups[0].session() != 0 && endedByTime(end):
		case end.Kind != e.Kind || !s.locks[i].epochs.atOnce(end, e):
			c.violated(s.locks[by], fmt.Sprintf("The leases of a set of %q with token %d did not end together: %s was %s at %s, but %s was %s at %s.",
				l.holder, l.token, s.names[by], e.Kind, clock(e.At), s.names[i], end.Kind, clock(end.At)), s.calls(), e)
			return
		}
	}
}

// seenAfterEnd checks that no answer shows one of the leases at a time at which another one had expired.
func (s jointSet) seenAfterEnd(leases []*lease, c *Check) {
	var first *lease
	at := 0
	for i, l := range leases {
		if l.ended != nil && l.ended.Kind == lock.Expired && (first == nil || s.locks[i].epochs.compare(l.ended, first.ended) < 0) {
			first, at = l, i
		}
	}
	if first == nil {
		return
	}
	for i, l := range leases {
		for _, call := range s.locks[i].calls {
			if seen, ok := l.seenHeldBy(call); ok && s.locks[i].epochs.isAfter(call, seen, first.ended) {
				c.violated(s.locks[i], fmt.Sprintf("The lease of %q with token %d was seen at %s, but %s, which was acquired together with it, "+
					"had expired at %s.", l.holder, l.token, clock(seen), s.names[at], clock(first.ended.At)), []*Call{call}, l.granted, l.ended)
				return
			}
		}
	}
}

// seenHeldBy returns the time at which the answer shows the lease, false if it does not. A lease that was not
// claimed yet may end before the time that is shown.
func (l *lease) seenHeldBy(c *Call) (time.Time, bool) {
	if seen, ok := c.lockRead(); ok {
		i := slices.IndexFunc(seen.Leases, func(h lock.LeaseInfo) bool {
			return !h.Revoked && h.Token == l.token && h.Slot == l.slot && h.Holder == l.holder
		})
		return seen.AsOf, i >= 0 && !seen.Leases[i].ExpiresAt.Equal(seen.Leases[i].AcquiredAt.Add(lock.ClaimTimeout))
	}
	v, ok := c.Response.(lock.Verification)
	return v.CheckedAt, ok && l.granted.Place == 0 && l.mode == lock.Exclusive && v.Token == l.token && v.Status == lock.Current
}
