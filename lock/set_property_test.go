package lock_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// A setMachine applies random commands on random sets of a few locks. The setModel checks each decision.
type setMachine struct {
	*setModel
	calls []lock.Acquire // all, in order
	used  byte
}

// TestSetInvariants runs random commands on sets and on single locks, from two replicas.
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
				m := &setMachine{setModel: newSetModel(rt)}
				rt.Repeat(map[string]func(*rapid.T){
					"acquire": func(t *rapid.T) { m.draw(t, modes) }, "wait": func(t *rapid.T) { m.draw(t, modes) },
					"join": func(t *rapid.T) { m.draw(t, modes) }, "again": m.again, "renew": m.renew, "release": m.release,
					"give up": m.release, "revoke": m.revoke, "claim": m.claim, "leave": m.leave,
					"clock":   func(t *rapid.T) { m.sleep(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond) },
					"replica": func(t *rapid.T) { m.self = 3 - m.self },
				})
				granted += m.grants
			})
			if granted == 0 {
				t.Error("no set was granted")
			}
		})
	}
}

// draw acquires a lock, or two or three of four.
func (m *setMachine) draw(t *rapid.T, modes []lock.Mode) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID[string]).Draw(t, "names")
	m.used++
	a := lock.Acquire{LeaseID: id(m.used), Holder: string('A' + rune(m.used%26)), TTL: 5 * time.Second, KeepPlace: rapid.Bool().Draw(t, "keep")}
	a.Wait = rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 20 * time.Second}).Draw(t, "wait")
	a.Grace = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "grace")
	for _, name := range names {
		one := lock.Member{Name: name, Mode: rapid.SampledFrom(modes).Draw(t, "mode")}
		if one.Mode == lock.Permit {
			one.Capacity = 2
		}
		a.Set = append(a.Set, one)
	}
	m.submit(a)
}

func (m *setMachine) submit(a lock.Acquire) {
	a, d := m.acquire(a)
	m.calls = append(m.calls, a)
	if d.Err == nil && !d.Queued && len(a.Set) > 1 {
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

func (m *setMachine) again(t *rapid.T) { m.submit(m.one(t)) }

func (m *setMachine) renew(t *rapid.T) {
	a := m.one(t)
	r := lock.Renew{Name: a.Name, LeaseID: a.LeaseID}
	if len(a.Set) > 0 {
		r.Set = a.Names()
	}
	m.do(r)
}

func (m *setMachine) release(t *rapid.T) {
	a := m.one(t)
	r := lock.Release{Name: a.Name, LeaseID: a.LeaseID}
	if len(a.Set) > 0 {
		r.Set = a.Names()
	}
	m.do(r)
	for _, name := range a.Names() {
		for _, l := range m.record(name).Leases {
			if l.ID == a.LeaseID && !l.Revoked() {
				t.Fatalf("%s is held after its release", name)
			}
		}
	}
}

func (m *setMachine) revoke(t *rapid.T) {
	a := m.one(t)
	name := a.Names()[0]
	leases := m.record(name).Leases
	if len(leases) == 0 {
		t.Skip("nothing is held")
	}
	r := lock.Revoke{Name: name, Token: leases[0].Token, Reason: "test", SkipGrace: rapid.Bool().Draw(t, "skip grace")}
	for d := m.applyAll(r); d.Rest != nil; {
		d = m.applyAll(d.Rest)
	}
	m.check(r)
}

func (m *setMachine) claim(t *rapid.T) {
	a := m.one(t)
	c := lock.Claim{Name: a.Name, LeaseID: a.LeaseID, Attachment: a.Attachment}
	if len(a.Set) > 0 {
		c.Set = a.Names()
	}
	if a.Attachment != 0 {
		m.self = a.Replica
		m.do(c)
	}
}

func (m *setMachine) leave(t *rapid.T) {
	a := m.one(t)
	l := lock.Leave{
		Name: a.Name, LeaseID: a.LeaseID, Attachment: a.Attachment, KeepPlace: a.KeepPlace, Disconnected: rapid.Bool().Draw(t, "gone"),
	}
	if len(a.Set) > 0 {
		l.Set = a.Names()
	}
	if a.Attachment != 0 {
		m.self = a.Replica
		m.do(l)
	}
}
