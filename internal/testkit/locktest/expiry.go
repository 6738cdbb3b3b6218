package locktest

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func expiryCases() cases {
	return cases{
		"an expired lease cannot be released":                      expiryRelease,
		"an expired lease cannot be renewed, even without waiters": expiryRenew,
		"an expired lease is still lost some grants later":         expiryLate,
		"the next grant after an expiry has a greater token":       expiryToken,
		"a lock is not granted before the lease has ended":         expiryEarly,
		"an expired lock is shown as free":                         expiryLook,
	}
}

func expiryRelease(s *fixture) {
	g := s.acquireAndExpire(lock.Acquire{})
	for range 2 {
		if e := s.expectLost(s.release(g), lock.Expired); e.Token != g.Token {
			s.Errorf("the refusal names token %d, want %d", e.Token, g.Token)
		}
	}
}

func expiryRenew(s *fixture) {
	g := s.acquireAndExpire(lock.Acquire{})
	for range 2 {
		_, err := s.renew(g, longTTL)
		s.expectLost(err, lock.Expired)
	}
	if l := s.get(s.name); l.State != lock.Free {
		s.Errorf("a refused renewal made the lock %s", l.State)
	}
}

func expiryLate(s *fixture) {
	g := s.acquireAndExpire(lock.Acquire{})
	for range 3 {
		s.acquireAndRelease(lock.Acquire{Holder: "later"})
	}
	_, err := s.renew(g, 0)
	s.expectLost(err, lock.Expired)
	s.expectLost(s.release(g), lock.Expired)
}

func expiryToken(s *fixture) {
	first := s.acquireAndExpire(lock.Acquire{})
	if next := s.mustAcquire(lock.Acquire{Holder: "second"}); next.Token <= first.Token {
		s.Errorf("token %d was granted after %d", next.Token, first.Token)
	}
}

// expiryEarly retries an acquire while another lease is active.
func expiryEarly(s *fixture) {
	first := s.mustAcquire(lock.Acquire{TTL: 5 * shortTTL})
	s.eventually("the second holder is granted the lock", func() bool {
		second, err := s.acquire(lock.Acquire{Holder: "second"})
		if err != nil {
			s.expectError(err, lock.ErrHeld)
			return false
		}
		if second.AcquiredAt.Before(first.ExpiresAt.Add(-time.Millisecond)) {
			s.Errorf("the lock was granted %v before the lease's end", first.ExpiresAt.Sub(second.AcquiredAt))
		}
		return true
	})
}

func expiryLook(s *fixture) {
	g := s.acquireAndExpire(lock.Acquire{})
	l := s.get(s.name)
	if len(l.Leases) != 0 || l.Token != g.Token {
		s.Errorf("after the expiry the lock is %+v", l)
	}
	if l.AsOf.Before(g.ExpiresAt.Add(-time.Millisecond)) {
		s.Errorf("the lock was free %v before the lease's end", g.ExpiresAt.Sub(l.AsOf))
	}
}
