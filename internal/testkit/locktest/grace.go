package locktest

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func graceCases() cases {
	return cases{
		"other clients are refused during the grace":     graceRefuses,
		"the holder can renew during the grace":          graceRenews,
		"the holder can release during the grace":        graceReleases,
		"an acquire is replayed during the grace":        graceReplays,
		"the lock shows its holder during the grace":     graceShows,
		"an operator can revoke during the grace":        graceRevokes,
		"the token is current during the grace":          graceVerifies,
		"after the grace the lease is lost":              graceEnds,
		"the next holder waits for the end of the grace": graceWaits,
	}
}

// acquireInGrace acquires and waits until the lease is in its grace, which outlives the test.
func (s *fixture) acquireInGrace() lock.Grant {
	s.Helper()
	g := s.mustAcquire(lock.Acquire{TTL: shortTTL, Grace: lock.MaxGrace})
	s.awaitState(s.name, lock.InGrace)
	return g
}

func graceRefuses(s *fixture) {
	g := s.acquireInGrace()
	_, err := s.acquire(lock.Acquire{Holder: "second"})
	e := s.expectError(err, lock.ErrHeld)
	if e.Holder != "first" || e.Newest != g.Token || e.RetryAfter <= 0 || e.RetryAfter > lock.MaxGrace {
		s.Errorf("the refusal is %+v", e)
	}
}

func graceRenews(s *fixture) {
	g := s.acquireInGrace()
	r, err := s.renew(g, longTTL)
	s.must(err)
	if r.Token != g.Token {
		s.Errorf("the renewal changed the token from %d to %d", g.Token, r.Token)
	}
	if l := s.get(s.name); l.State != lock.Held || l.Revision != 1 {
		s.Errorf("after the renewal the lock is %+v", l)
	}
}

func graceReleases(s *fixture) {
	g := s.acquireInGrace()
	s.must(s.release(g))
	s.mustAcquire(lock.Acquire{Holder: "second"})
}

func graceReplays(s *fixture) {
	g := s.acquireInGrace()
	again := s.mustAcquire(lock.Acquire{LeaseID: g.ID})
	if !again.Replayed || again.Token != g.Token || !isNear(again.ExpiresAt, g.ExpiresAt) {
		s.Errorf("the replay is %+v, want the lease of before", again)
	}
	if left := time.Until(again.Until); left > tolerance {
		s.Errorf("Until leaves %v of a lease that is past its end", left)
	}
}

func graceShows(s *fixture) {
	g := s.acquireInGrace()
	l := s.get(s.name)
	if l.State != lock.InGrace || len(l.Leases) != 1 {
		s.Fatalf("the lock is %+v", l)
	}
	if h := l.Leases[0]; h.Remaining != 0 || h.Token != g.Token || h.Grace != lock.MaxGrace {
		s.Errorf("the lease is shown as %+v", h)
	}
}

func graceRevokes(s *fixture) {
	g := s.acquireInGrace()
	s.mustRevoke(g)
	_, err := s.renew(g, longTTL)
	s.expectLost(err, lock.Revoked)
	if l := s.get(s.name); l.State != lock.InGrace || len(l.Leases) != 1 ||
		!isNear(l.Leases[0].ExpiresAt, g.ExpiresAt) {
		s.Errorf("after the revocation the lock is %+v", l)
	}
}

func graceVerifies(s *fixture) {
	g := s.acquireInGrace()
	v := s.verify(s.name, g.Token)
	if v.Status != lock.Current || v.Remaining != 0 {
		s.Errorf("the verification is %+v, want current with nothing left", v)
	}
}

func graceEnds(s *fixture) {
	g := s.mustAcquire(lock.Acquire{TTL: shortTTL, Grace: shortTTL})
	s.awaitState(s.name, lock.Free)
	_, err := s.renew(g, longTTL)
	s.expectLost(err, lock.Expired)
	s.expectLost(s.release(g), lock.Expired)
}

func graceWaits(s *fixture) {
	first := s.mustAcquire(lock.Acquire{TTL: shortTTL, Grace: 4 * shortTTL})
	s.eventually("the second holder is granted the lock", func() bool {
		second, err := s.acquire(lock.Acquire{Holder: "second"})
		if err != nil {
			s.expectError(err, lock.ErrHeld)
			return false
		}
		if second.AcquiredAt.Before(first.EndsAt().Add(-time.Millisecond)) {
			s.Errorf("the lock was granted %v before the grace's end", first.EndsAt().Sub(second.AcquiredAt))
		}
		return true
	})
}
