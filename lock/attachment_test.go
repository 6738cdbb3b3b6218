package lock_test

import (
	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// pickCall draws a call that has waited, and reports whether its replica is alive.
func (m *machine) pickCall(t *rapid.T) (a lock.Acquire, ok bool) {
	if len(m.calledWaiting) == 0 {
		return a, false
	}
	a = rapid.SampledFrom(m.calledWaiting).Draw(t, "call")
	return a, !m.isSilent(a.Replica)
}

// ownsPlaceOrLease reports whether the place or the lease belongs to the call.
func (m *machine) ownsPlaceOrLease(a lock.Acquire) bool {
	l, w, _ := m.lookUp(a.LeaseID)
	return l != nil && l.Attachment == a.Attachment || w != nil && w.Attachment == a.Attachment
}

// checkOnlySweeps checks that a replaced call has no other effect than a sweep.
func checkOnlySweeps(t *rapid.T, swept, d lock.Decision) {
	if !equalRecords(swept.Locks[0], d.Locks[0]) || d.Err == nil {
		t.Fatalf("a replaced call made %+v, %v; a sweep %+v", d.Locks[0], d.Err, swept.Locks[0])
	}
}

func (m *machine) claim(t *rapid.T) {
	a, ok := m.pickCall(t)
	if !ok {
		return
	}
	m.on(a.Replica)
	owned, swept := m.ownsPlaceOrLease(a), m.previewSweep(m.view(), m.now)
	d := m.do(t, claim(a), a.Replica)
	switch l, w, _ := m.lookUp(a.LeaseID); {
	case !owned:
		checkOnlySweeps(t, swept, d)
	case d.Err == nil && !d.Queued && (l == nil || l.Unclaimed() || w != nil || leaseOf(d).Token != l.Token):
		t.Fatalf("claimed %+v, the lock has %+v", leaseOf(d), l)
	}
}

func (m *machine) leave(t *rapid.T) { m.leaveQueue(t, false) }

func (m *machine) disconnect(t *rapid.T) { m.leaveQueue(t, true) }

func (m *machine) leaveQueue(t *rapid.T, disconnected bool) {
	a, ok := m.pickCall(t)
	if !ok {
		return
	}
	m.on(a.Replica)
	owned, swept := m.ownsPlaceOrLease(a), m.previewSweep(m.view(), m.now)
	cmd := endWait(a)
	cmd.Disconnected = disconnected
	d := m.do(t, cmd, a.Replica)
	switch l, w, _ := m.lookUp(a.LeaseID); {
	case !owned:
		checkOnlySweeps(t, swept, d)
	case m.ownsPlaceOrLease(a) && (disconnected || d.Err != nil):
		t.Fatalf("left, and the lock still has %+v or %+v", l, w)
	case d.Err == nil && !disconnected && (l == nil || l.Unclaimed() || l.Token != leaseOf(d).Token || w != nil):
		t.Fatalf("left with %+v, the lock has %+v", leaseOf(d), l)
	case w != nil && !a.KeepPlace:
		t.Fatalf("left, and has a place that was not kept: %+v", w)
	}
}
