package locktest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func ruleCases() cases {
	return cases{
		"a request outside of a rule is refused":           ruleRefuses,
		"a rule bounds all renewals":                       ruleBoundsHold,
		"a capacity by rule lets waiters in when it grows": ruleCapacity,
		"a rule is replaced, listed and removed":           ruleListed,
	}
}

// rule sets the rule of all locks of the test but the one with the fixture's name. It tries again while the database is
// busy.
func (s *fixture) rule(r lock.Rule) (set lock.Rule) {
	s.Helper()
	r.Scope = s.all()
	var err error
	s.eventually("a rule is set", func() bool {
		set, err = s.locks().SetRule(s.ctx, r)
		return !errors.Is(err, lock.ErrUnavailable)
	})
	s.must(err)
	return set
}

func ruleRefuses(s *fixture) {
	s.rule(lock.Rule{MaxTTL: time.Minute, MinGrace: time.Second})
	for field, a := range map[string]lock.Acquire{
		"ttl_ms": {TTL: 2 * time.Minute, Grace: time.Second}, "grace_ms": {TTL: time.Minute, Grace: time.Millisecond},
	} {
		a.Locks = lock.One(s.other(1))
		if e := s.expectError(errOf(s.acquire(a)), lock.ErrInvalid); e.Field != field || !strings.Contains(e.Detail, string(s.all())) {
			s.Errorf("refused with %+v", e)
		}
	}
	g := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1)), TTL: time.Minute})
	if g.Grace != time.Second {
		s.Errorf("a grace that is left out is %v", g.Grace)
	}
	if e := s.expectError(errOf(s.renew(g, 2*time.Minute)), lock.ErrInvalid); e.Field != "ttl_ms" {
		s.Errorf("the renewal was refused with %+v", e)
	}
	s.mustAcquire(lock.Acquire{TTL: 2 * time.Minute}) // outside of the scope
}

func ruleBoundsHold(s *fixture) {
	s.rule(lock.Rule{MaxHold: mediumTTL})
	g := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1)), TTL: mediumTTL})
	again, err := s.renew(g, 0)
	s.must(err)
	if end := g.AcquiredAt.Add(mediumTTL); again.ExpiresAt.After(end.Add(time.Millisecond)) || again.MaxHold != mediumTTL {
		s.Errorf("renewed until %v, with a max hold of %v; want %v", again.ExpiresAt, again.MaxHold, end)
	}
}

func ruleCapacity(s *fixture) {
	permit := []lock.Member{{Name: s.other(1), Mode: lock.Permit}}
	if e := s.expectError(errOf(s.acquire(lock.Acquire{Locks: permit})), lock.ErrInvalid); e.Field != "capacity" {
		s.Errorf("without a rule: %+v", e)
	}
	s.rule(lock.Rule{Capacity: 1})
	first := s.mustAcquire(lock.Acquire{Locks: permit})
	wrong := []lock.Member{{Name: s.other(1), Mode: lock.Permit, Capacity: 3}}
	if e := s.expectError(errOf(s.acquire(lock.Acquire{Locks: wrong})), lock.ErrCapacityMismatch); e.Capacity != 1 {
		s.Errorf("another capacity: %+v", e)
	}
	second := s.startAcquire(lock.Acquire{Locks: permit, Holder: "second"})
	s.eventually("it waits", func() bool { return s.get(s.other(1)).Waiters == 1 })
	s.rule(lock.Rule{Capacity: 2})
	g := second.mustBeGranted()
	s.rule(lock.Rule{Capacity: 1})
	s.must(s.release(first))
	s.expectError(errOf(s.acquire(lock.Acquire{Locks: permit, Holder: "third"})), lock.ErrHeld)
	s.must(s.release(g))
	s.mustAcquire(lock.Acquire{Locks: permit, Holder: "third"})
}

func ruleListed(s *fixture) {
	first := s.rule(lock.Rule{MaxTTL: time.Minute})
	second := s.rule(lock.Rule{MaxTTL: time.Hour, MaxHold: 2 * time.Hour, MinGrace: time.Second, Capacity: 3, MaxLeases: 4})
	if first.SetAt.IsZero() || second.SetAt.Before(first.SetAt) {
		s.Errorf("set %+v, then %+v", first, second)
	}
	all, err := s.locks().Rules(s.ctx)
	s.must(err)
	at := slices.IndexFunc(all, func(r lock.Rule) bool { return r.Scope == s.all() })
	if at < 0 {
		s.Fatalf("the rules are %+v", all)
	}
	got := all[at]
	if !isNear(got.SetAt, second.SetAt) {
		s.Errorf("set at %v, want %v", got.SetAt, second.SetAt)
	}
	if got.SetAt = second.SetAt; got != second {
		s.Errorf("the rule is %+v, want %+v", got, second)
	}
	for range 2 {
		s.eventually("the rule is removed", func() bool {
			err = s.locks().RemoveRule(s.ctx, s.all())
			return !errors.Is(err, lock.ErrUnavailable)
		})
		s.must(err)
	}
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1)), TTL: 2 * time.Hour})
	if e := s.expectError(errOf(s.locks().SetRule(s.ctx, lock.Rule{Scope: s.all()})), lock.ErrInvalid); e.Field != "scope" {
		s.Errorf("a rule without a bound: %+v", e)
	}
}
