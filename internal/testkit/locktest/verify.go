package locktest

import "github.com/paddock-lock/paddock/lock"

func verifyCases() cases {
	return cases{
		"the token of an active lease is current":   verifyCurrent,
		"the newest token is ended after its lease": verifyEnded,
		"a token is stale after the next grant":     verifyStale,
		"a token that was not granted is unknown":   verifyUnknown,
		"a verification changes nothing":            verifyQuiet,
	}
}

func (s *fixture) verify(name string, token lock.Token) lock.Verification {
	s.Helper()
	v, err := s.locks.VerifyToken(s.ctx, lock.Verify{Name: name, Token: token})
	s.must(err)
	if v.Name != name || v.Token != token || v.CheckedAt.IsZero() {
		s.Fatalf("the verification of token %d of %s is %+v", token, name, v)
	}
	return v
}

func (s *fixture) expectStatus(token lock.Token, want lock.TokenStatus, newest lock.Token) {
	s.Helper()
	v := s.verify(s.name, token)
	if v.Status != want || v.Newest != newest || (v.Remaining > 0) != (want == lock.Current) {
		s.Errorf("the verification of token %d is %+v, want %s with the newest %d", token, v, want, newest)
	}
}

func verifyCurrent(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.expectStatus(g.Token, lock.Current, g.Token)
	v := s.verify(s.name, g.Token)
	if v.Remaining > longTTL {
		s.Errorf("%v remain of %v", v.Remaining, longTTL)
	}
	if v.CheckedAt.Before(g.AcquiredAt) {
		s.Errorf("checked at %v, before the grant at %v", v.CheckedAt, g.AcquiredAt)
	}
}

func verifyEnded(s *fixture) {
	released := s.acquireAndRelease(lock.Acquire{})
	s.expectStatus(released.Token, lock.Ended, released.Token)
	expired := s.acquireAndExpire(lock.Acquire{})
	s.expectStatus(expired.Token, lock.Ended, expired.Token)
	revoked := s.mustAcquire(lock.Acquire{})
	s.mustRevoke(revoked)
	s.expectStatus(revoked.Token, lock.Ended, revoked.Token)
}

func verifyStale(s *fixture) {
	first := s.acquireAndRelease(lock.Acquire{})
	second := s.mustAcquire(lock.Acquire{})
	s.expectStatus(first.Token, lock.Stale, second.Token)
	s.must(s.release(second))
	s.expectStatus(first.Token, lock.Stale, second.Token)
}

func verifyUnknown(s *fixture) {
	s.expectStatus(1, lock.Unknown, 0)
	g := s.mustAcquire(lock.Acquire{})
	s.expectStatus(g.Token+1, lock.Unknown, g.Token)
	s.expectStatus(lock.MaxToken, lock.Unknown, g.Token)
	other := s.mustAcquire(lock.Acquire{Name: s.name + ":other"})
	s.expectStatus(other.Token, lock.Unknown, g.Token)
}

func verifyQuiet(s *fixture) {
	s.verify(s.name, 1)
	if got := s.names(lock.LockQuery{Prefix: s.name}); len(got) != 0 {
		s.Errorf("the list has %v", got)
	}
}
