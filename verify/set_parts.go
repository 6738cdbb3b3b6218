package verify

import (
	"cmp"
	"errors"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// names returns the locks that an acquire, a renewal or a release is about, in order; nil for other calls.
func (c *Call) names() []string {
	switch r := c.Request.(type) {
	case lock.Acquire, lock.Renew, lock.Release:
		return slices.Sorted(slices.Values(r.(lock.Command).Names()))
	}
	return nil
}

// parts returns the call as one call for each of its locks: the leases of a set are granted, renewed and released
// like one of each lock. A call on one lock is returned as it is.
func (c *Call) parts() []*Call {
	all := c.names()
	if len(all) < 2 {
		return []*Call{c}
	}
	parts := make([]*Call, len(all))
	for i, name := range all {
		p := *c
		p.whole, p.Name, p.Request, p.Err = c, name, requestPart(c.Request, name), errorPart(c.Err, name, i == 0)
		if g, ok := c.Response.(lock.Grant); ok {
			if len(g.Leases) == len(all) {
				g.Lease = g.Leases[i]
			}
			g.Leases = []lock.Lease{g.Lease}
			p.Response = g
		}
		parts[i] = &p
	}
	return parts
}

func requestPart(request any, name string) any {
	switch r := request.(type) {
	case lock.Acquire:
		r.Locks = slices.DeleteFunc(slices.Clone(r.Locks), func(m lock.Member) bool { return m.Name != name })
		return r
	case lock.Renew:
		r.Locks = []string{name}
		return r
	case lock.Release:
		r.Locks = []string{name}
		return r
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
				if l.token != r.Token || l.group == nil || !l.hasSlot(r.Slot) {
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
