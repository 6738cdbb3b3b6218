package memlock

import (
	"maps"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// Crash stops the replica of that number. The calls that wait there end with lock.ErrUnknownOutcome. Their waiters
// stay in the queue until the other replicas find the replica dead. Give a replacement another number.
func (m *Memory) Crash(self lock.Replica) {
	m.stopReplica(self)
	others := map[lock.Replica]bool{}
	for _, c := range m.waitingCalls() {
		others[c.self] = true
	}
	for _, other := range slices.Sorted(maps.Keys(others)) {
		for _, name := range m.names() {
			replica{m, other}.sweep(name) // schedules the instant at which the replica counts as dead
		}
	}
}

// stopReplica ends the timers and waiting calls of the replica.
func (m *Memory) stopReplica(self lock.Replica) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for a, t := range m.alarms {
		if a.self == self {
			t.Stop()
			delete(m.alarms, a)
		}
	}
	heard := m.clock.now().Add(lock.ReplicaTTL)
	for name, s := range m.locks {
		s.Queue = slices.Clone(s.Queue)
		for i, w := range s.Queue {
			if c, waits := m.calls[w.Attachment]; waits && c.self == self {
				last := *w
				last.AliveUntil = heard
				s.Queue[i] = &last
			}
		}
		m.locks[name] = s
	}
	maps.DeleteFunc(m.calls, func(_ lock.Attachment, c call) bool {
		if c.self == self {
			close(c.crashed)
		}
		return c.self == self
	})
}

func (m *Memory) waitingCalls() []call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.calls))
}

func (m *Memory) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.locks))
}
