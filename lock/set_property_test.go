package lock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// A setMachine applies random commands on a few locks, alone and in random sets, from two replicas. The setModel checks
// each decision.
type setMachine struct {
	*setModel
	names []string
	most  int // locks of a set
	modes []lock.Mode
	calls []lock.Acquire // all, in order
	used  byte
}

func (m *setMachine) repeat(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"acquire": m.draw, "wait": m.draw, "join": m.draw, "again": func(t *rapid.T) { m.submit(m.one(t)) },
		"renew": m.renew, "release": m.release, "give up": m.release, "revoke": m.revoke, "claim": m.claim, "leave": m.leave,
		"clock":   func(t *rapid.T) { m.sleep(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond) },
		"replica": func(*rapid.T) { m.self = 3 - m.self },
	})
}

// TestSetInvariants runs random commands on sets and on single locks.
func TestSetInvariants(t *testing.T) {
	t.Parallel()
	for name, modes := range map[string][]lock.Mode{
		"exclusive leases":    {lock.Exclusive},
		"readers and writers": {lock.Exclusive, lock.Shared, lock.Shared},
		"all modes":           {lock.Exclusive, lock.Shared, lock.Permit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			granted := 0
			rapid.Check(t, func(rt *rapid.T) {
				m := &setMachine{setModel: newSetModel(rt), names: []string{"a", "b", "c", "d"}, most: 3, modes: modes}
				m.repeat(rt)
				granted += m.grants
			})
			if granted == 0 {
				t.Error("no set was granted")
			}
		})
	}
}

// TestTreeInvariants runs them on the locks of two trees, and one outside, until a run has ended with a lease below a root
// and one with a lease that was waited for. A run of twenty may have none.
func TestTreeInvariants(t *testing.T) {
	t.Parallel()
	below, waited := 0, 0
	check := func(rt *rapid.T) {
		m := &setMachine{
			setModel: newSetModel(rt), names: []string{"r", "r:a", "r:a:x", "r:a:y", "r:b", "r:b:x", "plain"}, most: 2,
			modes: []lock.Mode{lock.Exclusive, lock.Shared},
		}
		m.trees = someTrees
		m.repeat(rt)
		for _, l := range m.before {
			if strings.Contains(l.Name, ":") {
				below++
			}
			if l.Place > 0 {
				waited++
			}
		}
	}
	for i := 0; i == 0 || i < 100 && !t.Failed() && (below == 0 || waited == 0); i++ {
		rapid.Check(t, check)
	}
	if below == 0 || waited == 0 {
		t.Errorf("at the ends, %d leases were below the root, and %d had waited", below, waited)
	}
}

// draw acquires a lock, or a set.
func (m *setMachine) draw(t *rapid.T) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(m.names), 1, m.most, rapid.ID[string]).Draw(t, "names")
	m.used++
	a := lock.Acquire{LeaseID: id(m.used), Holder: string('A' + rune(m.used%26)), TTL: 5 * time.Second, KeepPlace: rapid.Bool().Draw(t, "keep")}
	a.Wait = rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 20 * time.Second}).Draw(t, "wait")
	a.Grace = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "grace")
	for _, name := range names {
		one := lock.Member{Name: name, Mode: rapid.SampledFrom(m.modes).Draw(t, "mode")}
		if one.Mode == lock.Permit {
			one.Capacity = 3
			one.Permits = rapid.IntRange(1, 3).Draw(t, "permits")
		}
		a.Locks = append(a.Locks, one)
	}
	a.Once = len(a.Locks) == 1 && a.Locks[0].Mode == lock.Exclusive && rapid.IntRange(0, 3).Draw(t, "once") == 0
	m.submit(a)
}

func (m *setMachine) submit(a lock.Acquire) {
	a, d := m.acquire(a)
	m.calls = append(m.calls, a)
	if d.Err == nil && !d.Queued && len(a.Locks) > 1 {
		m.grants++
	}
}

// one draws an earlier call.
func (m *setMachine) one(t *rapid.T) lock.Acquire {
	if len(m.calls) == 0 {
		t.Skip("no calls")
	}
	return rapid.SampledFrom(m.calls).Draw(t, "call")
}

func (m *setMachine) renew(t *rapid.T) {
	a := m.one(t)
	r := lock.Renew{Locks: a.Names(), LeaseID: a.LeaseID}
	m.do(r)
}

func (m *setMachine) release(t *rapid.T) {
	a := m.one(t)
	r := lock.Release{Locks: a.Names(), LeaseID: a.LeaseID}
	if rapid.IntRange(0, 3).Draw(t, "closes") == 0 {
		r.Closed.For = time.Duration(rapid.IntRange(1, 10).Draw(t, "closed")) * time.Second
	}
	first := m.do(r)
	if errors.Is(first.Err, lock.ErrInvalid) && r.Closed.For > 0 { // one is not exclusive, or waits
		return
	}
	if again := m.do(r); first.Err == nil && again.Err != nil {
		t.Fatalf("a repeated release of %v was refused: %v", a.Names(), again.Err)
	}
	for name := range m.locks {
		for _, l := range m.record(name).Leases {
			if l.ID == a.LeaseID && !l.Revoked() {
				t.Fatalf("%s is held after its release", name)
			}
		}
	}
}

func (m *setMachine) revoke(t *rapid.T) {
	name := m.one(t).Names()[0]
	leases := slices.DeleteFunc(slices.Clone(m.record(name).Leases), func(l lock.Lease) bool { return l.Mode.IsIntention() })
	if len(leases) == 0 {
		t.Skip("nothing is held")
	}
	r := lock.Revoke{Name: name, Token: leases[0].Token, Reason: "test", SkipGrace: rapid.Bool().Draw(t, "skip grace")}
	d := m.applyAll(r)
	for ; d.FollowUp != nil; d = m.applyAll(d.FollowUp) {
	}
	if d.Err != nil {
		t.Fatalf("%+v: %v", r, d.Err)
	}
	m.check(r)
}

// waiting draws an earlier call that may have waited, and lets its replica decide.
func (m *setMachine) waiting(t *rapid.T) lock.Acquire {
	a := m.one(t)
	if a.Attachment == 0 {
		t.Skip("it does not wait")
	}
	m.self = a.Replica
	return a
}

func (m *setMachine) claim(t *rapid.T) {
	a := m.waiting(t)
	c := lock.Claim{Locks: a.Names(), LeaseID: a.LeaseID, Attachment: a.Attachment}
	m.do(c)
}

func (m *setMachine) leave(t *rapid.T) {
	a := m.waiting(t)
	l := lock.Leave{Locks: a.Names(), LeaseID: a.LeaseID, Attachment: a.Attachment, KeepPlace: a.KeepPlace, Disconnected: rapid.Bool().Draw(t, "gone")}
	m.do(l)
}
