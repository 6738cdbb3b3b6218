package verify

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// members returns the locks that the call is about, ordered by name, if it is about a set; only their names are
// known unless it is an acquire.
func (c *Call) members() []lock.Member {
	var all []lock.Member
	switch a := c.Request.(type) {
	case lock.Acquire:
		all = slices.Clone(a.Set)
	case lock.Renew:
		all = withNames(a.Set)
	case lock.Release:
		all = withNames(a.Set)
	}
	slices.SortFunc(all, func(a, b lock.Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func withNames(names []string) []lock.Member {
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

// parts returns the call as one call for each of its locks: the leases of a set are granted, renewed and released
// like one of each lock. A call on one lock is returned as it is.
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

// errorPart returns what a refusal says about one of the locks. If another call has taken over the place, it says
// something of the first lock only.
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

// revocations returns a revocation of each lease with the ID, as a part of the revocation c of the set. Whether it
// had an effect is not known.
func (t *lockHistory) revocations(c *Call, r lock.Revoke, id lock.LeaseID) (parts []*Call) {
	for _, l := range t.group(id).leases {
		p := *c
		p.whole, p.Name, p.Response, p.Err = c, t.name, nil, &lock.Error{Code: lock.ErrUnknownOutcome}
		p.Request = lock.Revoke{Name: t.name, Token: l.token, Slot: &l.slot, Reason: r.Reason, SkipGrace: r.SkipGrace}
		parts = append(parts, &p)
	}
	return parts
}
