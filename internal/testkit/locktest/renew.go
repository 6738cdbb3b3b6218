package locktest

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func renewCases() cases {
	return cases{
		"a renewal extends the lease and keeps the token":   renewMoves,
		"a renewal never shortens the lease":                renewNearer,
		"a renewal does not accumulate":                     renewAccumulates,
		"a renewal's TTL applies to later renewals":         renewStays,
		"MaxHold limits renewals":                           renewMaxHold,
		"a lease cannot be renewed beyond its MaxHold":      renewEnd,
		"a renewal emits no event":                          renewQuiet,
		"an unknown lease_id is lost":                       renewUnknown,
		"a lease of another lock is lost":                   renewElsewhere,
		"a released lease is lost, also after later grants": renewReleased,
		"an unused lock has no lease to renew":              renewNever,
	}
}

func renewMoves(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Metadata: []byte(`{"a":1}`)})
	before := time.Now()
	r, err := s.renew(g, 2*longTTL)
	s.must(err)
	after := time.Now()
	if r.Token != g.Token || r.ID != g.ID || r.Holder != g.Holder || !isNear(r.AcquiredAt, g.AcquiredAt) ||
		!sameJSON(r.Metadata, g.Metadata) {
		s.Errorf("the renewal changed the lease from %+v to %+v", g.Lease, r.Lease)
	}
	if moved := r.ExpiresAt.Sub(g.ExpiresAt); moved < longTTL-time.Millisecond {
		s.Errorf("the end moved by %v, want at least %v", moved, longTTL)
	}
	if took := after.Sub(before); r.Until.After(after.Add(2*longTTL)) ||
		r.Until.Before(before.Add(2*longTTL-took-tolerance)) {
		s.Errorf("Until is %v after the call, which took %v, want about %v", r.Until.Sub(before), took, 2*longTTL)
	}
	if r.Replayed {
		s.Error("a renewal says that it is a replay")
	}
}

func renewNearer(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	r, err := s.renew(g, shortTTL)
	s.must(err)
	if !isNear(r.ExpiresAt, g.ExpiresAt) {
		s.Errorf("a shorter TTL moved the end by %v", r.ExpiresAt.Sub(g.ExpiresAt))
	}
}

func renewAccumulates(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for range 5 {
		r, err := s.renew(g, 0)
		s.must(err)
		if l := s.get(s.name); r.ExpiresAt.After(l.AsOf.Add(longTTL + time.Millisecond)) {
			s.Fatalf("the lease has %v left, more than its TTL of %v", r.ExpiresAt.Sub(l.AsOf), longTTL)
		}
	}
}

func renewStays(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	_, err := s.renew(g, 2*longTTL)
	s.must(err)
	r, err := s.renew(g, 0)
	s.must(err)
	if r.TTL != 2*longTTL {
		s.Errorf("the TTL is %v, want that of the renewal before, %v", r.TTL, 2*longTTL)
	}
}

func renewMaxHold(s *fixture) {
	g := s.mustAcquire(lock.Acquire{MaxHold: longTTL + time.Minute})
	r, err := s.renew(g, 2*longTTL)
	s.must(err)
	if held := r.ExpiresAt.Sub(g.AcquiredAt); (held - longTTL - time.Minute).Abs() > time.Millisecond {
		s.Errorf("the lease ends %v after the grant, want its MaxHold of %v", held, longTTL+time.Minute)
	}
	if left := time.Until(r.Until); left > longTTL+time.Minute {
		s.Errorf("Until leaves %v, more than the MaxHold", left)
	}
}

func renewEnd(s *fixture) {
	g := s.mustAcquire(lock.Acquire{TTL: shortTTL, MaxHold: shortTTL, Grace: lock.MaxGrace})
	s.awaitState(s.name, lock.InGrace)
	var err error
	s.eventually("a renewal is refused", func() bool {
		var r lock.Grant
		// A decision is dated a little back if the clock of the database was not read precisely.
		if r, err = s.renew(g, longTTL); err == nil && !r.ExpiresAt.Equal(g.ExpiresAt) {
			s.Fatalf("the lease ends at %v, after its MaxHold at %v", r.ExpiresAt, g.ExpiresAt)
		}
		return err != nil
	})
	s.expectLost(err, lock.Expired)
	_, err = s.acquire(lock.Acquire{Holder: "second"})
	s.expectError(err, lock.ErrHeld)
}

func renewQuiet(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	before := s.get(s.name)
	_, err := s.renew(g, 2*longTTL)
	s.must(err)
	after := s.get(s.name)
	if after.Revision != before.Revision || !isNear(after.ChangedAt, before.ChangedAt) || after.Token != g.Token {
		s.Errorf("the renewal changed the lock from %+v to %+v", before, after)
	}
}

func renewUnknown(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	_, err := s.renew(lock.Grant{Lease: lock.Lease{Name: s.name, ID: newID()}}, 0)
	s.expectLost(err, 0)
	_, err = s.renew(g, 0)
	s.must(err)
}

func renewElsewhere(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Name: s.name + ":a"})
	s.mustAcquire(lock.Acquire{Name: s.name + ":b"})
	_, err := s.renew(lock.Grant{Lease: lock.Lease{Name: s.name + ":b", ID: g.ID}}, 0)
	s.expectLost(err, 0)
}

func renewReleased(s *fixture) {
	g := s.acquireAndRelease(lock.Acquire{})
	_, err := s.renew(g, 0)
	if e := s.expectLost(err, lock.Released); e.Token != g.Token {
		s.Errorf("the refusal names token %d, want %d", e.Token, g.Token)
	}
	for range 3 {
		s.acquireAndRelease(lock.Acquire{Holder: "later"})
	}
	_, err = s.renew(g, 0)
	s.expectLost(err, lock.Released)
}

func renewNever(s *fixture) {
	_, err := s.renew(lock.Grant{Lease: lock.Lease{Name: s.name, ID: newID()}}, 0)
	s.expectLost(err, 0)
	if l := s.get(s.name); l.Revision != 0 || l.State != lock.Free {
		s.Errorf("the refusal changed the lock: %+v", l)
	}
}
