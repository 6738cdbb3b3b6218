package verify

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A lockHistory is everything that was recorded about one lock.
type lockHistory struct {
	name   string
	calls  []*Call
	events []lock.Event // ordered by revision
	groups map[lock.LeaseID]*callGroup
	// leases are first those granted by events, in that order, and then those that only answers
	// mention.
	leases   []*lease
	capacity int // of its permits; 0 if unknown, -1 if calls disagree
	epochs   epochs
	sessions map[lock.SessionRef]*sessionHistory // all of the history
	inTree   bool
	inCells  bool          // as in History
	ruled    bool          // some rule for it was declared
	above    []string      // the locks above it in its tree, from the root on
	last     time.Duration // when the last call of the whole history was answered
}

// A callGroup is all calls with one lease_id.
type callGroup struct {
	id                         lock.LeaseID
	set                        []string // names of the locks that were asked for together; nil for one lock
	acquires, renews, releases []*Call
	closes                     []*Call // may have closed the session of the lease
	leases                     []*lease
}

// A lease is one that was granted, as far as events and answers show.
type lease struct {
	group     *callGroup // nil if no recorded call requested the lease
	token     lock.Token
	slot      int
	slots     lock.Slots // of several permits; otherwise empty
	mode      lock.Mode
	holder    string
	granted   *lock.Event   // event of the grant; nil if there is none
	ended     *lock.Event   // event of the end; nil if there is none
	skipped   *lock.Event   // second revocation, which skipped the rest of the grace; nil if there is none
	suspected []*lock.Event // events that the lease is suspect
	acquired  []*Call       // acquires that were answered with this lease
	renewed   []*Call       // renewals that were answered with this lease
}

// acquire returns the request of the first acquire, false if there is none.
func (r *callGroup) acquire() (lock.Acquire, bool) {
	if r == nil || len(r.acquires) == 0 {
		return lock.Acquire{}, false
	}
	a := r.acquires[0].Request.(lock.Acquire)
	return withLock(a, a.Locks[0].Name), true
}

// withLock returns the acquire of one lock as one of the lock of that name, with its mode.
func withLock(a lock.Acquire, name string) lock.Acquire {
	m := a.Locks[0]
	if m.Mode == lock.Permit && m.Capacity == 0 {
		m.Capacity = lock.MaxHolders // that of a rule, see policy.go
	}
	a.Locks = []lock.Member{{Name: name, Mode: cmp.Or(m.Mode, lock.Exclusive), Capacity: m.Capacity, Permits: m.Permits}}
	return a
}

// holder returns the holder's text, empty if it is unknown.
func (r *callGroup) holder() string { a, _ := r.acquire(); return a.Holder }

// locks groups the history by lock, ordered by name.
func (h History) locks() []*lockHistory {
	all, sessions, trees := map[string]*lockHistory{}, h.sessions(), h.trees()
	of := func(name string) *lockHistory {
		if all[name] == nil {
			all[name] = &lockHistory{
				name: name, groups: map[lock.LeaseID]*callGroup{}, sessions: sessions,
				above: trees.Path(name), inTree: trees.Contains(name), inCells: h.inCells,
			}
		}
		return all[name]
	}
	var last time.Duration
	for i := range h.Calls {
		c := &h.Calls[i]
		last = max(last, c.Answered)
		if _, _, policy := scopeOf(c); c.Verb != ReadFenced && c.Verb != DeclareTree && c.session() == 0 && !policy {
			for _, part := range c.parts() {
				of(part.Name).addCall(part)
			}
		}
	}
	for key := range h.declarations() {
		for name, t := range all {
			t.ruled = t.ruled || !key.freeze && key.scope.Covers(name)
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
	addRevocations(all)
	return tales
}

// addCall adds a call to its group.
func (t *lockHistory) addCall(c *Call) {
	t.calls = append(t.calls, c)
	switch a := c.Request.(type) {
	case lock.Acquire:
		r := t.group(a.LeaseID)
		if r.acquires = append(r.acquires, c); c.whole != nil {
			r.set = c.whole.names()
		}
		if s := t.sessions[a.SessionID.Ref()]; s != nil {
			r.closes = s.closes
		}
		if a.Wait > 0 && c.Outcome() == Unknown {
			r.releases = append(r.releases, c) // a client that disconnects releases a grant that comes meanwhile
		}
		switch {
		case a.Locks[0].Capacity == 0:
		case t.capacity == 0:
			t.capacity = a.Locks[0].Capacity
		case t.capacity != a.Locks[0].Capacity:
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

// addEvents adds the leases that the events mention.
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
			l = &lease{token: e.Token, slot: e.Slot, slots: e.Slots, mode: e.Mode, holder: e.Holder, granted: e}
			l.group = requestedBy(byHolder[e.Holder], e)
			if l.group != nil {
				l.group.leases = append(l.group.leases, l)
			}
			t.leases, open[e.Slot] = append(t.leases, l), l
		case lock.Suspected:
			if l != nil && l.token == e.Token {
				l.suspected = append(l.suspected, e)
			}
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

// requestedBy returns the group, among those with the event's holder, that was granted.
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

// addAnswers links answers to their leases, and adds the leases that no event mentions.
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

// lease returns the lease in an answer. If several in one shared phase match, it is the last:
// the earlier ones were withdrawn.
func (t *lockHistory) lease(r *callGroup, g lock.Grant) *lease {
	for _, l := range slices.Backward(r.leases) {
		if l.matches(g.Lease) {
			return l
		}
	}
	l := &lease{group: r, token: g.Token, slot: g.Slot, slots: g.Slots, mode: cmp.Or(g.Mode, lock.Exclusive),
		holder: cmp.Or(g.Holder, r.holder())}
	r.leases, t.leases = append(r.leases, l), append(t.leases, l)
	return l
}

// stays reports whether the lease does not end by itself.
func (l *lease) stays() bool { a, _ := l.group.acquire(); return a.Stays }

// hasSlot reports whether the slot is one of the lease's, or nil.
func (l *lease) hasSlot(slot *int) bool { return slot == nil || l.slots.Include(l.slot, *slot) }

// sharesSlot reports whether a lease with these slots has one in common with l.
func (l *lease) sharesSlot(slot int, slots lock.Slots) bool {
	return slices.ContainsFunc(slots.All(slot), func(n int) bool { return l.hasSlot(&n) })
}

// firstAnswer returns the first answer that mentions the lease, nil if there is none.
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
// whether that is known: the revocation is matched by its reason.
func (t *lockHistory) revokedSkippingGrace(l *lease) (skipped, known bool) {
	for _, c := range t.calls {
		r, ok := c.Request.(lock.Revoke)
		if !ok || r.Token != l.token || r.Reason != l.ended.Reason {
			continue
		}
		if known && r.SkipGrace != skipped {
			return false, false
		}
		skipped, known = r.SkipGrace, true
	}
	return skipped, known
}

// grant returns the grant with which an acquire or a renewal was answered, zero if it was not.
func grant(c *Call) lock.Grant { g, _ := c.Response.(lock.Grant); return g }

// conflict reports whether leases of these modes can never be held together.
func conflict(a, b lock.Mode) bool { return a != b || a == lock.Exclusive }
