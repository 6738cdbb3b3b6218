package verify

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A lockHistory is all that is known of one lock.
type lockHistory struct {
	name   string
	calls  []*Call
	events []lock.Event // in the order of their revisions
	groups map[lock.LeaseID]*callGroup
	// leases are those that were granted, as the events tell, in their order; and
	// then those that only answers tell of.
	leases   []*lease
	capacity int // of its permits, zero if that is not one number
	faults   []Fault
	last     time.Duration // when the last answer of the history came
}

// A callGroup is all that was asked for under one lease_id.
type callGroup struct {
	id                         lock.LeaseID
	acquires, renews, releases []*Call
	leases                     []*lease
}

// A lease is one that was granted, for all that anybody knows.
type lease struct {
	group    *callGroup // nil if nobody is known to have asked for it
	token    lock.Token
	slot     int
	mode     lock.Mode
	holder   string
	granted  *lock.Event // nil if no event tells of it
	ended    *lock.Event // nil if none does
	skipped  *lock.Event // that an operator skipped the rest of the grace of a revocation; nil if none does
	acquired []*Call     // the acquires that were answered with it
	renewed  []*Call     // the renewals that were
}

// acquire returns what is acquire for under the lease_id, false if it was never acquired.
func (r *callGroup) acquire() (lock.Acquire, bool) {
	if r == nil || len(r.acquires) == 0 {
		return lock.Acquire{}, false
	}
	a := r.acquires[0].Request.(lock.Acquire)
	a.Mode = cmp.Or(a.Mode, lock.Exclusive)
	return a, true
}

// holder returns the text of who asks, empty if that is not known.
func (r *callGroup) holder() string { a, _ := r.acquire(); return a.Holder }

// locks sorts what was recorded by locks, in the order of their names.
func (h History) locks() []*lockHistory {
	all := map[string]*lockHistory{}
	of := func(name string) *lockHistory {
		if all[name] == nil {
			all[name] = &lockHistory{name: name, groups: map[lock.LeaseID]*callGroup{}, faults: h.Faults}
		}
		return all[name]
	}
	var last time.Duration
	for i := range h.Calls {
		c := &h.Calls[i]
		last = max(last, c.Answered)
		if c.Verb != ReadFenced {
			of(c.Name).addCall(c)
		}
	}
	for _, e := range h.Events {
		t := of(e.Name)
		t.events = append(t.events, e)
	}
	names := slices.Sorted(maps.Keys(all))
	tales := make([]*lockHistory, len(names))
	for i, name := range names {
		t := all[name]
		t.last = last
		slices.SortStableFunc(t.events, func(a, b lock.Event) int { return cmp.Compare(a.Revision, b.Revision) })
		t.addEvents()
		t.addAnswers()
		tales[i] = t
	}
	return tales
}

// addCall notes a call with its request.
func (t *lockHistory) addCall(c *Call) {
	t.calls = append(t.calls, c)
	switch a := c.Request.(type) {
	case lock.Acquire:
		r := t.group(a.LeaseID)
		r.acquires = append(r.acquires, c)
		if a.Wait > 0 && c.Outcome() == Unknown {
			r.releases = append(r.releases, c) // a client that hangs up gives up what came meanwhile
		}
		switch {
		case a.Capacity == 0:
		case t.capacity == 0:
			t.capacity = a.Capacity
		case t.capacity != a.Capacity:
			t.capacity = -1
		}
	case lock.Renew:
		r := t.group(a.LeaseID)
		r.renews = append(r.renews, c)
	case lock.Release:
		r := t.group(a.LeaseID)
		r.releases = append(r.releases, c)
	}
}

func (t *lockHistory) group(id lock.LeaseID) *callGroup {
	if t.groups[id] == nil {
		t.groups[id] = &callGroup{id: id}
	}
	return t.groups[id]
}

// addEvents notes the leases that the events tell of.
func (t *lockHistory) addEvents() {
	byHolder := map[string][]*callGroup{}
	for _, r := range t.groups {
		if a, ok := r.acquire(); ok {
			byHolder[a.Holder] = append(byHolder[a.Holder], r)
		}
	}
	open := map[int]*lease{}
	for i := range t.events {
		e := &t.events[i]
		switch l := open[e.Slot]; e.Kind {
		case lock.Granted:
			l = &lease{token: e.Token, slot: e.Slot, mode: e.Mode, holder: e.Holder, granted: e}
			l.group = requestedBy(byHolder[e.Holder], e)
			if l.group != nil {
				l.group.leases = append(l.group.leases, l)
			}
			t.leases, open[e.Slot] = append(t.leases, l), l
		case lock.Released, lock.Expired, lock.Revoked, lock.Withdrawn:
			switch {
			case l == nil || l.token != e.Token:
			case l.ended == nil:
				l.ended = e
			case l.ended.Kind == lock.Revoked && e.Kind == lock.Revoked && l.skipped == nil:
				l.skipped = e
			}
		}
	}
}

// requestedBy returns the request that was granted, of those with that holder.
func requestedBy(requests []*callGroup, e *lock.Event) *callGroup {
	if len(requests) == 1 {
		return requests[0]
	}
	for _, r := range requests {
		for _, c := range r.acquires {
			if g, ok := c.Response.(lock.Grant); ok && g.Token == e.Token {
				return r
			}
		}
	}
	return nil
}

// addAnswers notes which leases answers tell of, and those that no event tells of.
func (t *lockHistory) addAnswers() {
	for _, c := range t.calls {
		g, ok := c.Response.(lock.Grant)
		if !ok || c.Verb != Acquire && c.Verb != Renew {
			continue
		}
		l := t.lease(t.groupOf(c), g)
		if c.Verb == Acquire {
			l.acquired = append(l.acquired, c)
		} else {
			l.renewed = append(l.renewed, c)
		}
	}
}

func (t *lockHistory) groupOf(c *Call) *callGroup {
	switch a := c.Request.(type) {
	case lock.Acquire:
		return t.groups[a.LeaseID]
	case lock.Renew:
		return t.groups[a.LeaseID]
	case lock.Release:
		return t.groups[a.LeaseID]
	}
	return nil
}

// lease returns the lease that the answer tells of. Of several in one phase of readers
// it is the last, those before having been withdrawn.
func (t *lockHistory) lease(r *callGroup, g lock.Grant) *lease {
	for _, l := range slices.Backward(r.leases) {
		if l.matches(g.Lease) {
			return l
		}
	}
	l := &lease{group: r, token: g.Token, slot: g.Slot, mode: cmp.Or(g.Mode, lock.Exclusive), holder: cmp.Or(g.Holder, r.holder())}
	r.leases, t.leases = append(r.leases, l), append(t.leases, l)
	return l
}

// firstAnswer returns the firstAnswer answer that tells of the lease, nil if none does.
func (l *lease) firstAnswer() *Call {
	var first *Call
	for _, c := range slices.Concat(l.acquired, l.renewed) {
		if first == nil || c.Answered < first.Answered {
			first = c
		}
	}
	return first
}

// revokedSkippingGrace reports whether the revocation that ended the lease skipped its grace, and
// whether that is known: it is that of the calls whose reason the event has.
func (t *lockHistory) revokedSkippingGrace(l *lease) (atOnce, known bool) {
	for _, c := range t.calls {
		r, ok := c.Request.(lock.Revoke)
		if !ok || r.Token != l.token || r.Reason != l.ended.Reason {
			continue
		}
		if known && r.SkipGrace != atOnce {
			return false, false
		}
		atOnce, known = r.SkipGrace, true
	}
	return atOnce, known
}

// grant returns what the answer of an acquire or a renewal says.
func grant(c *Call) lock.Grant { g, _ := c.Response.(lock.Grant); return g }

// conflict is whether leases of these modes cannot be together, whatever else there is.
func conflict(a, b lock.Mode) bool { return a != b || a == lock.Exclusive }
