package locktest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-lock/paddock/lock"
)

func leaseCases() cases {
	return cases{
		"a grant returns the requested lease":                     leaseGranted,
		"a grant's Until is not after the expiry":                 leaseUntil,
		"omitted options have their defaults":                     leaseDefaults,
		"the largest allowed values are accepted":                 leaseLargestValues,
		"a held lock is refused to other clients":                 leaseRefused,
		"the same lease_id returns the same lease":                leaseReplayed,
		"another holder with the same lease_id is refused":        leaseIDInUse,
		"a renewal extends the lease and keeps the token":         leaseRenewed,
		"a renewal replaces the metadata":                         leaseMetadata,
		"a released lock is free at once":                         leaseReleased,
		"an unknown lease_id is lost":                             leaseUnknown,
		"a lease that has ended is lost, also after later grants": leaseLost,
		"in its grace a lease blocks others, and can be renewed":  leaseInGrace,
		"a lock is not granted before the grace has ended":        leaseNotTakenEarly,
	}
}

func leaseGranted(s *fixture) {
	id, metadata := newID(), json.RawMessage(`{"host": "db-3", "deep": [1, {"a": "<&>"}], "é": null}`)
	g := s.mustAcquire(lock.Acquire{
		Locks: s.as(lock.Exclusive), LeaseID: id, Holder: "a holder & 日本語 <b>", TTL: longTTL,
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
	if !sameJSON(g.Metadata, metadata) || g.Replayed {
		s.Errorf("the grant is %+v, want the metadata %s, and no replay", g, metadata)
	}
	if g.Token < 1 || g.Token > lock.MaxToken {
		s.Errorf("the token is %d, want 1 to %d", g.Token, lock.MaxToken)
	}
	if !isNear(g.ExpiresAt, g.AcquiredAt.Add(longTTL)) {
		s.Errorf("the lease ends %v after the grant, want %v", g.ExpiresAt.Sub(g.AcquiredAt), longTTL)
	}
}

func leaseUntil(s *fixture) {
	before := time.Now()
	g := s.mustAcquire(lock.Acquire{MaxHold: longTTL / 2})
	after := time.Now()
	if latest := after.Add(longTTL / 2); g.Until.After(latest) {
		s.Errorf("Until is %v later than the lease's end can be", g.Until.Sub(latest))
	}
	if took := after.Sub(before); g.Until.Before(before.Add(longTTL/2 - took - tolerance)) {
		s.Errorf("Until is %v after the call, which took %v, want about %v", g.Until.Sub(before), took, longTTL/2)
	}
}

func leaseDefaults(s *fixture) {
	g, err := s.locks().Acquire(s.ctx, lock.Acquire{Locks: lock.One(s.name), Holder: "h"})
	s.must(err)
	if g.TTL != lock.DefaultTTL || g.Mode != lock.Exclusive || g.Grace != 0 || g.MaxHold != 0 || g.Metadata != nil || g.ID == (lock.LeaseID{}) {
		s.Errorf("the lease is %+v, want the defaults", g.Lease)
	}
	s.must(s.release(g))
}

func leaseLargestValues(s *fixture) {
	name := s.name + strings.Repeat("x", lock.MaxNameLength-len(s.name))
	holder := strings.Repeat("🐎", lock.MaxHolderLength)
	metadata := []byte(`{"a":"` + strings.Repeat("<", lock.MaxMetadataSize-8) + `"}`)
	g := s.mustAcquire(lock.Acquire{
		Locks: lock.One(name), Holder: holder, TTL: lock.MaxTTL, Grace: lock.MaxGrace, MaxHold: lock.MaxHold, Metadata: metadata,
	})
	if g.Name != name || g.Holder != holder || !sameJSON(g.Metadata, metadata) {
		s.Error("the lease tells of something else than was asked for")
	}
	s.must(s.release(g))
}

func leaseRefused(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Holder: "first", Grace: time.Second})
	e := s.expectError(errOf(s.acquire(lock.Acquire{Holder: "second"})), lock.ErrHeld)
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

func leaseReplayed(s *fixture) {
	a := lock.Acquire{LeaseID: newID(), Metadata: []byte(`{"a":1}`), Grace: time.Second, MaxHold: time.Hour}
	first := s.mustAcquire(a)
	latest := time.Now().Add(longTTL + tolerance) // the first Until may be earlier by more than its call took
	again := s.mustAcquire(a)
	same := cmp.Options{cmpopts.IgnoreFields(lock.Lease{}, "Metadata"), cmpopts.EquateApproxTime(time.Millisecond)}
	if diff := cmp.Diff(first.Lease, again.Lease, same); diff != "" || !again.Replayed || !sameJSON(first.Metadata, again.Metadata) {
		s.Errorf("the leases differ, replayed %t, metadata %s (-first +again):\n%s", again.Replayed, again.Metadata, diff)
	}
	if again.Until.After(latest) {
		s.Errorf("the replay's Until is %v later than the lease can last", again.Until.Sub(latest))
	}
	if l := s.get(s.name); l.Revision != 1 {
		s.Errorf("the lock changed hands %d times, want once", l.Revision)
	}
}

func leaseIDInUse(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Holder: "first"})
	s.expectError(errOf(s.acquire(lock.Acquire{LeaseID: g.ID, Holder: "second"})), lock.ErrLeaseIDInUse)
	if l := s.get(s.name); l.Revision != 1 || l.Leases[0].Holder != "first" {
		s.Errorf("the refusal changed the lock: %+v", l)
	}
}

func leaseRenewed(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Metadata: []byte(`{"a":1}`)})
	before := time.Now()
	r, err := s.renew(g, 2*longTTL)
	s.must(err)
	after := time.Now()
	if r.Token != g.Token || r.ID != g.ID || r.Holder != g.Holder || !isNear(r.AcquiredAt, g.AcquiredAt) || !sameJSON(r.Metadata, g.Metadata) || r.Replayed {
		s.Errorf("the renewal changed the lease from %+v to %+v", g.Lease, r.Lease)
	}
	if moved := r.ExpiresAt.Sub(g.ExpiresAt); moved < longTTL-time.Millisecond {
		s.Errorf("the end moved by %v, want at least %v", moved, longTTL)
	}
	if took := after.Sub(before); r.Until.After(after.Add(2*longTTL)) || r.Until.Before(before.Add(2*longTTL-took-tolerance)) {
		s.Errorf("Until is %v after the call, which took %v, want about %v", r.Until.Sub(before), took, 2*longTTL)
	}
	again, err := s.renew(g, 0)
	s.must(err)
	if l := s.get(s.name); again.TTL != 2*longTTL || l.Revision != 1 || !isNear(l.Leases[0].ExpiresAt, again.ExpiresAt) {
		s.Errorf("after another renewal the lease is %+v, and the lock %+v", again.Lease, l)
	}
}

func leaseMetadata(s *fixture) {
	readers := s.mustAcquireReaders(2)
	g, want := readers[1], json.RawMessage(`{"at":"b"}`)
	for _, m := range []json.RawMessage{want, want, nil} { // the same, and none, change nothing
		r, err := s.locks().Renew(s.ctx, lock.Renew{Locks: []string{g.Name}, LeaseID: g.ID, Metadata: m})
		s.must(err)
		if !sameJSON(r.Metadata, want) || r.Token != g.Token {
			s.Errorf("the lease is %+v", r.Lease)
		}
	}
	for _, h := range s.get(s.name).Leases {
		if mine := h.Slot == g.Slot; mine && !sameJSON(h.Metadata, want) || !mine && h.Metadata != nil {
			s.Errorf("slot %d shows %s", h.Slot, h.Metadata)
		}
	}
	events := s.events(s.name, 3)
	s.expectNoGaps(events)
	if e := events[2]; e.Kind != lock.MetadataUpdated || e.Token != g.Token || e.Holder != g.Holder || e.Slot != g.Slot || e.Mode != g.Mode {
		s.Errorf("the update has the event %+v", e)
	}
}

func leaseReleased(s *fixture) {
	first := s.acquireAndRelease(lock.Acquire{})
	s.must(s.release(first))
	if l := s.get(s.name); l.State != lock.Free || len(l.Leases) != 0 || l.Token != first.Token || l.Revision != 2 {
		s.Errorf("after the release the lock is %+v", l)
	}
	if next := s.mustAcquire(lock.Acquire{Holder: "second"}); next.Token <= first.Token {
		s.Errorf("token %d was granted after %d", next.Token, first.Token)
	}
}

func leaseUnknown(s *fixture) {
	g, other := s.mustAcquire(lock.Acquire{}), s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1))})
	for _, wrong := range []lock.Lease{{Name: s.name, ID: newID()}, {Name: s.name, ID: other.ID}, {Name: s.other(2), ID: g.ID}} {
		s.expectLost(errOf(s.renew(lock.Grant{Lease: wrong}, 0)), 0)
		s.expectLost(s.release(lock.Grant{Lease: wrong}), 0)
	}
	s.must(errOf(s.renew(g, 0)))
	if l := s.get(s.other(2)); l.Revision != 0 || l.State != lock.Free {
		s.Errorf("the refusal changed the lock: %+v", l)
	}
}

// leaseLost asks for leases that have ended, while the lock is free, while another lease is active, and later.
func leaseLost(s *fixture) {
	ended := map[lock.Kind]lock.Grant{lock.Released: s.acquireAndRelease(lock.Acquire{})}
	expired := s.mustAcquire(lock.Acquire{TTL: shortTTL, Grace: shortTTL})
	if l := s.awaitState(s.name, lock.Free); len(l.Leases) != 0 || l.AsOf.Before(expired.EndsAt().Add(-time.Millisecond)) {
		s.Errorf("after %+v the lock is %+v", expired.Lease, l)
	}
	ended[lock.Expired] = expired
	s.expectAllLost(ended)
	ended[lock.Revoked] = s.mustAcquire(lock.Acquire{})
	s.mustRevoke(ended[lock.Revoked])
	s.expectAllLost(ended)
	next := s.mustAcquire(lock.Acquire{Holder: "next"})
	s.expectAllLost(ended)
	s.expectHolders("next")
	s.must(s.release(next))
	for range 3 {
		s.acquireAndRelease(lock.Acquire{Holder: "later"})
	}
	s.expectAllLost(ended)
}

// expectAllLost ends the test unless the leases are lost to a renewal, a release and a repeated acquire, but for the
// repeated release, which succeeds.
func (s *fixture) expectAllLost(ended map[lock.Kind]lock.Grant) {
	s.Helper()
	for how, g := range ended {
		errs := []error{errOf(s.renew(g, longTTL)), errOf(s.acquire(lock.Acquire{LeaseID: g.ID})), s.release(g)}
		if how == lock.Released {
			s.must(errs[2])
			errs = errs[:2]
		}
		for _, err := range errs {
			if e := s.expectLost(err, how); e.Token != g.Token || (e.Reason == testReason) != (how == lock.Revoked) {
				s.Errorf("the lease that ended as %v with token %d is refused with %+v", how, g.Token, e)
			}
		}
	}
}

func leaseInGrace(s *fixture) {
	g := s.mustAcquire(lock.Acquire{TTL: shortTTL, Grace: lock.MaxGrace})
	l := s.awaitState(s.name, lock.InGrace)
	if len(l.Leases) != 1 || l.Leases[0].Remaining != 0 || l.Leases[0].Token != g.Token || l.Leases[0].Grace != lock.MaxGrace {
		s.Errorf("the lock is %+v", l)
	}
	if v := s.verify(s.name, g.Token); v.Status != lock.Current || v.Remaining != 0 {
		s.Errorf("the verification is %+v, want current with nothing left", v)
	}
	again := s.mustAcquire(lock.Acquire{LeaseID: g.ID})
	if left := time.Until(again.Until); !again.Replayed || !isNear(again.ExpiresAt, g.ExpiresAt) || left > tolerance {
		s.Errorf("the replay is %+v, and valid for %v", again, left)
	}
	e := s.expectError(errOf(s.acquire(lock.Acquire{Holder: "second"})), lock.ErrHeld)
	if e.Holder != "first" || e.Newest != g.Token || e.RetryAfter <= 0 || e.RetryAfter > lock.MaxGrace {
		s.Errorf("the refusal is %+v", e)
	}
	r, err := s.renew(g, longTTL)
	s.must(err)
	if l := s.get(s.name); r.Token != g.Token || l.State != lock.Held || l.Revision != 1 {
		s.Errorf("after the renewal the lock is %+v", l)
	}
}

// leaseNotTakenEarly retries an acquire while another lease is active or in its grace.
func leaseNotTakenEarly(s *fixture) {
	first := s.mustAcquire(lock.Acquire{TTL: 3 * shortTTL, Grace: 3 * shortTTL})
	s.eventually("the second holder is granted the lock", func() bool {
		second, err := s.acquire(lock.Acquire{Holder: "second"})
		if err != nil {
			s.expectError(err, lock.ErrHeld)
			return false
		}
		if second.AcquiredAt.Before(first.EndsAt().Add(-time.Millisecond)) {
			s.Errorf("the lock was granted %v before the grace's end", first.EndsAt().Sub(second.AcquiredAt))
		}
		return true
	})
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}
