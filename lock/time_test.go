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

// previewSweep returns the decision of a sweep of s, without applying it.
func (m *machine) previewSweep(s lock.Record, now time.Time) lock.Decision {
	token := m.token
	return sweep.Apply(
		lock.View{Now: now, Self: m.self, Locks: []lock.Record{s}, Ended: m.ended, Policy: &m.policy, Tokens: func() lock.Token {
			token++
			return token
		}},
	)
}

// checkTime checks what time alone does after the decision d. After the clock was set back, replicas age by the clock
// and everything else by the lock's time; then it only checks that an immediate sweep changes nothing.
func (m *machine) checkTime(d lock.Decision) error {
	s := d.Locks[0]
	if m.previewSweep(s, m.now).Changed {
		return errors.New("an immediate sweep changes the lock")
	}
	if m.now.Before(d.Now) {
		return nil
	}
	for _, w := range s.QueueInfo(lock.View{Now: d.Now, Self: m.self, Policy: &m.policy}).Waiters {
		tooMany := w.Mode == lock.Permit && w.Permits > w.Capacity // a rule has made the capacity less
		if w.BlockedBy == lock.BlockedByHolders && !tooMany && (len(w.Leases) == 0 || w.Ahead > 0) {
			return fmt.Errorf("no lease blocks %+v", w)
		}
	}
	if d.Due.IsZero() {
		return nil
	}
	for _, part := range []time.Duration{1, 2} {
		at := d.Now.Add(d.Due.Sub(d.Now)/part - 1)
		if endsInBetween(s, at) {
			continue
		}
		if err := m.checkQuiet(s, d.Now, at); err != nil {
			return fmt.Errorf("%v before it is due: %w", d.Due.Sub(at), err)
		}
	}
	return m.checkDrains(s, d.Due)
}

// endsInBetween reports whether a session of the lock may end by then, which is not due at the lock.
func endsInBetween(s lock.Record, at time.Time) bool {
	over := func(l lock.Lease) bool { return l.Session != 0 && !at.Before(l.ExpiresAt.Add(l.Grace)) }
	return slices.ContainsFunc(s.Leases, over) ||
		slices.ContainsFunc(s.Queue, func(w *lock.Waiter) bool { return over(w.Lease) })
}

// checkQuiet checks that time changes nothing between two instants that concerns the deciding replica. Waiters of
// other replicas may become detached while no waiter of its own is behind them.
func (m *machine) checkQuiet(s lock.Record, from, to time.Time) error {
	d := m.previewSweep(s, to)
	passedOver := false
	for _, w := range s.Queue {
		passedOver = passedOver || attached(*w, from, m.now, m.self) && !attached(*w, to, to, m.self)
	}
	if d.Changed && !passedOver {
		return fmt.Errorf("a sweep emits %v", kinds(d))
	}
	for _, e := range d.Events {
		if e.Kind != lock.Granted {
			return fmt.Errorf("a sweep emits %v", kinds(d))
		}
	}
	if i := slices.IndexFunc(d.Promoted, func(w lock.Waiter) bool { return w.Replica == m.self }); i >= 0 {
		return fmt.Errorf("a sweep promotes %+v", d.Promoted[i])
	}
	return nil
}

// checkDrains checks that each sweep at its due time is due again later, and that the lock is free in the end.
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
	return fmt.Errorf("after %d sweeps the record is still %+v", most, s)
}

// check runs after each step. A lease that has ended is not in the record, unless it is revoked and in its grace;
// and a version identifies one lock.
func (m *machine) check(t *rapid.T) {
	for _, l := range m.record.Leases {
		if m.hasEnded(l.ID) != l.Revoked() {
			t.Fatalf("an ended lease is in the record: %+v", l)
		}
	}
	for _, w := range m.record.Queue {
		if m.hasEnded(w.Lease.ID) {
			t.Fatalf("an ended lease is in the queue: %+v", w)
		}
	}
	if m.now.Before(m.latest) {
		return
	}
	m.latest = m.now
	m.checkVersion(t, m.record.Lock(m.now))
}

// checkVersion checks that no other lock had the same version.
func (m *machine) checkVersion(t *rapid.T, l lock.Lock) {
	version := l.Version()
	l.AsOf = time.Time{}
	for i := range l.Leases {
		h := &l.Leases[i]
		h.AcquiredAt, h.ExpiresAt, h.Remaining = time.Time{}, time.Time{}, 0
	}
	was, known := m.versions[version]
	if known && !reflect.DeepEqual(was, l) {
		t.Fatalf("version %q identifies two locks: %+v and %+v", version, was, l)
	}
	m.versions[version] = l
}
