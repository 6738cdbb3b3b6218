package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// members returns the locks that the call is about, ordered by name, if it is about a set; only their names are known unless
// it is an acquire.
func (c *Call) members() []lock.Member {
	var all []lock.Member
	switch a := c.Request.(type) {
	case lock.Acquire:
		all = slices.Clone(a.Set)
	case lock.Renew:
		all = named(a.Set)
	case lock.Release:
		all = named(a.Set)
	}
	slices.SortFunc(all, func(a, b lock.Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func named(names []string) []lock.Member {
	all := make([]lock.Member, len(names))
	for i, name := range names {
		all[i].Name = name
	}
	return all
}

func namesOf(all []lock.Member) []string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.Name
	}
	return names
}

// parts returns the call as one call for each of its locks: the leases of a set are granted, renewed and released like one
// of each lock. A call on one lock is returned as it is.
func (c *Call) parts() []*Call {
	all := c.members()
	if len(all) == 0 {
		return []*Call{c}
	}
	parts := make([]*Call, len(all))
	for i, m := range all {
		p := *c
		p.Name, p.Request, p.Err = m.Name, requestPart(c.Request, m), errorPart(c.Err, m.Name, i == 0)
		if len(all) > 1 {
			p.whole = c
		}
		if g, ok := c.Response.(lock.Grant); ok {
			if len(g.Members) == len(all) {
				g.Lease = g.Members[i]
			}
			g.Members = nil
			p.Response = g
		}
		parts[i] = &p
	}
	return parts
}

func requestPart(request any, m lock.Member) any {
	switch a := request.(type) {
	case lock.Acquire:
		a.Name, a.Mode, a.Capacity, a.Set = m.Name, m.Mode, m.Capacity, nil
		return a
	case lock.Renew:
		a.Name, a.Set = m.Name, nil
		return a
	case lock.Release:
		a.Name, a.Set = m.Name, nil
		return a
	}
	return request
}

// errorPart returns what a refusal says about one of the locks. A call whose place another call has taken over is told of
// the first lock only.
func errorPart(err error, name string, first bool) error {
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != lock.ErrHeld || first && len(e.Blocked) == 0 {
		return err
	}
	part := &lock.Error{Code: e.Code, Detail: e.Detail, KeptFor: e.KeptFor}
	for _, b := range e.Blocked {
		if b.Name != name {
			continue
		}
		part.Holder, part.RetryAfter, part.Ahead = b.Holder, b.RetryAfter, b.Ahead
		if len(e.Blocked) == 1 {
			part.Newest = e.Newest // otherwise it may be that of another lock
		}
	}
	return part
}

// addRevocations adds revocations to the other locks of the sets that they may have ended.
func addRevocations(all map[string]*lockHistory) {
	added := map[*lockHistory][]*Call{}
	for _, t := range all {
		for _, c := range t.calls {
			r, ok := c.Request.(lock.Revoke)
			if !ok || !mayEnd(c) {
				continue
			}
			for _, l := range t.leases {
				if l.token != r.Token || l.group == nil || r.Slot != nil && *r.Slot != l.slot {
					continue
				}
				for _, name := range l.group.set {
					if o := all[name]; o != t {
						added[o] = append(added[o], o.revocations(c, r, l.group.id)...)
					}
				}
			}
		}
	}
	for t, calls := range added {
		t.calls = append(t.calls, calls...)
		slices.SortStableFunc(t.calls, func(a, b *Call) int { return cmp.Compare(a.Sent, b.Sent) })
	}
}

// revocations returns a revocation of each lease with the ID, as a part of the revocation c of the set. Whether it had an
// effect is not known.
func (t *lockHistory) revocations(c *Call, r lock.Revoke, id lock.LeaseID) (parts []*Call) {
	for _, l := range t.group(id).leases {
		p := *c
		p.whole, p.Name, p.Response, p.Err = c, t.name, nil, &lock.Error{Code: lock.ErrUnknownOutcome}
		p.Request = lock.Revoke{Name: t.name, Token: l.token, Slot: &l.slot, Reason: r.Reason, SkipGrace: r.SkipGrace}
		parts = append(parts, &p)
	}
	return parts
}

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
		if s.crossesEpoch() {
			continue
		}
		for nth := range s.grants(c) {
			if leases := s.nth(nth); s.grantedTogether(leases, c) {
				s.endedTogether(leases, c)
				s.seenAfterEnd(leases, c)
			}
		}
	}
}

func (s jointSet) crossesEpoch() bool {
	for i, t := range s.locks {
		if slices.ContainsFunc(s.groups[i].leases, func(l *lease) bool { return l.crossesEpoch(t) }) {
			return true
		}
	}
	return false
}

// grants returns how often the set was granted at all of its locks, which is more than once only if grants were withdrawn.
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

// grantedTogether checks that the leases were granted at one instant and have one token. Only a shared lease that joined
// others has theirs.
func (s jointSet) grantedTogether(leases []*lease, c *Check) bool {
	first, drawn := leases[0], (*lease)(nil)
	for i, l := range leases {
		if !l.granted.At.Equal(first.granted.At) {
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

// endedTogether checks that leases which a call ended were ended at one instant and in one way. Time ends them together,
// too, but each lock records that when it is next decided about. A lease of a session may have ended with it meanwhile.
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
		case end.Kind != e.Kind || !end.At.Equal(e.At):
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
		if l.ended != nil && l.ended.Kind == lock.Expired && (first == nil || l.ended.At.Before(first.ended.At)) {
			first, at = l, i
		}
	}
	if first == nil {
		return
	}
	for i, l := range leases {
		for _, call := range s.locks[i].calls {
			if seen, ok := l.seenHeldBy(call); ok && !seen.Before(first.ended.At) {
				c.violated(s.locks[i], fmt.Sprintf("The lease of %q with token %d was seen at %s, but %s, which was acquired together with it, "+
					"had expired at %s.", l.holder, l.token, clock(seen), s.names[at], clock(first.ended.At)), []*Call{call}, l.granted, l.ended)
				return
			}
		}
	}
}

// seenHeldBy returns the time at which the answer shows the lease, false if it does not. A lease that was not claimed yet
// may end before the time that is shown.
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
