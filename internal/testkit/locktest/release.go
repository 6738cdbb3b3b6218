package locktest

import "github.com/paddock-lock/paddock/lock"

func releaseCases() cases {
	return cases{
		"a released lock is free at once":                    releaseFrees,
		"a repeated release succeeds":                        releaseAgain,
		"a release repeated after later grants succeeds":     releaseLate,
		"a repeated release does not affect the next holder": releaseNext,
		"an unknown lease_id is lost":                        releaseUnknown,
		"a lease of another lock is lost":                    releaseElsewhere,
		"a revoked lease is lost with the reason":            releaseRevoked,
	}
}

func releaseFrees(s *fixture) {
	first := s.acquireAndRelease(lock.Acquire{})
	if l := s.get(s.name); l.State != lock.Free || len(l.Leases) != 0 || l.Token != first.Token || l.Revision != 2 {
		s.Errorf("after the release the lock is %+v", l)
	}
	if next := s.mustAcquire(lock.Acquire{Holder: "second"}); next.Token <= first.Token {
		s.Errorf("token %d was granted after %d", next.Token, first.Token)
	}
}

func releaseAgain(s *fixture) {
	g := s.acquireAndRelease(lock.Acquire{})
	s.must(s.release(g))
	s.must(s.release(g))
	if l := s.get(s.name); l.Revision != 2 {
		s.Errorf("the lock changed hands %d times, want twice", l.Revision)
	}
}

func releaseLate(s *fixture) {
	g := s.acquireAndRelease(lock.Acquire{})
	for range 3 {
		s.acquireAndRelease(lock.Acquire{Holder: "later"})
	}
	s.must(s.release(g))
}

func releaseNext(s *fixture) {
	g := s.acquireAndRelease(lock.Acquire{})
	next := s.mustAcquire(lock.Acquire{Holder: "second"})
	s.must(s.release(g))
	if l := s.get(s.name); l.State != lock.Held || l.Leases[0].Token != next.Token {
		s.Errorf("the old release affected the new lease: %+v", l)
	}
}

func releaseUnknown(s *fixture) {
	s.mustAcquire(lock.Acquire{})
	s.expectLost(s.release(lock.Grant{Lease: lock.Lease{Name: s.name, ID: newID()}}), 0)
	if l := s.get(s.name); l.State != lock.Held {
		s.Errorf("the release of an unknown lease made the lock %s", l.State)
	}
}

func releaseElsewhere(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Name: s.name + ":a"})
	s.mustAcquire(lock.Acquire{Name: s.name + ":b"})
	s.expectLost(s.release(lock.Grant{Lease: lock.Lease{Name: s.name + ":b", ID: g.ID}}), 0)
}

func releaseRevoked(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.mustRevoke(g)
	if e := s.expectLost(s.release(g), lock.Revoked); e.Reason != testReason || e.Token != g.Token {
		s.Errorf("the refusal says token %d and %q, want %d and %q", e.Token, e.Reason, g.Token, testReason)
	}
}
