package locktest

import (
	"encoding/json"
	"fmt"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func permitCases() cases {
	return cases{
		"the capacity limits the permits":                                 permitCapacity,
		"each permit has its own slot and token":                          permitApart,
		"a free slot is reused":                                           permitSlots,
		"another capacity is refused while a permit is held":              permitMismatch,
		"another capacity is refused while a permit waits":                permitMismatchWaiting,
		"permits and other modes exclude each other":                      permitExclude,
		"a waiter is granted a released permit":                           permitWait,
		"no permit passes an exclusive waiter":                            permitBehindExclusive,
		"an acquire of a permit is replayed":                              permitReplay,
		"each of several permits is renewed, released and lost by itself": permitEach,
		"a revocation ends the permit with the token":                     permitRevoke,
		"permits are listed by holder and state":                          permitList,
		"a resource for each slot accepts the permit's token":             permitFence,
	}
}

const threePermits = 3

// acquirePermit acquires one of three permits.
func (s *fixture) acquirePermit(holder string) (lock.Grant, error) {
	return s.acquire(lock.Acquire{Holder: holder, Mode: lock.Permit, Capacity: threePermits})
}

// mustAcquirePermits acquires n of three permits with the holders "1", "2" and so on.
func (s *fixture) mustAcquirePermits(n int) []lock.Grant {
	s.Helper()
	var grants []lock.Grant
	for i := range n {
		g, err := s.acquirePermit(fmt.Sprint(i + 1))
		s.must(err)
		if g.Mode != lock.Permit || g.Slot < 1 || g.Slot > threePermits {
			s.Fatalf("a permit was granted as %+v", g)
		}
		grants = append(grants, g)
	}
	return grants
}

func permitCapacity(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	_, err := s.acquirePermit("4")
	if e := s.expectError(err, lock.ErrHeld); e.Ahead != 0 || e.RetryAfter <= 0 {
		s.Errorf("the refusal is %+v", e)
	}
	l := s.expectHolders("1", "2", "3")
	if l.Capacity != threePermits || l.State != lock.Held || l.Token != g[2].Token {
		s.Errorf("the lock is %+v", l)
	}
	for _, one := range g {
		s.must(s.release(one))
	}
	if l := s.expectHolders(); l.Capacity != 0 || l.State != lock.Free {
		s.Errorf("after all releases the lock is %+v", l)
	}
	s.verifyHistory(s.name, verify.Rules{Capacity: threePermits})
}

func permitApart(s *fixture) {
	slots, last := map[int]bool{}, lock.Token(0)
	for _, g := range s.mustAcquirePermits(threePermits) {
		if g.Token <= last || slots[g.Slot] {
			s.Errorf("after token %d and the slots %v a permit is %+v", last, slots, g)
		}
		slots[g.Slot], last = true, g.Token
	}
}

func permitSlots(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	s.must(s.release(g[1]))
	next, err := s.acquirePermit("next")
	s.must(err)
	if next.Slot != g[1].Slot || next.Token <= g[2].Token {
		s.Errorf("after the release of %+v the next is %+v", g[1], next)
	}
	s.verifyHistory(s.name, verify.Rules{Capacity: threePermits})
}

func permitMismatch(s *fixture) {
	g := s.mustAcquirePermits(1)
	for _, wrong := range []int{1, 2, 4, lock.MaxHolders} {
		_, err := s.acquire(lock.Acquire{Mode: lock.Permit, Capacity: wrong, Wait: lock.MaxWait})
		if e := s.expectError(err, lock.ErrCapacityMismatch); e.Capacity != threePermits {
			s.Errorf("the refusal of %d names the capacity %d", wrong, e.Capacity)
		}
	}
	s.must(s.release(g[0]))
	s.acquireAndRelease(lock.Acquire{Mode: lock.Permit, Capacity: 1})
	s.mustAcquire(lock.Acquire{Mode: lock.Permit, Capacity: lock.MaxHolders})
}

func permitMismatchWaiting(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueue(lock.Acquire{Holder: "waiter", Mode: lock.Permit, Capacity: threePermits})
	_, err := s.acquire(lock.Acquire{Mode: lock.Permit, Capacity: 2, Wait: lock.MaxWait})
	if e := s.expectError(err, lock.ErrCapacityMismatch); e.Capacity != threePermits {
		s.Errorf("the refusal names the capacity %d", e.Capacity)
	}
	s.must(s.release(first))
	w.mustBeGranted()
}

func permitExclude(s *fixture) {
	g := s.mustAcquirePermits(1)
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		_, err := s.acquire(lock.Acquire{Mode: mode})
		s.expectError(err, lock.ErrHeld)
	}
	s.must(s.release(g[0]))
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		other := s.mustAcquire(lock.Acquire{Mode: mode})
		_, err := s.acquirePermit("refused")
		s.expectError(err, lock.ErrHeld)
		s.must(s.release(other))
	}
	s.verifyHistory(s.name, verify.Rules{Capacity: threePermits})
}

func permitWait(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	var waiting []*waitingCall
	for i := range 3 {
		waiting = append(
			waiting,
			s.enqueue(lock.Acquire{Holder: fmt.Sprint("waiter ", i), Mode: lock.Permit, Capacity: threePermits}),
		)
	}
	for i, w := range waiting {
		s.must(s.release(g[2-i]))
		if next := w.mustBeGranted(); next.Slot != g[2-i].Slot {
			s.Errorf("slot %d was released and slot %d was granted", g[2-i].Slot, next.Slot)
		}
	}
	s.expectHolders("waiter 0", "waiter 1", "waiter 2")
	s.verifyHistory(s.name, verify.Rules{Capacity: threePermits})
}

func permitBehindExclusive(s *fixture) {
	g := s.mustAcquirePermits(2)
	writer := s.enqueue(lock.Acquire{Holder: "exclusive"})
	_, err := s.acquirePermit("not waiting")
	s.expectError(err, lock.ErrHeld)
	behind := s.enqueue(lock.Acquire{Holder: "behind", Mode: lock.Permit, Capacity: threePermits})
	s.must(s.release(g[0]))
	s.expectHolders("2")
	s.must(s.release(g[1]))
	s.expectHolders("exclusive")
	s.must(s.release(writer.mustBeGranted()))
	behind.mustBeGranted()
	s.verifyHistory(s.name, verify.Rules{Capacity: threePermits})
}

func permitReplay(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	for i, one := range g {
		again := s.mustAcquire(
			lock.Acquire{Holder: fmt.Sprint(i + 1), Mode: lock.Permit, Capacity: threePermits, LeaseID: one.ID},
		)
		if !again.Replayed || again.Slot != one.Slot || again.Token != one.Token ||
			!isNear(again.ExpiresAt, one.ExpiresAt) {
			s.Errorf("the permit %+v was replayed as %+v", one, again)
		}
	}
	s.expectHolders("1", "2", "3")
}

func permitEach(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	r, err := s.renew(g[1], 2*longTTL)
	s.must(err)
	if r.Slot != g[1].Slot || r.Token != g[1].Token || r.ExpiresAt.Before(g[1].ExpiresAt.Add(longTTL-tolerance)) {
		s.Errorf("the permit %+v was renewed as %+v", g[1], r)
	}
	s.must(s.release(g[0]))
	s.must(s.release(g[0]))
	s.expectHolders("2", "3")
	_, err = s.renew(g[0], 0)
	if e := s.expectLost(err, lock.Released); e.Token != g[0].Token {
		s.Errorf("the refusal names token %d, want %d", e.Token, g[0].Token)
	}
	_, err = s.renew(g[2], 0)
	s.must(err)
}

func permitRevoke(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	l := s.mustRevoke(g[1])
	if len(l.Leases) != 2 || l.State != lock.Held || l.Capacity != threePermits {
		s.Errorf("the revocation answers with %+v", l)
	}
	s.expectHolders("1", "3")
	_, err := s.renew(g[1], 0)
	s.expectLost(err, lock.Revoked)
	for _, one := range []lock.Grant{g[0], g[2]} {
		_, err := s.renew(one, 0)
		s.must(err)
	}
	_, err = s.locks.Revoke(s.ctx, lock.Revoke{Name: s.name, Token: g[0].Token, Slot: &g[2].Slot, Reason: testReason})
	s.expectError(err, lock.ErrTokenMismatch)
}

func permitList(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	s.must(s.release(g[1]))
	for holder, want := range map[string]int{"1": 1, "2": 0, "3": 1} {
		page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name, Holder: holder, State: lock.Held})
		s.must(err)
		if len(page.Items) != want ||
			want == 1 && (len(page.Items[0].Leases) != 2 || page.Items[0].Capacity != threePermits) {
			s.Errorf("the locks of %s are %+v", holder, page.Items)
		}
	}
}

func permitFence(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	write := func(i int, slot int) error {
		_, err := s.locks.WriteFenced(s.ctx, lock.FencedWrite{
			Key: fmt.Sprintf(
				"%s:%d",
				s.name,
				slot,
			), Lock: s.name, Token: g[i].Token, Slot: slot, Value: json.RawMessage(`1`)})
		return err
	}
	for i, one := range g {
		s.must(write(i, one.Slot))
		v, err := s.locks.VerifyToken(s.ctx, lock.Verify{Name: s.name, Token: one.Token, Slot: &one.Slot})
		s.must(err)
		if v.Status != lock.Current {
			s.Errorf("the verification of %+v is %+v", one, v)
		}
	}
	s.expectStale(write(0, g[1].Slot), g[0].Token, g[1].Token)
	s.expectError(write(2, g[0].Slot), lock.ErrUnknownToken)
	s.must(s.release(g[0]))
	s.expectError(write(0, g[0].Slot), lock.ErrStaleToken)
	next, err := s.acquirePermit("next")
	s.must(err)
	s.expectStale(write(0, next.Slot), g[0].Token, next.Token)
	s.must(write(1, g[1].Slot))
}
