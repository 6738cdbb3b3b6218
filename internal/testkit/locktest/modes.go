package locktest

import (
	"encoding/json"
	"fmt"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func modeCases() cases {
	return cases{
		"readers hold the lock together with one token":       readersTogether,
		"a revocation with a slot ends one reader":            readerRevoked,
		"readers are listed by holder and state":              readersListed,
		"the capacity limits the permits":                     permitCapacity,
		"another capacity is refused":                         permitMismatch,
		"a resource for each slot accepts the permit's token": permitFence,
		"several permits are one lease":                       permitsTogether,
		"several permits are waited for in turn":              permitsInTurn,
		"several permits expire together":                     permitsExpire,
		"each slot of several permits is fenced":              permitsFence,
	}
}

// mustAcquireReaders acquires n shared leases with the holders "1", "2" and so on.
func (s *fixture) mustAcquireReaders(n int) (grants []lock.Grant) {
	s.Helper()
	for i := range n {
		grants = append(grants, s.mustAcquire(lock.Acquire{Locks: s.as(lock.Shared), Holder: fmt.Sprint(i + 1)}))
	}
	return grants
}

const threePermits = 3

// acquirePermit acquires one of three permits.
func (s *fixture) acquirePermit(holder string) (lock.Grant, error) {
	return s.acquire(lock.Acquire{Locks: s.permit(threePermits), Holder: holder})
}

// mustAcquirePermits acquires n of three permits with the holders "1", "2" and so on.
func (s *fixture) mustAcquirePermits(n int) (grants []lock.Grant) {
	s.Helper()
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

func readersTogether(s *fixture) {
	slots := map[int]bool{}
	g := s.mustAcquireReaders(5)
	for _, r := range g {
		if slots[r.Slot] = true; r.Mode != lock.Shared || r.Slot < 1 || r.Token != g[0].Token {
			s.Errorf("beside %+v was granted %+v", g[0].Lease, r.Lease)
		}
	}
	l := s.expectHolders("1", "2", "3", "4", "5")
	if len(slots) != 5 || l.State != lock.Held || l.Token != g[0].Token || l.Revision != 5 || l.Capacity != 0 {
		s.Errorf("5 readers have the slots %v, and the lock is %+v", slots, l)
	}
	for _, h := range l.Leases {
		if h.Mode != lock.Shared || h.Token != g[0].Token || !slots[h.Slot] {
			s.Errorf("a reader is shown as %+v", h)
		}
	}
	s.verifyHistory(s.name, verify.Rules{})
}

func readerRevoked(s *fixture) {
	g := s.mustAcquireReaders(2)
	acquired := s.get(s.name).Leases[0].AcquiredAt
	if h := s.get(s.name).Leases[0]; h.Slot != g[0].Slot {
		acquired = s.get(s.name).Leases[1].AcquiredAt
	}
	wrong := g[0].Slot + g[1].Slot + 1
	for _, r := range []lock.Revoke{{Slot: &wrong}, {Slot: &g[0].Slot, AcquiredAt: acquired.Add(-1)}} {
		r.Name, r.Token, r.Reason = s.name, g[0].Token, testReason
		s.expectError(errOf(s.locks().Revoke(s.ctx, r)), lock.ErrTokenMismatch)
	}
	_, err := s.locks().Revoke(s.ctx, lock.Revoke{Name: s.name, Token: g[0].Token, Slot: &g[0].Slot, AcquiredAt: acquired, Reason: testReason})
	s.must(err)
	s.expectHolders("2")
	s.expectLost(errOf(s.renew(g[0], 0)), lock.Revoked)
	s.must(errOf(s.renew(g[1], 0)))
}

func readersListed(s *fixture) {
	s.mustAcquireReaders(2)
	s.mustAcquire(lock.Acquire{Locks: s.as(lock.Shared), Holder: "3", TTL: shortTTL, Grace: lock.MaxGrace})
	s.eventually("the third is in its grace", func() bool {
		for _, h := range s.get(s.name).Leases {
			if h.Holder == "3" && h.Remaining == 0 {
				return true
			}
		}
		return false
	})
	for _, holder := range []string{"1", "2", "3"} {
		page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name, Holder: holder, State: lock.Held})
		s.must(err)
		if len(page.Items) != 1 || len(page.Items[0].Leases) != 3 || page.Items[0].State != lock.Held {
			s.Errorf("the locks of %s are %+v, want the lock with its three readers", holder, page.Items)
		}
	}
	if got := s.names(paddock.LockQuery{Prefix: s.name, State: lock.InGrace}); len(got) != 0 {
		s.Errorf("the locks in grace are %v, want none: two leases are active", got)
	}
}

func permitCapacity(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	if e := s.expectError(errOf(s.acquirePermit("4")), lock.ErrHeld); e.Ahead != 0 || e.RetryAfter <= 0 {
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

func permitMismatch(s *fixture) {
	g := s.mustAcquirePermits(1)
	other := lock.Acquire{Locks: s.permit(2), Wait: lock.MaxWait}
	if e := s.expectError(errOf(s.acquire(other)), lock.ErrCapacityMismatch); e.Capacity != threePermits {
		s.Errorf("the refusal names the capacity %d", e.Capacity)
	}
	s.must(s.release(g[0]))
	s.mustAcquire(lock.Acquire{Locks: s.permit(lock.MaxHolders)})
}

func permitFence(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	write := func(i int, slot int) error {
		_, err := s.locks().WriteFenced(s.ctx, lock.FencedWrite{
			Key: s.other(slot), Lock: s.name, Token: g[i].Token, Slot: slot, Value: json.RawMessage(`1`),
		})
		return err
	}
	for i, one := range g {
		s.must(write(i, one.Slot))
		v, err := s.locks().VerifyToken(s.ctx, lock.Verify{Name: s.name, Token: one.Token, Slot: &one.Slot})
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

// permits returns n of three permits of the fixture's lock.
func (s *fixture) permits(n int) []lock.Member {
	return []lock.Member{{Name: s.name, Mode: lock.Permit, Capacity: threePermits, Permits: n}}
}

// ofPermits are the rules of a lock whose holders are called by how many permits they ask for.
var ofPermits = verify.Rules{Capacity: threePermits, Permits: func(e lock.Event) int { return int(e.Holder[0] - '0') }}

func permitsTogether(s *fixture) {
	a := s.complete(lock.Acquire{Locks: s.permits(2), Holder: "2"})
	g := s.mustAcquire(a)
	if g.Slot != 1 || g.Slots != "1 2" || g.Permits() != 2 {
		s.Fatalf("two permits were granted as %+v", g)
	}
	if again := s.mustAcquire(a); !again.Replayed || again.Token != g.Token || again.Slots != g.Slots {
		s.Errorf("%+v was repeated as %+v", g, again)
	}
	other := a
	other.Locks = s.permits(3)
	s.expectError(errOf(s.acquire(other)), lock.ErrLeaseIDInUse)
	s.expectError(errOf(s.acquire(lock.Acquire{Locks: s.permits(2), Holder: "2"})), lock.ErrHeld)
	one := s.mustAcquire(lock.Acquire{Locks: s.permits(1), Holder: "1"})
	if one.Slot != 3 || one.Slots != "" {
		s.Errorf("beside slots 1 and 2 was granted %+v", one)
	}
	if l := s.expectHolders("1", "2"); l.PermitsOut() != 3 {
		s.Errorf("the lock is %+v", l)
	}
	if again, err := s.renew(g, 0); err != nil || again.Slots != g.Slots || again.Token != g.Token {
		s.Errorf("%+v was renewed as %+v, %v", g, again, err)
	}
	s.must(s.release(one))
	s.must(s.release(g))
	if l := s.expectHolders(); l.State != lock.Free {
		s.Errorf("after all releases the lock is %+v", l)
	}
	all := s.mustAcquire(lock.Acquire{Locks: s.permits(3), Holder: "3"})
	_, err := s.locks().Revoke(s.ctx, lock.Revoke{Name: s.name, Token: all.Token, Slot: new(2), Reason: testReason})
	s.must(err)
	s.expectLost(s.release(all), lock.Revoked)
	if events := s.events(s.name, 6); events[0].Slots != "1 2" || events[5].Slots != "1 2 3" {
		s.Errorf("the events are %+v", events)
	}
	s.verifyHistory(s.name, ofPermits)
}

func permitsInTurn(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Locks: s.permits(2), Holder: "2"})
	all := s.enqueue(lock.Acquire{Locks: s.permits(3), Holder: "3"})
	one := s.enqueue(lock.Acquire{Locks: s.permits(1), Holder: "1"})
	s.expectError(errOf(s.acquire(lock.Acquire{Locks: s.permits(1), Holder: "1"})), lock.ErrHeld)
	if q := s.queue(s.name).Waiters; len(q) != 2 || q[0].Permits != 3 || q[1].Permits != 1 || len(q[0].Leases) != 1 {
		s.Errorf("the queue is %+v", q)
	}
	s.must(s.release(held))
	g := all.mustBeGranted()
	if g.Slots != "1 2 3" {
		s.Errorf("all permits were granted as %+v", g)
	}
	s.must(s.release(g))
	s.must(s.release(one.mustBeGranted()))
	s.verifyHistory(s.name, ofPermits)
}

func permitsExpire(s *fixture) {
	s.acquireAndExpire(lock.Acquire{Locks: s.permits(3), Holder: "3"})
	s.must(s.release(s.mustAcquire(lock.Acquire{Locks: s.permits(3), Holder: "3"})))
	s.verifyHistory(s.name, ofPermits)
}

func permitsFence(s *fixture) {
	first := s.mustAcquire(lock.Acquire{Locks: s.permits(1), Holder: "1"})
	second := s.mustAcquire(lock.Acquire{Locks: s.permits(1), Holder: "1"})
	s.must(s.release(first))
	g := s.mustAcquire(lock.Acquire{Locks: s.permits(2), Holder: "2"})
	if g.Slots != "1 3" {
		s.Fatalf("beside slot 2 were granted %+v", g)
	}
	write := func(slot int, token lock.Token) error {
		_, err := s.locks().WriteFenced(s.ctx, lock.FencedWrite{
			Key: s.other(slot), Lock: s.name, Token: token, Slot: slot, Value: json.RawMessage(`1`),
		})
		return err
	}
	status := func(slot int) lock.TokenStatus {
		v, err := s.locks().VerifyToken(s.ctx, lock.Verify{Name: s.name, Token: g.Token, Slot: &slot})
		s.must(err)
		return v.Status
	}
	for _, slot := range []int{1, 3} {
		if s.must(write(slot, g.Token)); status(slot) != lock.Current {
			s.Errorf("the token in slot %d is %s", slot, status(slot))
		}
	}
	s.expectError(write(1, first.Token), lock.ErrStaleToken)
	s.expectError(write(2, g.Token), lock.ErrUnknownToken)
	if status(2) == lock.Current {
		s.Error("the token is current in slot 2")
	}
	s.must(write(2, second.Token))
	s.must(s.release(g))
	s.expectError(write(3, g.Token), lock.ErrStaleToken)
	s.must(write(2, second.Token))
}
