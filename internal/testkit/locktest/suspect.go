package locktest

import (
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func suspectCases() cases {
	return cases{
		"a lease that stays becomes suspect, and blocks others": suspectBlocks,
		"the holder renews a suspect lease":                     suspectRenewed,
		"the holder releases a suspect lease":                   suspectReleased,
		"an operator revokes a suspect lease":                   suspectRevoked,
		"a waiter of a suspect lock sees what it waits for":     suspectWaitedFor,
		"a set becomes suspect, and ends, as one":               suspectSet,
		"a suspect permit leaves the others":                    suspectPermit,
		"a lease that stays is of no session":                   suspectSession,
		"a lease_id is not used again with another on_expiry":   suspectInUse,
		"a lease that stays is granted to a waiter":             suspectQueued,
	}
}

// acquireSuspect acquires a lease that stays, and returns it when it is suspect and its event is there, the last of n.
func (s *fixture) acquireSuspect(a lock.Acquire, n int) lock.Grant {
	s.Helper()
	a.Stays, a.TTL, a.Grace = true, shortTTL, shortTTL
	g := s.mustAcquire(a)
	if !g.Stays {
		s.Errorf("the lease does not stay: %+v", g.Lease)
	}
	l := s.awaitState(g.Name, lock.Suspect)
	if i := l.Leases[0]; !i.Suspect || !i.Stays || i.Token != g.Token || l.AsOf.Before(g.ExpiresAt.Add(g.Grace).Add(-time.Millisecond)) {
		s.Errorf("the suspect lock is %+v", l)
	}
	events := s.events(g.Name, n)
	if e := events[n-1]; e.Kind != lock.Suspected || e.Token != g.Token || e.Holder != g.Holder || e.Ref != 0 {
		s.Errorf("its last event is %+v", e)
	}
	return g
}

func suspectBlocks(s *fixture) {
	g := s.acquireSuspect(lock.Acquire{Holder: "gone"}, 2)
	for range 3 {
		e := s.expectError(errOf(s.acquire(lock.Acquire{Holder: "another"})), lock.ErrHeld)
		if e.Holder != "gone" || e.RetryAfter <= 0 || e.RetryAfter > time.Hour {
			s.Errorf("the refusal names %q and says to try again after %v", e.Holder, e.RetryAfter)
		}
	}
	s.events(s.name, 2) // it is suspected once
	if names := s.names(paddock.LockQuery{Prefix: s.name, State: lock.Suspect}); len(names) != 1 {
		s.Errorf("suspect are %q", names)
	}
	if names := s.names(paddock.LockQuery{Prefix: s.name, State: lock.Held}); len(names) != 0 {
		s.Errorf("held are %q", names)
	}
	if v := s.verify(s.name, g.Token); v.Status != lock.Current || v.Remaining != 0 {
		s.Errorf("the verification of its token is %+v", v)
	}
	s.mustWrite(g.Token, `"by the holder, who is late, and alone"`)
}

func suspectRenewed(s *fixture) {
	g := s.acquireSuspect(lock.Acquire{}, 2)
	r, err := s.renew(g, longTTL)
	s.must(err)
	if l := s.get(s.name); l.State != lock.Held || l.Leases[0].Suspect || r.Token != g.Token || !isNear(l.Leases[0].ExpiresAt, r.ExpiresAt) {
		s.Errorf("after a renewal the lock is %+v", l)
	}
	s.must(s.release(g))
	s.mustAcquire(lock.Acquire{})
}

func suspectReleased(s *fixture) {
	g := s.acquireSuspect(lock.Acquire{}, 2)
	s.must(s.release(g))
	s.must(s.release(g))
	if next := s.mustAcquire(lock.Acquire{}); next.Token <= g.Token {
		s.Errorf("token %d follows %d", next.Token, g.Token)
	}
	if e := s.events(s.name, 4); e[2].Kind != lock.Released {
		s.Errorf("the events are %+v", e)
	}
}

func suspectRevoked(s *fixture) {
	g := s.acquireSuspect(lock.Acquire{}, 2)
	l, err := s.locks().Revoke(s.ctx, lock.Revoke{Name: s.name, Token: g.Token, Reason: "the state file was repaired"})
	s.must(err)
	if l.State != lock.Free {
		s.Errorf("after the revocation the lock is %+v", l)
	}
	s.expectLost(errOf(s.renew(g, shortTTL)), lock.Revoked)
	s.mustAcquire(lock.Acquire{})
}

func suspectWaitedFor(s *fixture) {
	g := s.acquireSuspect(lock.Acquire{Holder: "gone"}, 2)
	waiting := s.enqueue(lock.Acquire{Holder: "waiter"})
	q, err := s.locks().Queue(s.ctx, s.name)
	s.must(err)
	if w := q.Waiters[0]; w.BlockedBy != lock.BlockedByHolders || len(w.Leases) != 1 || !w.Leases[0].Suspect {
		s.Errorf("the waiter is %+v", w)
	}
	s.must(s.release(g))
	waiting.mustBeGranted()
}

func suspectSet(s *fixture) {
	a := lock.Acquire{Locks: []lock.Member{{Name: s.other(1)}, {Name: s.other(2)}}}
	g := s.acquireSuspect(a, 2)
	s.awaitState(s.other(2), lock.Suspect)
	s.events(s.other(2), 2)
	r, err := s.renew(g, 0)
	s.must(err)
	if len(r.Leases) != 2 {
		s.Errorf("renewed were %+v", r.Leases)
	}
	for i := range 2 {
		s.awaitState(s.other(1+i), lock.Suspect)
		s.events(s.other(1+i), 3)
	}
	_, err = s.locks().Revoke(s.ctx, lock.Revoke{Name: s.other(2), Token: g.Token, Reason: "looked at"})
	s.must(err)
	for i := range 2 {
		s.awaitState(s.other(1+i), lock.Free)
	}
}

func suspectPermit(s *fixture) {
	s.acquireSuspect(lock.Acquire{Locks: s.permit(2)}, 2)
	other := s.mustAcquire(lock.Acquire{Locks: s.permit(2)})
	if l := s.get(s.name); l.State != lock.Suspect || len(l.Leases) != 2 {
		s.Errorf("the lock is %+v", l)
	}
	s.expectError(errOf(s.acquire(lock.Acquire{Locks: s.permit(2)})), lock.ErrHeld)
	s.must(s.release(other))
	s.mustAcquire(lock.Acquire{Locks: s.permit(2)})
}

func suspectSession(s *fixture) {
	opened, err := s.locks().OpenSession(s.ctx, lock.OpenSession{Holder: "h", TTL: longTTL})
	s.must(err)
	a := lock.Acquire{Locks: lock.One(s.name), Holder: "h", SessionID: opened.ID, Stays: true}
	s.expectInvalid(a, errOf(s.locks().Acquire(s.ctx, a)), "on_expiry")
}

func suspectInUse(s *fixture) {
	a := lock.Acquire{LeaseID: newID(), Stays: true}
	g := s.mustAcquire(a)
	if again := s.mustAcquire(a); again.Token != g.Token || !again.Replayed {
		s.Errorf("repeated it is %+v", again)
	}
	a.Stays = false
	s.expectError(errOf(s.acquire(a)), lock.ErrLeaseIDInUse)
}

func suspectQueued(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	waiting := s.enqueue(lock.Acquire{Stays: true, TTL: shortTTL})
	s.must(s.release(first))
	if g := waiting.mustBeGranted(); !g.Stays {
		s.Errorf("granted was %+v", g.Lease)
	}
	s.awaitState(s.name, lock.Suspect)
}
