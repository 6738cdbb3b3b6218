package locktest

import "github.com/paddock-lock/paddock/lock"

const theReason = "host <db-3> is being replaced & cleaned"

func revoking() cases {
	return cases{
		"a revoked lock is free at once":             revokeFrees,
		"the ousted holder learns of it and why":     revokeTells,
		"a revocation sent again succeeds":           revokeAgain,
		"another token than the holder's is refused": revokeWrong,
		"a free lock has nothing to revoke":          revokeFree,
		"a revocation never hits the next holder":    revokeNext,
		"the token of another lock is refused":       revokeElsewhere,
	}
}

func (s *scene) revoke(token lock.Token) (lock.Lock, error) {
	return s.locks.Revoke(s.ctx, lock.Revoke{Name: s.name, Token: token, Reason: theReason})
}

func (s *scene) revoked(g lock.Grant) lock.Lock {
	s.Helper()
	l, err := s.revoke(g.Token)
	s.must(err)
	return l
}

func revokeFrees(s *scene) {
	g := s.granted(lock.Acquire{})
	l := s.revoked(g)
	if l.Name != s.name || l.Phase != lock.Free || len(l.Leases) != 0 || l.Token != g.Token || l.Revision != 2 || l.AsOf.IsZero() {
		s.Errorf("the revocation answers with %+v", l)
	}
	if next := s.granted(lock.Acquire{Holder: "second"}); next.Token <= g.Token {
		s.Errorf("token %d was granted after %d", next.Token, g.Token)
	}
}

func revokeTells(s *scene) {
	g := s.granted(lock.Acquire{})
	s.revoked(g)
	for range 2 {
		_, err := s.renew(g, 0)
		if e := s.lost(err, lock.Revoked); e.Reason != theReason || e.Token != g.Token {
			s.Errorf("the refusal says token %d and %q, want %d and %q", e.Token, e.Reason, g.Token, theReason)
		}
		s.released(lock.Acquire{Holder: "later"})
	}
}

func revokeAgain(s *scene) {
	g := s.granted(lock.Acquire{})
	s.revoked(g)
	if l := s.revoked(g); l.Phase != lock.Free || l.Revision != 2 {
		s.Errorf("the second revocation answers with %+v", l)
	}
}

func revokeWrong(s *scene) {
	g := s.granted(lock.Acquire{})
	for _, wrong := range []lock.Token{g.Token + 1, lock.MaxToken} {
		_, err := s.revoke(wrong)
		if e := s.refused(err, lock.ErrTokenMismatch); e.Token != wrong || e.Newest != g.Token {
			s.Errorf("the refusal names %d and %d, want %d and %d", e.Token, e.Newest, wrong, g.Token)
		}
	}
	_, err := s.renew(g, 0)
	s.must(err)
}

func revokeFree(s *scene) {
	_, err := s.revoke(1)
	if e := s.refused(err, lock.ErrTokenMismatch); e.Newest != 0 {
		s.Errorf("a lock never used has the newest token %d", e.Newest)
	}
	g := s.released(lock.Acquire{})
	_, err = s.revoke(g.Token)
	if e := s.refused(err, lock.ErrTokenMismatch); e.Newest != g.Token {
		s.Errorf("the refusal names the newest token %d, want %d", e.Newest, g.Token)
	}
	expired := s.expired(lock.Acquire{})
	_, err = s.revoke(expired.Token)
	s.refused(err, lock.ErrTokenMismatch)
}

func revokeNext(s *scene) {
	first := s.granted(lock.Acquire{})
	s.revoked(first)
	second := s.granted(lock.Acquire{Holder: "second"})
	_, err := s.revoke(first.Token)
	s.refused(err, lock.ErrTokenMismatch)
	_, err = s.renew(second, 0)
	s.must(err)
}

func revokeElsewhere(s *scene) {
	other := s.granted(lock.Acquire{Name: s.name + ":other"})
	s.granted(lock.Acquire{})
	_, err := s.revoke(other.Token)
	s.refused(err, lock.ErrTokenMismatch)
	_, err = s.renew(other, 0)
	s.must(err)
}
