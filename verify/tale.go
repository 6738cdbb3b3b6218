package verify

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A tale is all that is known of one lock.
type tale struct {
	name     string
	calls    []*Call
	events   []lock.Event // in the order of their revisions
	requests map[lock.LeaseID]*request
	// leases are those that were granted, as the events tell, in their order; and
	// then those that only answers tell of.
	leases   []*lease
	capacity int // of its permits, zero if that is not one number
	faults   []Fault
	last     time.Duration // when the last answer of the history came
}

// A request is all that was asked for under one lease_id.
type request struct {
	id                         lock.LeaseID
	acquires, renews, releases []*Call
	leases                     []*lease
}

// A lease is one that was granted, for all that anybody knows.
type lease struct {
	of      *request // nil if nobody is known to have asked for it
	token   lock.Token
	slot    int
	mode    lock.Mode
	holder  string
	granted *lock.Event // nil if no event tells of it
	ended   *lock.Event // nil if none does
	skipped *lock.Event // that an operator skipped the rest of the grace of a revocation; nil if none does
	told    []*Call     // the acquires that were answered with it
	renewed []*Call     // the renewals that were
}

// asked returns what is asked for under the lease_id, false if it was never acquired.
func (r *request) asked() (lock.Acquire, bool) {
	if r == nil || len(r.acquires) == 0 {
		return lock.Acquire{}, false
	}
	a := r.acquires[0].Asked.(lock.Acquire)
	a.Mode = cmp.Or(a.Mode, lock.Exclusive)
	return a, true
}

// holder returns the text of who asks, empty if that is not known.
func (r *request) holder() string { a, _ := r.asked(); return a.Holder }

// tales sorts what was recorded by locks, in the order of their names.
func (h History) tales() []*tale {
	all := map[string]*tale{}
	of := func(name string) *tale {
		if all[name] == nil {
			all[name] = &tale{name: name, requests: map[lock.LeaseID]*request{}, faults: h.Faults}
		}
		return all[name]
	}
	var last time.Duration
	for i := range h.Calls {
		c := &h.Calls[i]
		last = max(last, c.Answered)
		if c.Verb != ReadFenced {
			of(c.Name).call(c)
		}
	}
	for _, e := range h.Events {
		t := of(e.Name)
		t.events = append(t.events, e)
	}
	names := slices.Sorted(maps.Keys(all))
	tales := make([]*tale, len(names))
	for i, name := range names {
		t := all[name]
		t.last = last
		slices.SortStableFunc(t.events, func(a, b lock.Event) int { return cmp.Compare(a.Revision, b.Revision) })
		t.hearEvents()
		t.hearAnswers()
		tales[i] = t
	}
	return tales
}

// call notes a call with its request.
func (t *tale) call(c *Call) {
	t.calls = append(t.calls, c)
	switch a := c.Asked.(type) {
	case lock.Acquire:
		r := t.request(a.LeaseID)
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
		r := t.request(a.LeaseID)
		r.renews = append(r.renews, c)
	case lock.Release:
		r := t.request(a.LeaseID)
		r.releases = append(r.releases, c)
	}
}

func (t *tale) request(id lock.LeaseID) *request {
	if t.requests[id] == nil {
		t.requests[id] = &request{id: id}
	}
	return t.requests[id]
}

// hearEvents notes the leases that the events tell of.
func (t *tale) hearEvents() {
	byHolder := map[string][]*request{}
	for _, r := range t.requests {
		if a, ok := r.asked(); ok {
			byHolder[a.Holder] = append(byHolder[a.Holder], r)
		}
	}
	open := map[int]*lease{}
	for i := range t.events {
		e := &t.events[i]
		switch l := open[e.Slot]; e.Kind {
		case lock.Granted:
			l = &lease{token: e.Token, slot: e.Slot, mode: e.Mode, holder: e.Holder, granted: e}
			l.of = whoAsked(byHolder[e.Holder], e)
			if l.of != nil {
				l.of.leases = append(l.of.leases, l)
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

// whoAsked returns the request that was granted, of those with that holder.
func whoAsked(requests []*request, e *lock.Event) *request {
	if len(requests) == 1 {
		return requests[0]
	}
	for _, r := range requests {
		for _, c := range r.acquires {
			if g, ok := c.Got.(lock.Grant); ok && g.Token == e.Token {
				return r
			}
		}
	}
	return nil
}

// hearAnswers notes which leases answers tell of, and those that no event tells of.
func (t *tale) hearAnswers() {
	for _, c := range t.calls {
		g, ok := c.Got.(lock.Grant)
		if !ok || c.Verb != Acquire && c.Verb != Renew {
			continue
		}
		l := t.lease(t.requestOf(c), g)
		if c.Verb == Acquire {
			l.told = append(l.told, c)
		} else {
			l.renewed = append(l.renewed, c)
		}
	}
}

func (t *tale) requestOf(c *Call) *request {
	switch a := c.Asked.(type) {
	case lock.Acquire:
		return t.requests[a.LeaseID]
	case lock.Renew:
		return t.requests[a.LeaseID]
	case lock.Release:
		return t.requests[a.LeaseID]
	}
	return nil
}

// lease returns the lease that the answer tells of. Of several in one phase of readers
// it is the last, those before having been withdrawn.
func (t *tale) lease(r *request, g lock.Grant) *lease {
	for _, l := range slices.Backward(r.leases) {
		if l.is(g.Lease) {
			return l
		}
	}
	l := &lease{of: r, token: g.Token, slot: g.Slot, mode: cmp.Or(g.Mode, lock.Exclusive), holder: cmp.Or(g.Holder, r.holder())}
	r.leases, t.leases = append(r.leases, l), append(t.leases, l)
	return l
}

// first returns the first answer that tells of the lease, nil if none does.
func (l *lease) first() *Call {
	var first *Call
	for _, c := range slices.Concat(l.told, l.renewed) {
		if first == nil || c.Answered < first.Answered {
			first = c
		}
	}
	return first
}

// revokedAtOnce reports whether the revocation that ended the lease skipped its grace, and
// whether that is known: it is that of the calls whose reason the event has.
func (t *tale) revokedAtOnce(l *lease) (atOnce, known bool) {
	for _, c := range t.calls {
		r, ok := c.Asked.(lock.Revoke)
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
func grant(c *Call) lock.Grant { g, _ := c.Got.(lock.Grant); return g }

// conflict is whether leases of these modes cannot be together, whatever else there is.
func conflict(a, b lock.Mode) bool { return a != b || a == lock.Exclusive }
