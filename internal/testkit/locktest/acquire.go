package locktest

import (
	"encoding/json"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

func acquiring() cases {
	return cases{
		"a grant tells what was asked for":                  grantTells,
		"a grant's Until is not later than the lease's end": grantUntil,
		"a TTL that is not given is the usual one":          grantUsual,
		"a lease_id that is not given is drawn":             grantDraws,
		"the token grows from grant to grant":               grantTokens,
		"a lock that is held is refused to others":          grantRefused,
		"a holder's text is no identity":                    grantTwice,
		"locks do not hinder each other":                    grantOthers,
		"MaxHold cuts the first end":                        grantMaxHold,
		"the longest of everything is granted":              grantLongest,
	}
}

func grantTells(s *scene) {
	id, metadata := newID(), json.RawMessage(`{"host": "db-3", "deep": [1, {"a": "<&>"}], "é": null}`)
	g := s.granted(lock.Acquire{
		LeaseID: id, Holder: "a holder & 日本語 <b>", Mode: lock.Exclusive, TTL: alive,
		Grace: 7 * time.Second, MaxHold: time.Hour, Metadata: metadata,
	})
	want := lock.Lease{
		ID: id, Name: s.name, Mode: lock.Exclusive, Holder: "a holder & 日本語 <b>", TTL: alive,
		Grace: 7 * time.Second, MaxHold: time.Hour,
		Token: g.Token, AcquiredAt: g.AcquiredAt, ExpiresAt: g.ExpiresAt, Metadata: g.Metadata,
	}
	if diff := cmp.Diff(want, g.Lease); diff != "" {
		s.Errorf("the lease differs (-want +got):\n%s", diff)
	}
	if !sameJSON(g.Metadata, metadata) {
		s.Errorf("the metadata is %s, want %s", g.Metadata, metadata)
	}
	if g.Token < 1 || g.Token > lock.MaxToken {
		s.Errorf("the token is %d, want 1 to %d", g.Token, lock.MaxToken)
	}
	if !near(g.ExpiresAt, g.AcquiredAt.Add(alive)) {
		s.Errorf("the lease ends %v after the grant, want %v", g.ExpiresAt.Sub(g.AcquiredAt), alive)
	}
	if g.Replayed {
		s.Error("a first grant says that it is a replay")
	}
}

func grantUntil(s *scene) {
	before := time.Now()
	g := s.granted(lock.Acquire{})
	after := time.Now()
	if latest := after.Add(alive); g.Until.After(latest) {
		s.Errorf("Until is %v later than the lease's end can be", g.Until.Sub(latest))
	}
	if took := after.Sub(before); g.Until.Before(before.Add(alive - took - lateness)) {
		s.Errorf("Until is %v after the call, which took %v, want about %v", g.Until.Sub(before), took, alive)
	}
}

func grantUsual(s *scene) {
	g, err := s.locks.Acquire(s.ctx, lock.Acquire{Name: s.name, Holder: "h"})
	s.must(err)
	if g.TTL != lock.DefaultTTL || g.Mode != lock.Exclusive || g.Grace != 0 || g.MaxHold != 0 || g.Metadata != nil {
		s.Errorf("the lease is %+v, want the defaults", g.Lease)
	}
}

func grantDraws(s *scene) {
	g, err := s.locks.Acquire(s.ctx, lock.Acquire{Name: s.name, Holder: "h", TTL: alive})
	s.must(err)
	if g.ID == (lock.LeaseID{}) {
		s.Fatal("the lease has no lease_id")
	}
	s.must(s.release(g))
}

func grantTokens(s *scene) {
	var last lock.Token
	for range 5 {
		g := s.released(lock.Acquire{})
		if g.Token <= last {
			s.Fatalf("token %d was granted after %d", g.Token, last)
		}
		last = g.Token
	}
}

func grantRefused(s *scene) {
	held := s.granted(lock.Acquire{Holder: "first", Grace: time.Second})
	_, err := s.acquire(lock.Acquire{Holder: "second"})
	e := s.refused(err, lock.ErrHeld)
	if e.Holder != "first" || e.Newest != held.Token {
		s.Errorf("the refusal names %q with token %d, want %q with %d", e.Holder, e.Newest, "first", held.Token)
	}
	if most := alive + time.Second; e.RetryAfter <= 0 || e.RetryAfter > most {
		s.Errorf("the refusal says to try again after %v, want more than nothing and at most %v", e.RetryAfter, most)
	}
	if l := s.look(s.name); l.Token != held.Token || l.Revision != 1 {
		s.Errorf("a refusal changed the lock: %+v", l)
	}
}

func grantTwice(s *scene) {
	s.granted(lock.Acquire{Holder: "same"})
	_, err := s.acquire(lock.Acquire{Holder: "same"})
	s.refused(err, lock.ErrHeld)
}

func grantOthers(s *scene) {
	one := s.granted(lock.Acquire{Name: s.name + ":a"})
	two := s.granted(lock.Acquire{Name: s.name + ":A"})
	three := s.granted(lock.Acquire{Name: s.name})
	if one.Token == two.Token || two.Token == three.Token {
		s.Errorf("locks share a token: %d, %d, %d", one.Token, two.Token, three.Token)
	}
}

func grantMaxHold(s *scene) {
	g := s.granted(lock.Acquire{MaxHold: time.Minute})
	if held := g.ExpiresAt.Sub(g.AcquiredAt); held != time.Minute {
		s.Errorf("the lease ends %v after the grant, want its MaxHold of a minute", held)
	}
	if left := time.Until(g.Until); left > time.Minute {
		s.Errorf("Until leaves %v, more than the MaxHold", left)
	}
}

func grantLongest(s *scene) {
	pad := make([]byte, lock.MaxNameLength-len(s.name))
	text := make([]rune, lock.MaxHolderLength)
	for i := range pad {
		pad[i] = 'x'
	}
	for i := range text {
		text[i] = '🐎'
	}
	metadata := append(append([]byte(`{"a":"`), make([]byte, lock.MaxMetadataSize-8)...), `"}`...)
	for i := range lock.MaxMetadataSize - 8 {
		metadata[6+i] = '<'
	}
	g := s.granted(lock.Acquire{
		Name: s.name + string(pad), Holder: string(text), TTL: lock.MaxTTL, Grace: lock.MaxGrace,
		MaxHold: lock.MaxHold, Metadata: metadata,
	})
	if g.Name != s.name+string(pad) || g.Holder != string(text) || !sameJSON(g.Metadata, metadata) {
		s.Error("the lease tells of something else than was asked for")
	}
	s.must(s.release(g))
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}
