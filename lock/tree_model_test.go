package lock_test

import (
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

var someTrees = lock.Trees{"r": {}, "repo": {}}

// covers reports whether one of the locks is the other one, or above it in the tree.
func covers(a, b string) bool {
	return a == b || someTrees.Contains(a) && (strings.HasPrefix(a, b+":") || strings.HasPrefix(b, a+":"))
}

// checkTrees checks all leases and waiters. It knows the rule only as: exclusive leases exclude all leases above and
// below.
func (m *setModel) checkTrees(cmd lock.Command) {
	m.t.Helper()
	var held []lock.Lease
	for name := range m.locks {
		r := m.record(name)
		for _, l := range r.Leases {
			if m.now.Before(l.EndsAt()) && m.lastNow.Before(l.EndsAt()) {
				m.checkPath(cmd, name, l)
				held = append(held, l)
			}
		}
	}
	held = slices.DeleteFunc(held, func(l lock.Lease) bool { return l.Mode.IsIntention() })
	for i, l := range held {
		for _, o := range held[:i] {
			if l.ID != o.ID && covers(l.Name, o.Name) && (l.Mode == lock.Exclusive || o.Mode == lock.Exclusive) {
				m.t.Fatalf("after %T%+v: %q holds %s and %q holds %s", cmd, cmd, l.Holder, l.Name, o.Holder, o.Name)
			}
		}
	}
	for name := range m.locks {
		for _, w := range m.record(name).Queue {
			if !w.Lease.Mode.IsIntention() && w.Attached(m.now, m.self) && w.Attached(m.lastNow, m.self) && !w.GrantedUnclaimed {
				m.checkWaits(cmd, w, held)
			}
		}
	}
	m.before = held
}

// checkPath checks that the lease has what it needs above it, and that an intention stands for a lease.
func (m *setModel) checkPath(cmd lock.Command, name string, l lock.Lease) {
	m.t.Helper()
	found, below := 0, false
	for other := range m.locks {
		for _, o := range m.record(other).Leases {
			if o.ID != l.ID {
				continue
			}
			if other == name || someTrees.Contains(name) && strings.HasPrefix(name, other+":") {
				found++
			}
			below = below || strings.HasPrefix(other, name+":") && !o.Mode.IsIntention()
			if !o.EndsAt().Equal(l.EndsAt()) || o.Revoked() != l.Revoked() {
				m.t.Fatalf("after %T%+v: the lease of %q ends at %v at %s, and at %v at %s", cmd, cmd, l.Holder, l.EndsAt(), name, o.EndsAt(), other)
			}
		}
	}
	levels := 1
	if someTrees.Contains(name) {
		levels += strings.Count(name, ":")
	}
	if found != levels {
		m.t.Fatalf("after %T%+v: %q holds %s, and %d of the %d locks on the way to it", cmd, cmd, l.Holder, name, found, levels)
	}
	if l.Mode.IsIntention() && !below {
		m.t.Fatalf("after %T%+v: %q has an intention at %s, and no lock below", cmd, cmd, l.Holder, name)
	}
}

// checkWaits checks that the call of the waiter has something to wait for, and that no lease which it conflicts with
// was granted to a call that came later.
func (m *setModel) checkWaits(cmd lock.Command, w *lock.Waiter, held []lock.Lease) {
	m.t.Helper()
	waits := false
	for _, name := range w.Lease.Requested() {
		mine := m.waiter(name, w.Lease.ID)
		if mine == nil {
			continue // its places lapse together, but are removed one by one
		}
		for _, l := range held {
			if covers(l.Name, name) && (l.Mode == lock.Exclusive || mine.Lease.Mode == lock.Exclusive) {
				waits = true
				m.checkOrder(cmd, name, mine, l)
			}
		}
		for above := range m.locks {
			if isAbove := someTrees.Contains(name) && strings.HasPrefix(name, above+":"); above != name && !isAbove {
				continue
			}
			waits = waits || m.isClosed(above)
			for _, o := range m.record(above).Queue {
				own := m.waiter(above, w.Lease.ID)
				if own == nil || o.Place >= own.Place {
					break
				}
				conflict := !own.Lease.Mode.IsIntention() && !o.Lease.Mode.IsIntention() ||
					own.Lease.Mode == lock.Exclusive || o.Lease.Mode == lock.Exclusive ||
					own.Lease.Mode != o.Lease.Mode && (own.Lease.Mode == lock.IntentionExclusive || o.Lease.Mode == lock.IntentionExclusive) &&
						(own.Lease.Mode == lock.Shared || o.Lease.Mode == lock.Shared)
				waits = waits || conflict && o.Attached(m.now, m.self) && !o.GrantedUnclaimed
			}
		}
	}
	if !waits {
		m.t.Fatalf("after %T%+v: %q waits for %v, and nothing is in its way", cmd, cmd, w.Lease.Holder, w.Lease.Requested())
	}
}

// checkOrder checks that the lease, which conflicts with the waiter of the lock, has the earlier place in the queue in
// which both were.
func (m *setModel) checkOrder(cmd lock.Command, name string, w *lock.Waiter, l lock.Lease) {
	m.t.Helper()
	higher := name
	if len(l.Name) < len(name) {
		higher = l.Name
	}
	held := slices.ContainsFunc(m.before, func(o lock.Lease) bool { return o.ID == l.ID && o.Name == l.Name })
	own := m.waiter(higher, w.Lease.ID)
	for _, at := range m.record(higher).Leases {
		if own != nil && at.ID == l.ID && at.Place > own.Place && !held {
			m.t.Fatalf("after %T%+v: %q was granted %s before %q, which waits for %s in an earlier place", cmd, cmd, l.Holder, l.Name, w.Lease.Holder, name)
		}
	}
}

func (m *setModel) waiter(name string, id lock.LeaseID) *lock.Waiter {
	queue := m.record(name).Queue
	if i := slices.IndexFunc(queue, func(w *lock.Waiter) bool { return w.Lease.ID == id }); i >= 0 {
		return queue[i]
	}
	return nil
}
