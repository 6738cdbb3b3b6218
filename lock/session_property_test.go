package lock_test

import (
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// openSession opens a session, or asks again for one.
func (m *machine) openSession(t *rapid.T) {
	sid := lock.SessionID{15: byte(len(m.opened) + 1)}
	if again := len(m.opened) > 0 && rapid.Bool().Draw(t, "again"); again {
		sid = rapid.SampledFrom(m.opened).Draw(t, "session")
	}
	before := m.session(sid.Ref())
	s, err := m.change(lock.OpenSession{ID: sid, Holder: "a", TTL: seconds(t, "ttl", 1, 20), Grace: seconds(t, "grace", 0, 3)})
	switch {
	case before == nil && (err != nil || !s.ExpiresAt.Equal(m.now.Add(s.TTL))):
		t.Fatalf("opened %+v, %v", s, err)
	case before == nil:
		m.opened = append(m.opened, sid)
	case err == nil && (before.Ended != 0 || !s.ExpiresAt.Equal(before.ExpiresAt)):
		t.Fatalf("found %+v, and it was %+v", s, before)
	}
	m.checkSessions(t)
}

// renewSession renews a session. One that has ended, or is over by the clock, stays so.
func (m *machine) renewSession(t *rapid.T) {
	if len(m.opened) == 0 {
		return
	}
	r := lock.RenewSession{ID: rapid.SampledFrom(m.opened).Draw(t, "session"), TTL: seconds(t, "ttl", 0, 20)}
	before := *m.session(r.ID.Ref())
	s, err := m.change(r)
	if lost := before.Ended != 0 || before.IsOver(m.now); lost != errors.Is(err, lock.ErrSessionLost) {
		t.Fatalf("renewed %+v at %v: %v", before, m.now, err)
	}
	if err == nil && s.ExpiresAt.Before(before.ExpiresAt) {
		t.Fatalf("renewed %+v to %+v", before, s)
	}
	m.checkSessions(t)
}

// endSession closes or revokes a session, and ends what it has of the lock.
func (m *machine) endSession(t *rapid.T) {
	if len(m.opened) == 0 {
		return
	}
	sid := rapid.SampledFrom(m.opened).Draw(t, "session")
	var c lock.SessionChange = lock.CloseSession{ID: sid}
	if rapid.Bool().Draw(t, "by an operator") {
		c = lock.RevokeSession{Ref: sid.Ref(), Reason: "r"}
	}
	if _, err := m.change(c); err != nil {
		if !errors.Is(err, lock.ErrSessionLost) {
			t.Fatal(err)
		}
	}
	m.expireSessions()
	s := m.sessions[sid.Ref()]
	if s.Ended == 0 {
		t.Fatalf("an ended session is %+v", s)
	}
	before := m.view()
	skip := rapid.Bool().Draw(t, "skip grace")
	d := m.do(t, lock.EndSession{Name: name, Ref: sid.Ref(), How: s.Ended, Reason: s.Reason, SkipGrace: skip}, 0)
	for _, l := range before.Leases {
		if l.Session == sid.Ref() && s.Ended == lock.Revoked && !skip && !l.Unclaimed() && d.Now.Before(l.EndsAt()) {
			m.graces[leaseKey{l.Slot, l.Token}] = grace{l.Mode, l.Slots.All(l.Slot), earlier(d.Now, l.ExpiresAt).Add(l.Grace)}
		}
	}
	if s.Ended != lock.Expired && len(m.record.OfSession(sid.Ref())) > 0 {
		t.Fatalf("after its end the session has %+v", m.record)
	}
	m.checkSessions(t)
}

// checkSessions: a lease or place of a session that is over is gone after the next decision, and nothing of a session
// that was over at a decision was granted by it.
func (m *machine) checkSessions(t *rapid.T) {
	d := m.do(t, sweep, 0)
	for ref, s := range m.sessions {
		if s.IsOver(m.now) && len(d.Locks[0].OfSession(ref)) > 0 {
			t.Fatalf("%+v is over at %v, and has %+v", s, m.now, d.Locks[0])
		}
	}
	for _, l := range d.Locks[0].Leases {
		s := m.session(l.Session)
		if s != nil && (l.ExpiresAt.After(s.ExpiresAt) || l.Grace != s.Grace) {
			t.Fatalf("the lease %+v outlives its session %+v", l, s)
		}
	}
	if i := slices.IndexFunc(d.Ousted, func(w lock.Waiter) bool { return w.Lease.Session == 0 && !w.Once }); i >= 0 {
		t.Fatalf("ousted %+v, which has no session, and needs a turn", d.Ousted[i])
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
