package lock_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A setModel is several locks with their clock and replicas, without a store. It checks what must hold of sets after
// each decision.
type setModel struct {
	t       tester
	locks   map[string]lock.Record
	now     time.Time
	self    lock.Replica
	token   lock.Token
	calls   lock.Attachment
	ended   map[lock.LeaseRef]lock.Event
	grants  int // of sets
	lastNow time.Time
	trees   lock.Trees
	freezes map[lock.Scope]lock.Freeze
	before  []lock.Lease // in trees, what was held when they were checked last
}

func newSetModel(t tester) *setModel {
	return &setModel{t: t, locks: map[string]lock.Record{}, now: t0, self: 1, ended: map[lock.LeaseRef]lock.Event{}}
}

// record returns the lock as a store reads it. All replicas are alive.
func (m *setModel) record(name string) lock.Record {
	r, ok := m.locks[name]
	if !ok {
		return lock.Record{Name: name}
	}
	r.Queue = slices.Clone(r.Queue)
	for i, w := range r.Queue {
		if w.Replica != 0 {
			alive := *w
			alive.AliveUntil = m.now.Add(lock.ReplicaTTL)
			r.Queue[i] = &alive
		}
	}
	return r
}

// do applies the command and the sweeps that it asks for, as a store would.
func (m *setModel) do(cmd lock.Command) lock.Decision {
	m.t.Helper()
	d := m.applyAll(cmd)
	m.check(cmd)
	return d
}

// applyAll applies the command, as it is decided in trees, and the sweeps that it asks for.
func (m *setModel) applyAll(cmd lock.Command) lock.Decision {
	m.t.Helper()
	cmd, err := cmd.In(m.policy())
	if err != nil {
		return lock.Decision{Err: err}
	}
	d := m.apply(cmd)
	for ready, n := d.ReadySets, 0; len(ready) > 0; n++ {
		if n > 100 {
			m.t.Fatalf("%T%+v: sets are ready endlessly: %v", cmd, cmd, ready)
		}
		next := m.apply(lock.Sweep{Locks: ready[0]})
		ready = append(ready[1:], next.ReadySets...)
	}
	return d
}

// policy returns what operators have declared.
func (m *setModel) policy() *lock.Policy { return &lock.Policy{Trees: m.trees, Freezes: m.freezes} }

// apply applies one command.
func (m *setModel) apply(cmd lock.Command) lock.Decision {
	m.t.Helper()
	var before, given []lock.Record
	for _, name := range cmd.Names() {
		before, given = append(before, m.record(name)), append(given, withSpareCapacity(m.record(name)))
	}
	d := cmd.Apply(lock.View{
		Now: m.now, Self: m.self, Locks: given, Ended: m.ended, Policy: m.policy(),
		Tokens: func() lock.Token { m.token++; return m.token },
	})
	if !slices.EqualFunc(before, given, equalRecords) {
		m.t.Fatalf("%T%+v changed its input: %+v, before: %+v", cmd, cmd, given, before)
	}
	if err := retryAfterHeld(d.Err); err != nil {
		m.t.Fatalf("%T%+v: %v", cmd, cmd, err)
	}
	m.lastNow = d.Now
	for i, after := range d.Locks {
		m.checkGrants(before[i], after, d.Events)
		m.locks[after.Name] = after
	}
	for _, e := range d.Events {
		if e.Ref != 0 {
			m.ended[e.Ref] = e
		}
	}
	return d
}

// checkGrants checks that tokens grow, and that a call without a place overtakes no attached waiter. A reader in a tree
// may join others after a reader below, which has a greater token.
func (m *setModel) checkGrants(before, after lock.Record, events []lock.Event) {
	m.t.Helper()
	for _, e := range events {
		if e.Kind != lock.Granted || e.Name != after.Name {
			continue
		}
		if e.Token <= before.Token && e.Mode != lock.Shared || e.Token < before.Token && !m.trees.Contains(e.Name) {
			m.t.Fatalf("%s: token %d was granted after %d", e.Name, e.Token, before.Token)
		}
		for _, w := range after.Queue {
			if w.Attached(m.lastNow, m.self) && !w.GrantedUnclaimed && !mayPass(e.Mode, w.Lease.Mode) && (e.Place == 0 || w.Place < e.Place) {
				m.t.Fatalf("%s: place %d was granted the lock before place %d of %q", e.Name, e.Place, w.Place, w.Lease.Holder)
			}
		}
	}
}

// mayPass reports whether a lease of the mode may be granted before a waiter that is ahead: a reader before another one
// that waits at a lock below.
func mayPass(granted, waiter lock.Mode) bool {
	return granted == lock.Shared && waiter == lock.IntentionShared
}

// check checks all locks.
func (m *setModel) check(cmd lock.Command) {
	m.t.Helper()
	for name := range m.locks {
		r := m.record(name)
		for i := range r.Leases {
			if err := m.checkLease(name, &r.Leases[i]); err != nil {
				m.t.Fatalf("after %T%+v: %v", cmd, cmd, err)
			}
		}
		if n := len(r.Leases); n > 1 && slices.ContainsFunc(r.Leases, func(l lock.Lease) bool { return l.Mode == lock.Exclusive }) {
			m.t.Fatalf("after %T%+v: %s has %d leases, one of them exclusive", cmd, cmd, name, n)
		}
		for _, w := range r.Queue {
			if w.Lease.Set != nil && m.trees == nil {
				m.checkWaiter(cmd, name, w)
			}
		}
	}
	if m.trees != nil {
		m.checkTrees(cmd)
	}
}

// checkLease checks that the lease's set is complete, and of one piece.
func (m *setModel) checkLease(name string, l *lock.Lease) error {
	if l.Set == nil || !m.now.Before(l.EndsAt()) || !m.lastNow.Before(l.EndsAt()) {
		return nil
	}
	for _, other := range l.Set {
		leases := m.record(other).Leases
		i := slices.IndexFunc(leases, func(o lock.Lease) bool { return o.ID == l.ID })
		if i < 0 {
			return fmt.Errorf("%s has the lease of %q, and %s of the same set has not", name, l.Holder, other)
		}
		o := &leases[i]
		if !o.AcquiredAt.Equal(l.AcquiredAt) || !o.EndsAt().Equal(l.EndsAt()) || o.Revoked() != l.Revoked() || !slices.Equal(o.Set, l.Set) {
			return fmt.Errorf("the lease of %q is from %v to %v at %s, and from %v to %v at %s",
				l.Holder, l.AcquiredAt, l.EndsAt(), name, o.AcquiredAt, o.EndsAt(), other)
		}
		if o.Token != l.Token && o.Mode == lock.Exclusive && l.Mode == lock.Exclusive {
			return fmt.Errorf("the lease of %q has token %d at %s and %d at %s", l.Holder, l.Token, name, o.Token, other)
		}
	}
	return nil
}

// checkWaiter checks that the waiter's set has a place in each queue, in the same order as other sets, and that it was
// not left waiting though its turn has come everywhere.
func (m *setModel) checkWaiter(cmd lock.Command, name string, w *lock.Waiter) {
	m.t.Helper()
	turn := w.Attached(m.now, m.self) && w.Attached(m.lastNow, m.self) && !w.GrantedUnclaimed
	for _, other := range w.Lease.Set {
		r := m.record(other)
		at := slices.IndexFunc(r.Queue, func(o *lock.Waiter) bool { return o.Lease.ID == w.Lease.ID })
		if at < 0 {
			if m.now.Before(w.KeptUntil) && m.lastNow.Before(w.KeptUntil) {
				m.t.Fatalf("after %T%+v: %q waits at %s, and not at %s", cmd, cmd, w.Lease.Holder, name, other)
			}
			return
		}
		for i, o := range r.Queue {
			if o.Lease.ID == w.Lease.ID {
				continue
			}
			turn = turn && (i > at || o.GrantedUnclaimed || !o.Attached(m.now, m.self) || !o.Attached(m.lastNow, m.self))
			here := slices.IndexFunc(m.record(name).Queue, func(o2 *lock.Waiter) bool { return o2.Lease.ID == o.Lease.ID })
			mine := slices.IndexFunc(m.record(name).Queue, func(o2 *lock.Waiter) bool { return o2.Lease.ID == w.Lease.ID })
			if here >= 0 && o.Lease.Set != nil && (here < mine) != (i < at) {
				m.t.Fatalf("after %T%+v: %q and %q have one order at %s and another at %s", cmd, cmd, w.Lease.Holder, o.Lease.Holder, name, other)
			}
		}
		turn = turn && !m.isClosed(other) && fitsBeside(r, r.Queue[at], m.lastNow)
	}
	if turn {
		m.t.Fatalf("after %T%+v: it is the turn of %q at all of %v, and it waits", cmd, cmd, w.Lease.Holder, w.Lease.Set)
	}
}

// isClosed reports whether the lock is closed by a release.
func (m *setModel) isClosed(name string) bool {
	c := m.record(name).Closed
	return c != nil && m.now.Before(c.Until)
}

// fitsBeside reports whether the waiter is compatible with the leases.
func fitsBeside(r lock.Record, w *lock.Waiter, now time.Time) bool {
	active := r.ActiveLeases(now)
	switch {
	case len(active) == 0:
		return true
	case active[0].Mode != w.Lease.Mode || w.Lease.Mode == lock.Exclusive:
		return false
	}
	return w.Lease.Mode == lock.Shared || permitsOut(active)+max(w.Permits, 1) <= w.Capacity && w.Capacity == r.Capacity
}

// acquire completes and applies an acquire of the locks.
func (m *setModel) acquire(a lock.Acquire) (lock.Acquire, lock.Decision) {
	m.t.Helper()
	a, err := a.Resolve(anyBounds())
	if err != nil {
		m.t.Fatalf("%+v: %v", a, err)
	}
	a.Replica = m.self
	if a.Wait > 0 {
		m.calls++
		a.Attachment = m.calls
	}
	return a, m.do(a)
}

func anyBounds() lock.Bounds {
	b, err := lock.Bounds{}.Resolve()
	if err != nil {
		panic(err)
	}
	return b
}

// sleep moves the clock, and then sweeps each lock by itself.
func (m *setModel) sleep(d time.Duration) {
	m.t.Helper()
	m.now = m.now.Add(d)
	for _, name := range slices.Sorted(maps.Keys(m.locks)) {
		m.applyAll(lock.Sweep{Locks: []string{name}})
	}
	m.check(lock.Sweep{})
}
