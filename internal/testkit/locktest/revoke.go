package locktest

import (
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const testReason = "host <db-3> is being replaced & cleaned"

func revokeCases() cases {
	return cases{
		"a revoked lock is free at once":                 revokeFrees,
		"the former holder is refused with the reason":   revokeTells,
		"a repeated revocation succeeds":                 revokeAgain,
		"a token that does not hold the lock is refused": revokeWrong,
		"a free lock cannot be revoked":                  revokeFree,
		"a revocation never affects the next holder":     revokeNext,
		"the token of another lock is refused":           revokeElsewhere,

		"a revoked lease blocks other clients for its grace":               revokeGrace,
		"a revocation can skip the grace":                                  revokeSkippingGrace,
		"a second revocation can skip the rest of the grace":               revokeSkippingGraceLater,
		"a revoked lease is refused during its grace and after":            revokeRefuses,
		"a revoked lease is shown during its grace":                        revokeShows,
		"a revoked reader blocks writers but not readers":                  revokeReader,
		"a reader after a revocation of all readers has a new token":       revokePhase,
		"a revoked permit keeps its slot during its grace":                 revokePermit,
		"a waiter is granted the lock when the grace of a revocation ends": revokeWaiters,
		"a watch sees the end of the grace of a revocation":                revokeWatched,
		"a watch sees that the grace of a revocation is skipped":           revokeSkippedWatched,
	}
}

func (s *fixture) revoke(token lock.Token) (lock.Lock, error) {
	return s.locks.Revoke(s.ctx, lock.Revoke{Name: s.name, Token: token, Reason: testReason})
}

func (s *fixture) mustRevoke(g lock.Grant) lock.Lock {
	s.Helper()
	l, err := s.revoke(g.Token)
	s.must(err)
	return l
}

func revokeFrees(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	l := s.mustRevoke(g)
	if l.Name != s.name || l.State != lock.Free || len(l.Leases) != 0 || l.Token != g.Token || l.Revision != 2 ||
		l.AsOf.IsZero() {
		s.Errorf("the revocation answers with %+v", l)
	}
	if next := s.mustAcquire(lock.Acquire{Holder: "second"}); next.Token <= g.Token {
		s.Errorf("token %d was granted after %d", next.Token, g.Token)
	}
}

func revokeTells(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.mustRevoke(g)
	for range 2 {
		_, err := s.renew(g, 0)
		if e := s.expectLost(err, lock.Revoked); e.Reason != testReason || e.Token != g.Token {
			s.Errorf("the refusal says token %d and %q, want %d and %q", e.Token, e.Reason, g.Token, testReason)
		}
		s.acquireAndRelease(lock.Acquire{Holder: "later"})
	}
}

func revokeAgain(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.mustRevoke(g)
	if l := s.mustRevoke(g); l.State != lock.Free || l.Revision != 2 {
		s.Errorf("the second revocation answers with %+v", l)
	}
}

func revokeWrong(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for _, wrong := range []lock.Token{g.Token + 1, lock.MaxToken} {
		_, err := s.revoke(wrong)
		if e := s.expectError(err, lock.ErrTokenMismatch); e.Token != wrong || e.Newest != g.Token {
			s.Errorf("the refusal names %d and %d, want %d and %d", e.Token, e.Newest, wrong, g.Token)
		}
	}
	_, err := s.renew(g, 0)
	s.must(err)
}

func revokeFree(s *fixture) {
	_, err := s.revoke(1)
	if e := s.expectError(err, lock.ErrTokenMismatch); e.Newest != 0 {
		s.Errorf("an unused lock has the newest token %d", e.Newest)
	}
	g := s.acquireAndRelease(lock.Acquire{})
	_, err = s.revoke(g.Token)
	if e := s.expectError(err, lock.ErrTokenMismatch); e.Newest != g.Token {
		s.Errorf("the refusal names the newest token %d, want %d", e.Newest, g.Token)
	}
	expired := s.acquireAndExpire(lock.Acquire{})
	_, err = s.revoke(expired.Token)
	s.expectError(err, lock.ErrTokenMismatch)
}

func revokeNext(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	s.mustRevoke(first)
	second := s.mustAcquire(lock.Acquire{Holder: "second"})
	_, err := s.revoke(first.Token)
	s.expectError(err, lock.ErrTokenMismatch)
	_, err = s.renew(second, 0)
	s.must(err)
}

func revokeElsewhere(s *fixture) {
	other := s.mustAcquire(lock.Acquire{Name: s.name + ":other"})
	s.mustAcquire(lock.Acquire{})
	_, err := s.revoke(other.Token)
	s.expectError(err, lock.ErrTokenMismatch)
	_, err = s.renew(other, 0)
	s.must(err)
}

// longGrace is a grace that outlives the test.
const longGrace = lock.MaxGrace

// acquireAndRevoke acquires with the defaults of complete, and revokes the lease.
func (s *fixture) acquireAndRevoke(a lock.Acquire) lock.Grant {
	s.Helper()
	g := s.mustAcquire(a)
	s.mustRevoke(g)
	return g
}

// mustSkipGrace revokes the lease and skips its grace.
func (s *fixture) mustSkipGrace(g lock.Grant) lock.Lock {
	s.Helper()
	l, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: g.Name, Token: g.Token, Reason: testReason, SkipGrace: true})
	s.must(err)
	return l
}

func revokeGrace(s *fixture) {
	const grace = 5 * shortTTL
	g := s.acquireAndRevoke(lock.Acquire{Grace: grace})
	at := s.events(s.name, 2)[1].At
	s.eventually("the second holder is granted the lock", func() bool {
		second, err := s.acquire(lock.Acquire{Holder: "second"})
		if err != nil {
			if e := s.expectError(err, lock.ErrHeld); e.Holder != "first" || e.Newest != g.Token ||
				e.RetryAfter > grace {
				s.Errorf("the refusal is %+v", e)
			}
			return false
		}
		if early := at.Add(grace).Sub(second.AcquiredAt); early > time.Millisecond {
			s.Errorf("the lock was granted %v before the grace's end", early)
		}
		if second.Token <= g.Token {
			s.Errorf("token %d was granted after %d", second.Token, g.Token)
		}
		return true
	})
	s.events(s.name, 3)
}

func revokeSkippingGrace(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Grace: longGrace})
	if l := s.mustSkipGrace(g); l.State != lock.Free || len(l.Leases) != 0 {
		s.Errorf("the revocation answers with %+v", l)
	}
	s.mustAcquire(lock.Acquire{Holder: "second"})
	s.events(s.name, 3)
}

func revokeSkippingGraceLater(s *fixture) {
	g := s.acquireAndRevoke(lock.Acquire{Grace: longGrace})
	s.mustRevoke(g)
	if l := s.mustSkipGrace(g); l.State != lock.Free || len(l.Leases) != 0 {
		s.Errorf("the revocation answers with %+v", l)
	}
	s.mustSkipGrace(g)
	events := s.events(s.name, 3)
	if e := events[2]; e.Kind != lock.Revoked || e.Token != g.Token || e.Reason != testReason {
		s.Errorf("skipping the grace has the event %+v", e)
	}
	_, err := s.renew(g, 0)
	if e := s.expectLost(err, lock.Revoked); !isNear(e.EndedAt, events[1].At) {
		s.Errorf("the error says the lease ended at %v, not at %v", e.EndedAt, events[1].At)
	}
	s.mustAcquire(lock.Acquire{Holder: "second"})
}

func revokeRefuses(s *fixture) {
	for _, grace := range []time.Duration{longGrace, shortTTL} {
		request := s.complete(lock.Acquire{Name: fmt.Sprintf("%s:%d", s.name, grace), Grace: grace})
		g := s.mustAcquire(request)
		_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: g.Name, Token: g.Token, Reason: testReason})
		s.must(err)
		for range 2 {
			_, renewed := s.renew(g, longTTL)
			_, again := s.acquire(request)
			waiting := request
			waiting.Wait = lock.MaxWait
			_, waited := s.acquire(waiting)
			for _, err := range []error{renewed, again, waited, s.release(g)} {
				if e := s.expectLost(err, lock.Revoked); e.Reason != testReason || e.Token != g.Token {
					s.Errorf(
						"the refusal says token %d and %q, want %d and %q",
						e.Token,
						e.Reason,
						g.Token,
						testReason,
					)
				}
			}
			if v := s.verify(g.Name, g.Token); v.Status != lock.Ended || v.Remaining != 0 {
				s.Errorf("the verification is %+v", v)
			}
			if grace == shortTTL {
				s.awaitState(g.Name, lock.Free)
			}
		}
	}
}

func revokeShows(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Grace: longGrace})
	answered := s.mustRevoke(g)
	page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name, State: lock.InGrace})
	s.must(err)
	for _, l := range append(page.Items, answered, s.get(s.name)) {
		if l.State != lock.InGrace || len(l.Leases) != 1 || l.Token != g.Token || l.Revision != 2 {
			s.Fatalf("the lock is %+v", l)
		}
		h := l.Leases[0]
		if !h.Revoked || h.Remaining != 0 || h.Grace != longGrace || h.Holder != "first" ||
			!isNear(h.ExpiresAt, l.ChangedAt) {
			s.Errorf("the lease is shown as %+v", h)
		}
	}
	if len(page.Items) != 1 {
		s.Errorf("%d locks are listed in their grace", len(page.Items))
	}
}

func revokeReader(s *fixture) {
	first := s.mustAcquire(lock.Acquire{Mode: lock.Shared, Grace: longGrace})
	second := s.mustAcquire(lock.Acquire{Mode: lock.Shared, Holder: "second"})
	_, err := s.locks.Revoke(
		s.ctx,
		lock.Revoke{Name: s.name, Token: first.Token, Slot: &first.Slot, Reason: testReason},
	)
	s.must(err)
	if third := s.acquireAndRelease(lock.Acquire{Mode: lock.Shared, Holder: "third"}); third.Token != first.Token ||
		third.Slot == first.Slot {
		s.Errorf("after %+v the next reader was granted %+v", first, third)
	}
	_, err = s.renew(second, 0)
	s.must(err)
	s.must(s.release(second))
	_, err = s.acquire(lock.Acquire{Holder: "writer"})
	s.expectError(err, lock.ErrHeld)
	s.mustSkipGrace(first)
	s.mustAcquire(lock.Acquire{Holder: "writer"})
}

func revokePhase(s *fixture) {
	first := s.acquireAndRevoke(lock.Acquire{Mode: lock.Shared, Grace: longGrace})
	next := s.mustAcquire(lock.Acquire{Mode: lock.Shared, Holder: "next"})
	if next.Token <= first.Token {
		s.Errorf("after token %d was revoked the next reader was granted token %d", first.Token, next.Token)
	}
	s.mustRevoke(first)
	s.mustSkipGrace(first)
	_, err := s.renew(next, 0)
	s.must(err)
}

func revokePermit(s *fixture) {
	permit := lock.Acquire{Mode: lock.Permit, Capacity: 2, Grace: longGrace}
	first := s.acquireAndRevoke(permit)
	second := permit
	second.Holder = "second"
	other := s.mustAcquire(second)
	if other.Slot == first.Slot {
		s.Errorf("the slot %d of the revoked permit was taken", first.Slot)
	}
	_, err := s.acquire(second)
	s.expectError(err, lock.ErrHeld)
	s.mustSkipGrace(first)
	if third := s.mustAcquire(second); third.Slot != first.Slot {
		s.Errorf("slot %d was granted, and %d is free", third.Slot, first.Slot)
	}
	_, err = s.renew(other, 0)
	s.must(err)
}

func revokeWaiters(s *fixture) {
	const grace = 5 * shortTTL
	first := s.mustAcquire(lock.Acquire{Grace: grace})
	second := s.enqueue(lock.Acquire{Holder: "second"})
	s.enqueue(lock.Acquire{Holder: "third"})
	if l := s.mustRevoke(first); len(l.Leases) != 1 || l.Leases[0].Holder != "first" || l.Waiters != 2 {
		s.Errorf("the revocation answers with %+v", l)
	}
	g := second.mustBeGranted()
	if early := s.events(s.name, 5)[3].At.Add(grace).Sub(g.AcquiredAt); early > time.Millisecond {
		s.Errorf("the waiter was granted the lock %v before the grace's end", early)
	}
	s.expectHolders("second")
	s.expectQueue("third")
}

func revokeWatched(s *fixture) {
	s.acquireAndRevoke(lock.Acquire{Grace: 10 * shortTTL})
	seen := s.get(s.name)
	if l := s.awaitWatch(s.startWatch(seen)); l.State != lock.Free || l.Revision != seen.Revision {
		s.Errorf("after %+v the watch saw %+v", seen, l)
	}
}

func revokeSkippedWatched(s *fixture) {
	g := s.acquireAndRevoke(lock.Acquire{Grace: longGrace})
	seen := s.startWatch(s.get(s.name))
	s.mustSkipGrace(g)
	if l := s.awaitWatch(seen); l.State != lock.Free || len(l.Leases) != 0 {
		s.Errorf("the watch saw %+v", l)
	}
}
