package locktest

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func renewing() cases {
	return cases{
		"a renewal moves the end and keeps the token":  renewMoves,
		"a renewal never brings the end nearer":        renewNearer,
		"a renewal does not accumulate":                renewAccumulates,
		"a renewal's TTL stays for those after it":     renewStays,
		"MaxHold cuts renewals":                        renewMaxHold,
		"at its MaxHold a lease cannot be renewed":     renewEnd,
		"a renewal is no transition":                   renewQuiet,
		"a lease_id never granted is lost":             renewUnknown,
		"a lease of another lock is lost":              renewElsewhere,
		"a released lease is lost, also grants later":  renewReleased,
		"a lock never used has no lease to be renewed": renewNever,
	}
}

func renewMoves(s *scene) {
	g := s.granted(lock.Acquire{Metadata: []byte(`{"a":1}`)})
	before := time.Now()
	r, err := s.renew(g, 2*alive)
	s.must(err)
	after := time.Now()
	if r.Token != g.Token || r.ID != g.ID || r.Holder != g.Holder || !near(r.AcquiredAt, g.AcquiredAt) || !sameJSON(r.Metadata, g.Metadata) {
		s.Errorf("the renewal changed the lease from %+v to %+v", g.Lease, r.Lease)
	}
	if moved := r.ExpiresAt.Sub(g.ExpiresAt); moved < alive-time.Millisecond {
		s.Errorf("the end moved by %v, want at least %v", moved, alive)
	}
	if took := after.Sub(before); r.Until.After(after.Add(2*alive)) || r.Until.Before(before.Add(2*alive-took-lateness)) {
		s.Errorf("Until is %v after the call, which took %v, want about %v", r.Until.Sub(before), took, 2*alive)
	}
	if r.Replayed {
		s.Error("a renewal says that it is a replay")
	}
}

func renewNearer(s *scene) {
	g := s.granted(lock.Acquire{})
	r, err := s.renew(g, brief)
	s.must(err)
	if !near(r.ExpiresAt, g.ExpiresAt) {
		s.Errorf("a shorter TTL moved the end by %v", r.ExpiresAt.Sub(g.ExpiresAt))
	}
}

func renewAccumulates(s *scene) {
	g := s.granted(lock.Acquire{})
	for range 5 {
		r, err := s.renew(g, 0)
		s.must(err)
		if l := s.look(s.name); r.ExpiresAt.After(l.AsOf.Add(alive + time.Millisecond)) {
			s.Fatalf("the lease has %v left, more than its TTL of %v", r.ExpiresAt.Sub(l.AsOf), alive)
		}
	}
}

func renewStays(s *scene) {
	g := s.granted(lock.Acquire{})
	_, err := s.renew(g, 2*alive)
	s.must(err)
	r, err := s.renew(g, 0)
	s.must(err)
	if r.TTL != 2*alive {
		s.Errorf("the TTL is %v, want that of the renewal before, %v", r.TTL, 2*alive)
	}
}

func renewMaxHold(s *scene) {
	g := s.granted(lock.Acquire{MaxHold: alive + time.Minute})
	r, err := s.renew(g, 2*alive)
	s.must(err)
	if held := r.ExpiresAt.Sub(g.AcquiredAt); (held - alive - time.Minute).Abs() > time.Millisecond {
		s.Errorf("the lease ends %v after the grant, want its MaxHold of %v", held, alive+time.Minute)
	}
	if left := time.Until(r.Until); left > alive+time.Minute {
		s.Errorf("Until leaves %v, more than the MaxHold", left)
	}
}

func renewEnd(s *scene) {
	g := s.granted(lock.Acquire{TTL: brief, MaxHold: brief, Grace: lock.MaxGrace})
	s.wait(s.name, lock.InGrace)
	_, err := s.renew(g, alive)
	s.lost(err, lock.Expired)
	_, err = s.acquire(lock.Acquire{Holder: "second"})
	s.refused(err, lock.ErrHeld)
}

func renewQuiet(s *scene) {
	g := s.granted(lock.Acquire{})
	before := s.look(s.name)
	_, err := s.renew(g, 2*alive)
	s.must(err)
	after := s.look(s.name)
	if after.Revision != before.Revision || !near(after.ChangedAt, before.ChangedAt) || after.Token != g.Token {
		s.Errorf("the renewal changed the lock from %+v to %+v", before, after)
	}
}

func renewUnknown(s *scene) {
	g := s.granted(lock.Acquire{})
	_, err := s.renew(lock.Grant{Lease: lock.Lease{Name: s.name, ID: newID()}}, 0)
	s.lost(err, 0)
	_, err = s.renew(g, 0)
	s.must(err)
}

func renewElsewhere(s *scene) {
	g := s.granted(lock.Acquire{Name: s.name + ":a"})
	s.granted(lock.Acquire{Name: s.name + ":b"})
	_, err := s.renew(lock.Grant{Lease: lock.Lease{Name: s.name + ":b", ID: g.ID}}, 0)
	s.lost(err, 0)
}

func renewReleased(s *scene) {
	g := s.released(lock.Acquire{})
	_, err := s.renew(g, 0)
	if e := s.lost(err, lock.Released); e.Token != g.Token {
		s.Errorf("the refusal names token %d, want %d", e.Token, g.Token)
	}
	for range 3 {
		s.released(lock.Acquire{Holder: "later"})
	}
	_, err = s.renew(g, 0)
	s.lost(err, lock.Released)
}

func renewNever(s *scene) {
	_, err := s.renew(lock.Grant{Lease: lock.Lease{Name: s.name, ID: newID()}}, 0)
	s.lost(err, 0)
	if l := s.look(s.name); l.Revision != 0 || l.State != lock.Free {
		s.Errorf("the refusal changed the lock: %+v", l)
	}
}
