package locktest

import "github.com/paddock-lock/paddock/lock"

func verifying() cases {
	return cases{
		"the token of a lease that lives is current":  verifyCurrent,
		"the newest token is ended after its lease":   verifyEnded,
		"a token is stale after the next grant":       verifyStale,
		"a token that was not granted yet is unknown": verifyUnknown,
		"a verdict changes nothing":                   verifyQuiet,
	}
}

func (s *scene) verify(name string, token lock.Token) lock.Verification {
	s.Helper()
	v, err := s.locks.VerifyToken(s.ctx, lock.Verify{Name: name, Token: token})
	s.must(err)
	if v.Name != name || v.Token != token || v.CheckedAt.IsZero() {
		s.Fatalf("the verdict on token %d of %s is %+v", token, name, v)
	}
	return v
}

func (s *scene) stands(token lock.Token, standing lock.TokenStatus, newest lock.Token) {
	s.Helper()
	v := s.verify(s.name, token)
	if v.Status != standing || v.Newest != newest || (v.Remaining > 0) != (standing == lock.Current) {
		s.Errorf("the verdict on token %d is %+v, want %s with the newest %d", token, v, standing, newest)
	}
}

func verifyCurrent(s *scene) {
	g := s.granted(lock.Acquire{})
	s.stands(g.Token, lock.Current, g.Token)
	v := s.verify(s.name, g.Token)
	if v.Remaining > alive {
		s.Errorf("%v remain of %v", v.Remaining, alive)
	}
	if v.CheckedAt.Before(g.AcquiredAt) {
		s.Errorf("checked at %v, before the grant at %v", v.CheckedAt, g.AcquiredAt)
	}
}

func verifyEnded(s *scene) {
	released := s.released(lock.Acquire{})
	s.stands(released.Token, lock.Ended, released.Token)
	expired := s.expired(lock.Acquire{})
	s.stands(expired.Token, lock.Ended, expired.Token)
	revoked := s.granted(lock.Acquire{})
	s.revoked(revoked)
	s.stands(revoked.Token, lock.Ended, revoked.Token)
}

func verifyStale(s *scene) {
	first := s.released(lock.Acquire{})
	second := s.granted(lock.Acquire{})
	s.stands(first.Token, lock.Stale, second.Token)
	s.must(s.release(second))
	s.stands(first.Token, lock.Stale, second.Token)
}

func verifyUnknown(s *scene) {
	s.stands(1, lock.Unknown, 0)
	g := s.granted(lock.Acquire{})
	s.stands(g.Token+1, lock.Unknown, g.Token)
	s.stands(lock.MaxToken, lock.Unknown, g.Token)
	other := s.granted(lock.Acquire{Name: s.name + ":other"})
	s.stands(other.Token, lock.Unknown, g.Token)
}

func verifyQuiet(s *scene) {
	s.verify(s.name, 1)
	if got := s.names(lock.LockQuery{Prefix: s.name}); len(got) != 0 {
		s.Errorf("the list has %v", got)
	}
}
