package memlock

import (
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// BeginEpoch does what the store does after a fail-over that has lost nothing: the ids of events and tokens jump, each
// lease and session that was not over when the last event happened has its whole TTL again, unclaimed grants return to
// the queue, and places are kept. Let the clock jump before, if the new server has another one.
func (m *Memory) BeginEpoch() {
	for _, a := range m.rebase() {
		replica{m, a.self}.sweep(a.name)
	}
}

// rebase moves all instants to the start of an epoch, and returns the locks to sweep.
func (m *Memory) rebase() (due []alarm) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, last := m.clock.now(), time.Time{}
	if n := len(m.events); n > 0 {
		last = m.events[n-1].At
	}
	m.number += lock.EventJump
	m.token += lock.TokenJump
	for name, r := range m.locks {
		r.Leases, r.Queue = slices.Clone(r.Leases), slices.Clone(r.Queue)
		for i := range r.Leases {
			rebaseLease(&r.Leases[i], last, now)
		}
		for i, w := range r.Queue {
			moved := *w
			moved.WaitUntil, moved.AliveUntil, moved.GrantedUnclaimed = now.Add(lock.MaxWait), now.Add(lock.ReplicaTTL), false
			moved.KeptUntil = moved.WaitUntil.Add(lock.PlaceRetention)
			r.Queue[i] = &moved
		}
		r.ChangedAt = earlier(r.ChangedAt, now)
		m.locks[name] = r
	}
	for ref, s := range m.sessions {
		over := s.Ended == lock.Expired || !s.EndsAt().After(last)
		if s.ExpiresAt = earlier(s.ExpiresAt, now.Add(-s.Grace)); !over {
			s.ExpiresAt = now.Add(s.Length())
		}
		m.sessions[ref] = s
		m.endSessionAt(s)
	}
	for a := range m.alarms {
		due = append(due, a)
	}
	return due
}

// rebaseLease moves the lease. One of a session ends with that.
func rebaseLease(l *lock.Lease, last, now time.Time) {
	switch used := max(l.ExpiresAt.Add(-l.Length()).Sub(l.AcquiredAt), 0); {
	case l.Session != 0:
		l.AcquiredAt = now.Add(-max(last.Sub(l.AcquiredAt), 0))
	case l.MaxHold > 0:
		l.AcquiredAt = now.Add(-used)
	default:
		l.AcquiredAt = earlier(l.AcquiredAt, now)
	}
	switch {
	case l.Session != 0:
	case l.ExpiresAt.Add(l.Grace).After(last):
		l.ExpiresAt = now.Add(l.Length())
	default:
		l.ExpiresAt = now.Add(-l.Grace)
	}
	if l.Unclaimed() {
		l.ClaimDeadline = now
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
