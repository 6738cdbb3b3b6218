package locktest

import (
	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const testReason = "host <db-3> is being replaced & cleaned"

func revokeCases() cases {
	return cases{
		"a revoked lock is free at once":                     revokeFrees,
		"a token that does not hold the lock is refused":     revokeWrong,
		"a revoked lease is shown during its grace":          revokeShows,
		"a second revocation can skip the rest of the grace": revokeSkippingGrace,
	}
}

func (s *fixture) revoke(token lock.Token) (lock.Lock, error) {
	return s.locks().Revoke(s.ctx, lock.Revoke{Name: s.name, Token: token, Reason: testReason})
}

func (s *fixture) mustRevoke(g lock.Grant) lock.Lock {
	s.Helper()
	l, err := s.revoke(g.Token)
	s.must(err)
	return l
}

// mustSkipGrace revokes the lease and skips its grace.
func (s *fixture) mustSkipGrace(g lock.Grant) lock.Lock {
	s.Helper()
	l, err := s.locks().Revoke(s.ctx, lock.Revoke{Name: g.Name, Token: g.Token, Reason: testReason, SkipGrace: true})
	s.must(err)
	return l
}

func revokeFrees(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for range 2 {
		l := s.mustRevoke(g)
		if l.Name != s.name || l.State != lock.Free || len(l.Leases) != 0 || l.Token != g.Token || l.Revision != 2 || l.AsOf.IsZero() {
			s.Errorf("the revocation answers with %+v", l)
		}
	}
	if next := s.mustAcquire(lock.Acquire{Holder: "second"}); next.Token <= g.Token {
		s.Errorf("token %d was granted after %d", next.Token, g.Token)
	}
}

func revokeWrong(s *fixture) {
	if e := s.expectError(errOf(s.revoke(1)), lock.ErrTokenMismatch); e.Token != 1 || e.Newest != 0 {
		s.Errorf("of an unused lock the refusal names %d and %d", e.Token, e.Newest)
	}
	g := s.mustAcquire(lock.Acquire{})
	for _, wrong := range []lock.Token{g.Token + 1, lock.MaxToken} {
		if e := s.expectError(errOf(s.revoke(wrong)), lock.ErrTokenMismatch); e.Token != wrong || e.Newest != g.Token {
			s.Errorf("the refusal names %d and %d, want %d and %d", e.Token, e.Newest, wrong, g.Token)
		}
	}
	s.must(errOf(s.renew(g, 0)))
}

func revokeShows(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Grace: lock.MaxGrace})
	answered := s.mustRevoke(g)
	page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name, State: lock.InGrace})
	s.must(err)
	for _, l := range append(page.Items, answered, s.get(s.name)) {
		if l.State != lock.InGrace || len(l.Leases) != 1 || l.Token != g.Token || l.Revision != 2 {
			s.Fatalf("the lock is %+v", l)
		}
		h := l.Leases[0]
		if !h.Revoked || h.Remaining != 0 || h.Grace != lock.MaxGrace || h.Holder != "first" || !isNear(h.ExpiresAt, l.ChangedAt) {
			s.Errorf("the lease is shown as %+v", h)
		}
	}
	if len(page.Items) != 1 {
		s.Errorf("%d locks are listed in their grace", len(page.Items))
	}
}

func revokeSkippingGrace(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Grace: lock.MaxGrace})
	s.mustRevoke(g)
	s.expectLost(errOf(s.renew(g, 0)), lock.Revoked)
	if l := s.mustSkipGrace(g); l.State != lock.Free || len(l.Leases) != 0 {
		s.Errorf("the revocation answers with %+v", l)
	}
	events := s.events(s.name, 3)
	if e := events[2]; e.Kind != lock.Revoked || e.Token != g.Token || e.Reason != testReason {
		s.Errorf("skipping the grace has the event %+v", e)
	}
	if e := s.expectLost(errOf(s.renew(g, 0)), lock.Revoked); !isNear(e.EndedAt, events[1].At) {
		s.Errorf("the error says the lease ended at %v, not at %v", e.EndedAt, events[1].At)
	}
	s.mustAcquire(lock.Acquire{Holder: "second"})
}
