package locktest

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func expiring() cases {
	return cases{
		"an expired lease cannot be released":                     expiryRelease,
		"an expired lease cannot be renewed, though nobody waits": expiryRenew,
		"an expired lease is lost also grants later":              expiryLate,
		"the next grant after an expiry has a greater token":      expiryToken,
		"a lock is not given away before the lease's end":         expiryEarly,
		"an expired lock says so whoever looks":                   expiryLook,
	}
}

func expiryRelease(s *scene) {
	g := s.expired(lock.Acquire{})
	for range 2 {
		if e := s.lost(s.release(g), lock.Expired); e.Token != g.Token {
			s.Errorf("the refusal names token %d, want %d", e.Token, g.Token)
		}
	}
}

func expiryRenew(s *scene) {
	g := s.expired(lock.Acquire{})
	for range 2 {
		_, err := s.renew(g, alive)
		s.lost(err, lock.Expired)
	}
	if l := s.look(s.name); l.State != lock.Free {
		s.Errorf("a refused renewal made the lock %s", l.State)
	}
}

func expiryLate(s *scene) {
	g := s.expired(lock.Acquire{})
	for range 3 {
		s.released(lock.Acquire{Holder: "later"})
	}
	_, err := s.renew(g, 0)
	s.lost(err, lock.Expired)
	s.lost(s.release(g), lock.Expired)
}

func expiryToken(s *scene) {
	first := s.expired(lock.Acquire{})
	if next := s.granted(lock.Acquire{Holder: "second"}); next.Token <= first.Token {
		s.Errorf("token %d was granted after %d", next.Token, first.Token)
	}
}

// expiryEarly has a second holder try for as long as the first may have the lock.
func expiryEarly(s *scene) {
	first := s.granted(lock.Acquire{TTL: 5 * brief})
	s.eventually("the second holder has the lock", func() bool {
		second, err := s.acquire(lock.Acquire{Holder: "second"})
		if err != nil {
			s.refused(err, lock.ErrHeld)
			return false
		}
		if second.AcquiredAt.Before(first.ExpiresAt.Add(-time.Millisecond)) {
			s.Errorf("the lock was given away %v before the lease's end", first.ExpiresAt.Sub(second.AcquiredAt))
		}
		return true
	})
}

func expiryLook(s *scene) {
	g := s.expired(lock.Acquire{})
	l := s.look(s.name)
	if len(l.Leases) != 0 || l.Token != g.Token {
		s.Errorf("after the expiry the lock is %+v", l)
	}
	if l.AsOf.Before(g.ExpiresAt.Add(-time.Millisecond)) {
		s.Errorf("the lock was free %v before the lease's end", g.ExpiresAt.Sub(l.AsOf))
	}
}
