package locktest

import (
	"github.com/paddock-lock/paddock/lock"
)

func setSessionCases() cases {
	return cases{
		"a session keeps the leases of a set alive":           setOfSession,
		"a closed session has no lease of a set and no place": setSessionCloses,
		"an expired session has no set and no place":          setSessionExpires,
		"a revoked session has no set and no place":           setSessionRevoked,
		"a revoked session of a set blocks others in grace":   setSessionRevokedInGrace,
		"a set of a session is granted from the queue":        setSessionWaits,
		"a set of a session cannot have times of its own":     setSessionTimes,
		"the leases of a set of a session have one end":       setSessionOneEnd,
	}
}

func setOfSession(s *fixture) {
	session := s.openSession(lock.OpenSession{})
	a := lock.Acquire{Set: s.set(1, 2), SessionID: session.ID, LeaseID: newID()}
	g := s.mustAcquire(a)
	s.expectSet(g, s.others(1, 2))
	if g.Session != session.ID.Ref() || !isNear(g.ExpiresAt, session.ExpiresAt) {
		s.Errorf("in %+v the set is %+v", session, g.Lease)
	}
	renewed, err := s.locks.RenewSession(s.ctx, lock.RenewSession{ID: session.ID, TTL: 2 * longTTL})
	s.must(err)
	if renewed.Leases != 2 || renewed.Places != 0 {
		s.Errorf("the session is %+v", renewed)
	}
	for _, name := range namesOf(g) {
		if l := s.get(name); len(l.Leases) != 1 || !isNear(l.Leases[0].ExpiresAt, renewed.ExpiresAt) || l.Leases[0].Session != g.Session {
			s.Errorf("the lock is %+v", l)
		}
	}
	if again := s.mustAcquire(a); !again.Replayed || again.Token != g.Token || !isNear(again.ExpiresAt, renewed.ExpiresAt) {
		s.Errorf("the replay is %+v", again)
	}
	_, err = s.locks.Renew(s.ctx, lock.Renew{Set: namesOf(g), LeaseID: g.ID, Metadata: []byte(`{"step":2}`)})
	s.must(err)
	a.SessionID = lock.SessionID{}
	_, err = s.acquire(a)
	s.expectError(err, lock.ErrLeaseIDInUse)
	s.must(s.release(g))
	if renewed, err := s.locks.RenewSession(s.ctx, lock.RenewSession{ID: session.ID}); err != nil || renewed.Leases != 0 {
		s.Errorf("after the release the session is %+v, %v", renewed, err)
	}
}

// setSessionOneEnd lets the service read one lock of the set after the heartbeat of the session, and the others before
// it.
func setSessionOneEnd(s *fixture) {
	session := s.openSession(lock.OpenSession{})
	g := s.mustAcquire(lock.Acquire{Set: s.set(1, 2, 3), SessionID: session.ID})
	renewed, err := s.locks.RenewSession(s.ctx, lock.RenewSession{ID: session.ID, TTL: 2 * longTTL})
	s.must(err)
	_, err = s.acquire(lock.Acquire{Name: s.other(2), Holder: "second"})
	s.expectError(err, lock.ErrHeld)
	g, err = s.renew(g, 0)
	s.must(err)
	if len(g.Members) != 3 {
		s.Fatalf("the renewed set is %+v", g)
	}
	for _, l := range g.Members {
		if !isNear(l.ExpiresAt, renewed.ExpiresAt) || l.TTL != renewed.TTL {
			s.Errorf("the session ends at %v, and the lease of %s is %+v", renewed.ExpiresAt, l.Name, l)
		}
	}
}

// fillSession acquires the set {1, 2} and the lock 3 in the session, lets the set {4, 9} wait in it, for 9 is held,
// and lets others wait for what it has.
func (s *fixture) fillSession(id lock.SessionID) (set lock.Grant, waiter *waitingCall, others []*waitingCall) {
	s.Helper()
	s.hold(9, "holder")
	set = s.mustAcquire(lock.Acquire{Set: s.set(2, 1), SessionID: id})
	s.mustAcquire(lock.Acquire{Name: s.other(3), SessionID: id})
	waiter = s.enqueue(lock.Acquire{Set: s.set(9, 4), Holder: "waiter", SessionID: id})
	return set, waiter, []*waitingCall{
		s.startAcquire(lock.Acquire{Set: s.set(1, 3), Holder: "a", Wait: lock.MaxWait}),
		s.startAcquire(lock.Acquire{Name: s.other(2), Holder: "b", Wait: lock.MaxWait}),
		s.startAcquire(lock.Acquire{Set: s.set(4, 5), Holder: "c", Wait: lock.MaxWait}),
	}
}

// expectNothingLeft ends the test unless the others were granted what the session had, which has ended.
func (s *fixture) expectNothingLeft(set lock.Grant, waiter *waitingCall, others []*waitingCall, how lock.Kind) {
	s.Helper()
	s.expectSessionLost(waiter.refusal(), how)
	for _, w := range others {
		if g := w.mustBeWoken(); g.Holder != "c" && g.Token <= set.Token {
			s.Errorf("after token %d the next set is %+v", set.Token, g.Lease)
		}
	}
	s.expectHeld(map[int]string{1: "a", 2: "b", 3: "a", 4: "c", 5: "c", 9: "holder"})
	for _, n := range []int{4, 9} {
		if q := s.queue(s.other(n)).Waiters; len(q) != 0 {
			s.Errorf("the queue of lock %d is %+v", n, q)
		}
	}
	_, err := s.renew(set, 0)
	s.expectLost(err, how)
}

func setSessionCloses(s *fixture) {
	session := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	set, waiter, others := s.fillSession(session.ID)
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: session.ID}))
	s.expectNothingLeft(set, waiter, others, lock.Released)
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: session.ID}))
}

func setSessionExpires(s *fixture) {
	session := s.openSession(lock.OpenSession{TTL: mediumTTL})
	set, waiter, others := s.fillSession(session.ID)
	s.expectNothingLeft(set, waiter, others, lock.Expired)
	s.expectLost(s.release(set), lock.Expired)
}

func setSessionRevoked(s *fixture) {
	session := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	set, waiter, others := s.fillSession(session.ID)
	info, err := s.locks.RevokeSession(s.ctx, lock.RevokeSession{Ref: session.ID.Ref(), Reason: testReason, SkipGrace: true})
	s.must(err)
	if info.Ended != lock.Revoked || info.Leases != 0 || info.Places != 0 {
		s.Errorf("the revoked session is %+v", info)
	}
	s.expectNothingLeft(set, waiter, others, lock.Revoked)
	if e := s.expectLost(s.release(set), lock.Revoked); e.Reason != testReason {
		s.Errorf("the reason is %q", e.Reason)
	}
}

func setSessionRevokedInGrace(s *fixture) {
	session := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	g := s.mustAcquire(lock.Acquire{Set: s.set(1, 2), SessionID: session.ID})
	_, err := s.locks.RevokeSession(s.ctx, lock.RevokeSession{Ref: session.ID.Ref(), Reason: testReason})
	s.must(err)
	for _, name := range namesOf(g) {
		if l := s.get(name); l.State != lock.InGrace || !l.Leases[0].Revoked {
			s.Errorf("after the revocation the lock is %+v", l)
		}
	}
	_, err = s.acquire(lock.Acquire{Set: s.set(2, 3), Holder: "second"})
	s.expectError(err, lock.ErrHeld)
	s.revokeOther(1, lock.Revoke{Token: g.Token, SkipGrace: true})
	s.expectHeld(map[int]string{1: "", 2: ""})
}

func setSessionWaits(s *fixture) {
	held := s.hold(2, "holder")
	session := s.openSession(lock.OpenSession{})
	w := s.enqueue(lock.Acquire{Set: s.set(1, 2), Holder: "set", SessionID: session.ID})
	if info, err := s.locks.Session(s.ctx, session.ID.Ref()); err != nil || info.Leases != 0 || info.Places != 2 {
		s.Errorf("the session is %+v, %v", info, err)
	}
	s.must(s.release(held))
	g := w.mustBeGranted()
	s.expectSet(g, s.others(1, 2))
	if g.Session != session.ID.Ref() || !isNear(g.ExpiresAt, session.ExpiresAt) || g.Token <= held.Token {
		s.Errorf("in %+v the set is %+v", session, g.Lease)
	}
	if info, err := s.locks.Session(s.ctx, session.ID.Ref()); err != nil || info.Leases != 2 || info.Places != 0 || len(info.Locks) != 2 {
		s.Errorf("the session is %+v, %v", info, err)
	}
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: session.ID}))
	s.expectHeld(map[int]string{1: "", 2: ""})
}

func setSessionTimes(s *fixture) {
	session := s.openSession(lock.OpenSession{})
	_, err := s.acquire(lock.Acquire{Set: s.set(1, 2), SessionID: session.ID, TTL: longTTL})
	s.expectInvalid("a TTL", err, "ttl_ms")
	g := s.mustAcquire(lock.Acquire{Set: s.set(1, 2), SessionID: session.ID})
	_, err = s.renew(g, longTTL)
	s.expectInvalid("a TTL", err, "ttl_ms")
}
