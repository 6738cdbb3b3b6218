package locktest

import (
	"encoding/json"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

func acquireCases() cases {
	return cases{
		"a grant returns the requested lease":           acquireReturnsLease,
		"a grant's Until is not after the expiry":       acquireUntil,
		"omitted options have their defaults":           acquireDefaults,
		"an omitted lease_id is generated":              acquireGeneratesID,
		"tokens grow from grant to grant":               acquireTokensGrow,
		"a held lock is refused to other clients":       acquireRefused,
		"the holder's text does not identify the owner": acquireSameHolder,
		"locks are independent of each other":           acquireOtherLocks,
		"MaxHold limits the first expiry":               acquireMaxHold,
		"the largest allowed values are accepted":       acquireLargestValues,
	}
}

func acquireReturnsLease(s *fixture) {
	id, metadata := newID(), json.RawMessage(`{"host": "db-3", "deep": [1, {"a": "<&>"}], "é": null}`)
	g := s.mustAcquire(lock.Acquire{
		LeaseID: id, Holder: "a holder & 日本語 <b>", Mode: lock.Exclusive, TTL: longTTL,
		Grace: 7 * time.Second, MaxHold: time.Hour, Metadata: metadata,
	})
	want := lock.Lease{
		ID: id, Name: s.name, Mode: lock.Exclusive, Holder: "a holder & 日本語 <b>", TTL: longTTL,
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
	if !isNear(g.ExpiresAt, g.AcquiredAt.Add(longTTL)) {
		s.Errorf("the lease ends %v after the grant, want %v", g.ExpiresAt.Sub(g.AcquiredAt), longTTL)
	}
	if g.Replayed {
		s.Error("a first grant says that it is a replay")
	}
}

func acquireUntil(s *fixture) {
	before := time.Now()
	g := s.mustAcquire(lock.Acquire{})
	after := time.Now()
	if latest := after.Add(longTTL); g.Until.After(latest) {
		s.Errorf("Until is %v later than the lease's end can be", g.Until.Sub(latest))
	}
	if took := after.Sub(before); g.Until.Before(before.Add(longTTL - took - tolerance)) {
		s.Errorf("Until is %v after the call, which took %v, want about %v", g.Until.Sub(before), took, longTTL)
	}
}

func acquireDefaults(s *fixture) {
	g, err := s.locks.Acquire(s.ctx, lock.Acquire{Name: s.name, Holder: "h"})
	s.must(err)
	if g.TTL != lock.DefaultTTL || g.Mode != lock.Exclusive || g.Grace != 0 || g.MaxHold != 0 || g.Metadata != nil {
		s.Errorf("the lease is %+v, want the defaults", g.Lease)
	}
}

func acquireGeneratesID(s *fixture) {
	g, err := s.locks.Acquire(s.ctx, lock.Acquire{Name: s.name, Holder: "h", TTL: longTTL})
	s.must(err)
	if g.ID == (lock.LeaseID{}) {
		s.Fatal("the lease has no lease_id")
	}
	s.must(s.release(g))
}

func acquireTokensGrow(s *fixture) {
	var last lock.Token
	for range 5 {
		g := s.acquireAndRelease(lock.Acquire{})
		if g.Token <= last {
			s.Fatalf("token %d was granted after %d", g.Token, last)
		}
		last = g.Token
	}
}

func acquireRefused(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Holder: "first", Grace: time.Second})
	_, err := s.acquire(lock.Acquire{Holder: "second"})
	e := s.expectError(err, lock.ErrHeld)
	if e.Holder != "first" || e.Newest != held.Token {
		s.Errorf("the refusal names %q with token %d, want %q with %d", e.Holder, e.Newest, "first", held.Token)
	}
	if most := longTTL + time.Second; e.RetryAfter <= 0 || e.RetryAfter > most {
		s.Errorf("the refusal says to try again after %v, want more than nothing and at most %v", e.RetryAfter, most)
	}
	if l := s.get(s.name); l.Token != held.Token || l.Revision != 1 {
		s.Errorf("a refusal changed the lock: %+v", l)
	}
}

func acquireSameHolder(s *fixture) {
	s.mustAcquire(lock.Acquire{Holder: "same"})
	_, err := s.acquire(lock.Acquire{Holder: "same"})
	s.expectError(err, lock.ErrHeld)
}

func acquireOtherLocks(s *fixture) {
	one := s.mustAcquire(lock.Acquire{Name: s.name + ":a"})
	two := s.mustAcquire(lock.Acquire{Name: s.name + ":A"})
	three := s.mustAcquire(lock.Acquire{Name: s.name})
	if one.Token == two.Token || two.Token == three.Token {
		s.Errorf("locks share a token: %d, %d, %d", one.Token, two.Token, three.Token)
	}
}

func acquireMaxHold(s *fixture) {
	g := s.mustAcquire(lock.Acquire{MaxHold: time.Minute})
	if held := g.ExpiresAt.Sub(g.AcquiredAt); held != time.Minute {
		s.Errorf("the lease ends %v after the grant, want its MaxHold of a minute", held)
	}
	if left := time.Until(g.Until); left > time.Minute {
		s.Errorf("Until leaves %v, more than the MaxHold", left)
	}
}

func acquireLargestValues(s *fixture) {
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
	g := s.mustAcquire(lock.Acquire{
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
