package lock_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

var someTrees = lock.Trees{"r": {}, "repo": {}}

// inTree are locks of a tree, and one outside.
var inTree = []string{"r", "r:a", "r:a:x", "r:a:y", "r:b", "r:b:x", "plain"}

// A treeMachine applies random commands on the locks of a tree, alone and in sets, and checks after each decision what
// must hold in a tree. It knows the rule only as: exclusive leases exclude all leases above and below.
type treeMachine struct {
	*setModel
	calls  []lock.Acquire // all, in order
	before []lock.Lease   // held when the last decision was checked
	used   byte
}

func TestTreeInvariants(t *testing.T) {
	t.Parallel()
	below, waited := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := &treeMachine{setModel: newSetModel(rt)}
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": m.draw, "wait": m.draw, "join": m.draw, "again": func(t *rapid.T) { m.submit(m.one(t)) },
			"renew": m.renew, "release": m.release, "give up": m.release, "revoke": m.revoke, "claim": m.claim, "leave": m.leave,
			"clock": func(t *rapid.T) {
				m.pass(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
			},
			"replica": func(t *rapid.T) { m.self = 3 - m.self },
		})
		for _, l := range m.before {
			if strings.Contains(l.Name, ":") {
				below++
			}
			if l.Place > 0 {
				waited++
			}
		}
	})
	if below == 0 || waited == 0 {
		t.Errorf("at the ends, %d leases were below the root, and %d had waited", below, waited)
	}
}

// draw acquires a lock, or a set.
func (m *treeMachine) draw(t *rapid.T) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(inTree), 1, 2, rapid.ID[string]).Draw(t, "names")
	m.used++
	a := lock.Acquire{LeaseID: id(m.used), Holder: string('A' + rune(m.used%26)), TTL: 5 * time.Second, KeepPlace: rapid.Bool().Draw(t, "keep")}
	a.Wait = rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 20 * time.Second}).Draw(t, "wait")
	a.Grace = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "grace")
	for _, name := range names {
		a.Set = append(a.Set, lock.Member{Name: name, Mode: rapid.SampledFrom([]lock.Mode{lock.Exclusive, lock.Shared}).Draw(t, "mode")})
	}
	a, err := a.Resolve(anyBounds())
	if err == nil {
		a, err = a.In(someTrees)
	}
	if err != nil {
		t.Skip(err)
	}
	m.submit(a)
}

func (m *treeMachine) submit(a lock.Acquire) {
	if a.Replica, a.Attachment = m.self, 0; a.Wait > 0 {
		m.setModel.calls++
		a.Attachment = m.setModel.calls
	}
	m.decide(a)
	m.calls = append(m.calls, a)
}

func (m *treeMachine) one(t *rapid.T) lock.Acquire {
	if len(m.calls) == 0 {
		t.Skip("no calls")
	}
	return rapid.SampledFrom(m.calls).Draw(t, "call")
}

// namesOf returns the name or the set of the call, with the ancestors.
func (m *treeMachine) namesOf(a lock.Acquire) (name string, set []string) {
	if len(a.Set) > 0 {
		return "", a.Names()
	}
	return a.Name, nil
}

// asked returns what the client of the call names: its locks without the ancestors.
func asked(a lock.Acquire) (name string, set []string) {
	for _, m := range a.Set {
		if !m.Mode.IsIntention() {
			set = append(set, m.Name)
		}
	}
	switch len(set) {
	case 0:
		return a.Name, nil
	case 1:
		return set[0], nil
	}
	return "", set
}

func (m *treeMachine) renew(t *rapid.T) {
	a := m.one(t)
	r := lock.Renew{LeaseID: a.LeaseID}
	r.Name, r.Set = asked(a)
	m.decide(r.In(someTrees))
}

func (m *treeMachine) release(t *rapid.T) {
	a := m.one(t)
	r := lock.Release{LeaseID: a.LeaseID}
	r.Name, r.Set = asked(a)
	first := m.decide(r.In(someTrees))
	if again := m.decide(r.In(someTrees)); first.Err == nil && again.Err != nil {
		t.Fatalf("a repeated release of %v was refused: %v", a.Names(), again.Err)
	}
	for _, name := range a.Names() {
		for _, l := range m.record(name).Leases {
			if l.ID == a.LeaseID && !l.Revoked() {
				t.Fatalf("%s is held after its release", name)
			}
		}
	}
}

func (m *treeMachine) revoke(t *rapid.T) {
	name, _ := asked(m.one(t))
	leases := slices.DeleteFunc(slices.Clone(m.record(name).Leases), func(l lock.Lease) bool { return l.Mode.IsIntention() })
	if len(leases) == 0 {
		t.Skip("nothing is held")
	}
	r := lock.Revoke{Name: name, Token: leases[0].Token, Reason: "test", SkipGrace: rapid.Bool().Draw(t, "skip grace")}
	d := m.applyAll(r)
	for ; d.Rest != nil; d = m.applyAll(d.Rest) {
	}
	if d.Err != nil {
		t.Fatalf("%+v: %v", r, d.Err)
	}
	m.verify(r)
}

func (m *treeMachine) claim(t *rapid.T) {
	a := m.one(t)
	if a.Attachment == 0 {
		t.Skip("it does not wait")
	}
	c := lock.Claim{LeaseID: a.LeaseID, Attachment: a.Attachment}
	c.Name, c.Set = m.namesOf(a)
	m.self = a.Replica
	m.decide(c)
}

func (m *treeMachine) leave(t *rapid.T) {
	a := m.one(t)
	if a.Attachment == 0 {
		t.Skip("it does not wait")
	}
	l := lock.Leave{LeaseID: a.LeaseID, Attachment: a.Attachment, KeepPlace: a.KeepPlace, Disconnected: rapid.Bool().Draw(t, "gone")}
	l.Name, l.Set = m.namesOf(a)
	m.self = a.Replica
	m.decide(l)
}

// pass moves the clock, and then sweeps each lock by itself.
func (m *treeMachine) pass(d time.Duration) {
	m.now = m.now.Add(d)
	for _, name := range slices.Sorted(maps.Keys(m.locks)) {
		m.applyAll(lock.Sweep{Locks: []string{name}})
	}
	m.verify(lock.Sweep{})
}

func (m *treeMachine) decide(cmd lock.Command) lock.Decision {
	d := m.applyAll(cmd)
	m.verify(cmd)
	return d
}

// covers reports whether one of the locks is the other one, or above it in the tree.
func covers(a, b string) bool {
	return a == b || someTrees.Contains(a) && (strings.HasPrefix(a, b+":") || strings.HasPrefix(b, a+":"))
}

// verify checks all leases and waiters.
func (m *treeMachine) verify(cmd lock.Command) {
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
func (m *treeMachine) checkPath(cmd lock.Command, name string, l lock.Lease) {
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
func (m *treeMachine) checkWaits(cmd lock.Command, w *lock.Waiter, held []lock.Lease) {
	m.t.Helper()
	waits := false
	for _, name := range w.Lease.Asked() {
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
		m.t.Fatalf("after %T%+v: %q waits for %v, and nothing is in its way", cmd, cmd, w.Lease.Holder, w.Lease.Asked())
	}
}

// checkOrder checks that the lease, which conflicts with the waiter of the lock, has the earlier place in the queue in
// which both were.
func (m *treeMachine) checkOrder(cmd lock.Command, name string, w *lock.Waiter, l lock.Lease) {
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

func (m *treeMachine) waiter(name string, id lock.LeaseID) *lock.Waiter {
	queue := m.record(name).Queue
	if i := slices.IndexFunc(queue, func(w *lock.Waiter) bool { return w.Lease.ID == id }); i >= 0 {
		return queue[i]
	}
	return nil
}
