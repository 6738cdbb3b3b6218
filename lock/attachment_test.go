package lock_test

import (
	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// aCall draws a call that waits, or did, at a replica that lives.
func (m *model) aCall(t *rapid.T) (a lock.Acquire, ok bool) {
	if len(m.waited) == 0 {
		return a, false
	}
	a = rapid.SampledFrom(m.waited).Draw(t, "call")
	return a, !m.isSilent(a.Replica)
}

// sits is whether the call has a place, or a lease that nobody else asked for.
func (m *model) sits(a lock.Acquire) bool {
	l, w, _ := m.lookUp(a.LeaseID)
	return l != nil && l.Attachment == a.Attachment || w != nil && w.Attachment == a.Attachment
}

// onlySweeps checks that a call which was left behind does what a sweep does.
func onlySweeps(t *rapid.T, swept, d lock.Decision) {
	if !same(swept.Locks[0], d.Locks[0]) || d.Err == nil {
		t.Fatalf("a call that was left behind made %+v, %v; a sweep %+v", d.Locks[0], d.Err, swept.Locks[0])
	}
}

func (m *model) claim(t *rapid.T) {
	a, ok := m.aCall(t)
	if !ok {
		return
	}
	m.on(a.Replica)
	sat, swept := m.sits(a), m.peek(m.seen(), m.now)
	d := m.do(t, claim(a), a.Replica)
	switch l, w, _ := m.lookUp(a.LeaseID); {
	case !sat:
		onlySweeps(t, swept, d)
	case d.Err == nil && !d.Queued && (l == nil || l.Unclaimed() || w != nil || d.Grant.Token != l.Token):
		t.Fatalf("fetched %+v, there is %+v", d.Grant, l)
	}
}

func (m *model) leave(t *rapid.T) { m.leaves(t, false) }

func (m *model) hangUp(t *rapid.T) { m.leaves(t, true) }

func (m *model) leaves(t *rapid.T, gone bool) {
	a, ok := m.aCall(t)
	if !ok {
		return
	}
	m.on(a.Replica)
	sat, swept := m.sits(a), m.peek(m.seen(), m.now)
	cmd := timeout(a)
	cmd.Disconnected = gone
	d := m.do(t, cmd, a.Replica)
	switch l, w, _ := m.lookUp(a.LeaseID); {
	case !sat:
		onlySweeps(t, swept, d)
	case m.sits(a) && (gone || d.Err != nil):
		t.Fatalf("left, and there is still %+v or %+v", l, w)
	case d.Err == nil && !gone && (l == nil || l.Unclaimed() || l.Token != d.Grant.Token || w != nil):
		t.Fatalf("left with %+v, there is %+v", d.Grant, l)
	case w != nil && !a.KeepPlace:
		t.Fatalf("left, and has a place that nobody asked for: %+v", w)
	}
}
