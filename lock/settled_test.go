package lock_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// previewSweep is a sweep of s by the replica that decides, which nobody remembers.
func (m *machine) previewSweep(s lock.Record, now time.Time) lock.Decision {
	token := m.token
	return sweep.Apply(lock.View{Now: now, Self: m.self, Locks: []lock.Record{s}, Ended: m.ended, Tokens: func() lock.Token {
		token++
		return token
	}})
}

// checkTime checks what time alone does after the decision d. While the lock's time
// is ahead of a clock that was set back, replicas live by the clock and all else by
// the lock's time, and only a sweep at once is known to find nothing.
func (m *machine) checkTime(d lock.Decision) error {
	s := d.Locks[0]
	if m.previewSweep(s, m.now).Changed {
		return errors.New("a sweep at once finds something to do")
	}
	if m.now.Before(d.Now) {
		return nil
	}
	for _, w := range s.QueueInfo(d.Now, m.self).Waiters {
		if w.BlockedBy == lock.BlockedByHolders && (len(w.Leases) == 0 || w.Ahead > 0) {
			return fmt.Errorf("nothing is in the way of %+v", w)
		}
	}
	if d.Due.IsZero() {
		return nil
	}
	for _, part := range []time.Duration{1, 2} {
		at := d.Now.Add(d.Due.Sub(d.Now)/part - 1)
		if err := m.checkQuiet(s, d.Now, at); err != nil {
			return fmt.Errorf("%v before it is due: %w", d.Due.Sub(at), err)
		}
	}
	return m.checkDrains(s, d.Due)
}

// checkQuiet checks that nothing happens to s between two instants, but what
// does not concern the replica that decides: others may be taken to be gone while
// none of its own waits behind them.
func (m *machine) checkQuiet(s lock.Record, from, to time.Time) error {
	d := m.previewSweep(s, to)
	passedOver := false
	for _, w := range s.Queue {
		passedOver = passedOver || attached(*w, from, m.now, m.self) && !attached(*w, to, to, m.self)
	}
	if d.Changed && !passedOver {
		return fmt.Errorf("a sweep makes %v", kinds(d))
	}
	for _, e := range d.Events {
		if e.Kind != lock.Granted {
			return fmt.Errorf("a sweep makes %v", kinds(d))
		}
	}
	if i := slices.IndexFunc(d.Promoted, func(w lock.Waiter) bool { return w.Replica == m.self }); i >= 0 {
		return fmt.Errorf("a sweep promotes %+v", d.Promoted[i])
	}
	return nil
}

// checkDrains checks that sweeps at the instants at which they are due do something,
// or are due later, and in the end leave nobody there.
func (m *machine) checkDrains(s lock.Record, due time.Time) error {
	most := 10 * (len(s.Leases) + len(s.Queue))
	for range most {
		d := m.previewSweep(s, due)
		if d.Due.IsZero() {
			return nil
		}
		if !d.Due.After(due) {
			return fmt.Errorf("a sweep at %v is due again at %v", due, d.Due)
		}
		s, due = d.Locks[0], d.Due
	}
	return fmt.Errorf("after %d sweeps there is still %+v", most, s)
}

// check holds after each step: a lease that has ended is gone, or revoked and in its grace, permits and
// those who wait for one agree on how many there are, and a version stands for one
// lock.
func (m *machine) check(t *rapid.T) {
	capacities := map[int]bool{}
	if m.record.Capacity != 0 {
		capacities[m.record.Capacity] = true
	}
	for _, l := range m.record.Leases {
		if m.hasEnded(l.ID) != l.Revoked() {
			t.Fatalf("an ended lease is there again: %+v", l)
		}
	}
	for _, w := range m.record.Queue {
		if m.hasEnded(w.Lease.ID) {
			t.Fatalf("an ended lease is waited for: %+v", w)
		}
		if w.Lease.Mode == lock.Permit {
			capacities[w.Capacity] = true
		}
	}
	if len(capacities) > 1 {
		t.Fatalf("permits of different capacities: %+v", m.record)
	}
	if m.now.Before(m.latest) {
		return
	}
	m.latest = m.now
	m.checkVersion(t, m.record.Lock(m.now))
}

// checkVersion checks that the lock's version stood for no other lock.
func (m *machine) checkVersion(t *rapid.T, l lock.Lock) {
	version := l.Version()
	l.AsOf = time.Time{}
	for i := range l.Leases {
		h := &l.Leases[i]
		h.AcquiredAt, h.ExpiresAt, h.Remaining = time.Time{}, time.Time{}, 0
	}
	was, known := m.versions[version]
	if known && !reflect.DeepEqual(was, l) {
		t.Fatalf("version %q stands for two locks: %+v and %+v", version, was, l)
	}
	m.versions[version] = l
}
