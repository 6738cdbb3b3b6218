package locktest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-lock/paddock/lock"
)

func replayCases() cases {
	return cases{
		"the same lease_id returns the same lease":                      replaySame,
		"a replay does not extend the lease":                            replayProlongs,
		"a replay with other options changes nothing":                   replayOtherOptions,
		"a replay of a renewed lease returns the new expiry":            replayRenewed,
		"another holder with the same lease_id is refused":              replayOther,
		"a released lease_id is never granted again":                    replayReleased,
		"an expired lease_id is never granted again":                    replayExpired,
		"a revoked lease_id is never granted again":                     replayRevoked,
		"an ended lease_id is lost while another client holds the lock": replayWhileHeld,
	}
}

func replaySame(s *fixture) {
	a := lock.Acquire{LeaseID: newID(), Metadata: []byte(`{"a":1}`), Grace: time.Second, MaxHold: time.Hour}
	first := s.mustAcquire(a)
	again := s.mustAcquire(a)
	if !again.Replayed {
		s.Error("the second acquire does not say that it is a replay")
	}
	same := cmp.Options{cmpopts.IgnoreFields(lock.Lease{}, "Metadata"), cmpopts.EquateApproxTime(time.Millisecond)}
	if diff := cmp.Diff(first.Lease, again.Lease, same); diff != "" {
		s.Errorf("the leases differ (-first +again):\n%s", diff)
	}
	if !sameJSON(first.Metadata, again.Metadata) {
		s.Errorf("the metadata became %s", again.Metadata)
	}
	if l := s.get(s.name); l.Revision != 1 {
		s.Errorf("the lock changed hands %d times, want once", l.Revision)
	}
}

func replayProlongs(s *fixture) {
	a := lock.Acquire{LeaseID: newID()}
	first := s.mustAcquire(a)
	latest := time.Now().Add(longTTL + tolerance) // the first Until may be earlier by more than its call took
	again := s.mustAcquire(a)
	if again.Until.After(latest) {
		s.Errorf("the replay's Until is %v later than the lease can last", again.Until.Sub(latest))
	}
	if !isNear(first.ExpiresAt, again.ExpiresAt) {
		s.Errorf("the replay moved the end by %v", again.ExpiresAt.Sub(first.ExpiresAt))
	}
}

func replayOtherOptions(s *fixture) {
	id := newID()
	first := s.mustAcquire(lock.Acquire{LeaseID: id})
	again := s.mustAcquire(
		lock.Acquire{LeaseID: id, TTL: 2 * longTTL, Grace: time.Second, MaxHold: longTTL, Metadata: []byte(`{}`)},
	)
	if again.TTL != longTTL || again.Grace != 0 || again.MaxHold != 0 || again.Metadata != nil {
		s.Errorf("the lease became %+v", again.Lease)
	}
	if again.Token != first.Token || !isNear(again.ExpiresAt, first.ExpiresAt) {
		s.Error("the replay changed the lease's token or its end")
	}
}

func replayRenewed(s *fixture) {
	a := lock.Acquire{LeaseID: newID()}
	s.mustAcquire(a)
	renewed, err := s.locks.Renew(s.ctx, lock.Renew{Name: s.name, LeaseID: a.LeaseID, TTL: 2 * longTTL})
	s.must(err)
	again := s.mustAcquire(a)
	if !isNear(again.ExpiresAt, renewed.ExpiresAt) || again.TTL != 2*longTTL {
		s.Errorf("the replay returns the expiry %v and the TTL %v, want %v and %v",
			again.ExpiresAt, again.TTL, renewed.ExpiresAt, 2*longTTL)
	}
}

func replayOther(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Holder: "first"})
	_, err := s.acquire(lock.Acquire{LeaseID: g.ID, Holder: "second"})
	s.expectError(err, lock.ErrLeaseIDInUse)
	if l := s.get(s.name); l.Revision != 1 || l.Leases[0].Holder != "first" {
		s.Errorf("the refusal changed the lock: %+v", l)
	}
}

func replayReleased(s *fixture) {
	g := s.acquireAndRelease(lock.Acquire{})
	_, err := s.acquire(lock.Acquire{LeaseID: g.ID})
	if e := s.expectLost(err, lock.Released); e.Token != g.Token {
		s.Errorf("the refusal names token %d, want %d", e.Token, g.Token)
	}
}

func replayExpired(s *fixture) {
	g := s.acquireAndExpire(lock.Acquire{})
	_, err := s.acquire(lock.Acquire{LeaseID: g.ID})
	s.expectLost(err, lock.Expired)
	_, err = s.acquire(lock.Acquire{LeaseID: g.ID})
	s.expectLost(err, lock.Expired)
}

func replayRevoked(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.mustRevoke(g)
	_, err := s.acquire(lock.Acquire{LeaseID: g.ID})
	if e := s.expectLost(err, lock.Revoked); e.Reason != testReason {
		s.Errorf("the reason is %q, want %q", e.Reason, testReason)
	}
}

func replayWhileHeld(s *fixture) {
	first := s.acquireAndExpire(lock.Acquire{})
	s.mustAcquire(lock.Acquire{Holder: "second"})
	_, err := s.acquire(lock.Acquire{LeaseID: first.ID})
	s.expectLost(err, lock.Expired)
}
