package verify_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// recordRevocations records revocations of leases with a grace.
func recordRevocations(t *testing.T) verify.History {
	t.Helper()
	var h verify.History
	synctest.Test(t, func(t *testing.T) {
		c := newHarness(t)
		c.revokeExclusive()
		c.revokeShared()
		time.Sleep(2 * time.Minute)
		h = c.rec.History()
		var err error
		h.Events, err = verify.Collect(t.Context(), c.memory.Replica(1), "play:")
		c.want(nil, err)
	})
	return h
}

// revokeLease revokes a lease as an operator does.
func (c *harness) revokeLease(holder, reason string, skipGrace bool, slot *int) {
	c.t.Helper()
	g := c.grant(holder)
	_, err := c.client("the operator").Revoke(c.t.Context(),
		lock.Revoke{Name: g.Name, Token: g.Token, Slot: slot, Reason: reason, SkipGrace: skipGrace})
	c.want(nil, err)
}

func (c *harness) revokeExclusive() {
	long := lock.Acquire{Locks: lock.One(exclusiveLock), Grace: 2 * time.Second}
	c.acquire("left", nil, long)
	c.waitWhile("served", lock.Acquire{Locks: lock.One(exclusiveLock), TTL: 30 * time.Second}, func() {
		c.revokeLease("left", "leave the grace", false, nil)
		c.read(exclusiveLock)
		c.renew("left", lock.ErrLeaseLost)
		c.acquire("a try", lock.ErrHeld, lock.Acquire{Locks: lock.One(exclusiveLock)})
		c.revokeLease("left", "leave the grace", false, nil)
		c.verify("left")
	})
	c.release("served")
	c.acquire("skipped", nil, long)
	c.revokeLease("skipped", "no grace", true, nil)
	c.acquire("after skipped", nil, lock.Acquire{Locks: lock.One(exclusiveLock)})
	c.release("after skipped")
	c.acquire("ended later", nil, long)
	c.revokeLease("ended later", "some grace", false, nil)
	c.read(exclusiveLock)
	c.revokeLease("ended later", "enough of it", true, nil)
	c.acquire("after ended", nil, lock.Acquire{Locks: lock.One(exclusiveLock)})
	c.release("after ended")
	c.acquire("in its grace", nil, lock.Acquire{Locks: lock.One(exclusiveLock), TTL: time.Second, Grace: 2 * time.Second})
	time.Sleep(2 * time.Second)
	c.revokeLease("in its grace", "what is left of it", false, nil)
	c.read(exclusiveLock)
	time.Sleep(time.Second)
	c.acquire("after that", nil, lock.Acquire{Locks: lock.One(exclusiveLock)})
	c.release("after that")
}

func (c *harness) revokeShared() {
	read := lock.Acquire{Locks: []lock.Member{{Name: sharedLock, Mode: lock.Shared}}, Grace: time.Second}
	c.acquire("reader 1", nil, read)
	c.acquire("reader 2", nil, read)
	c.revokeLease("reader 1", "one reader", false, new(int(1)))
	c.acquire("reader 3", nil, read)
	c.read(sharedLock)
	c.release("reader 2")
	c.waitWhile("writer", lock.Acquire{Locks: lock.One(sharedLock)}, func() { c.release("reader 3") })
	c.release("writer")
	c.acquire("reader 4", nil, read)
	c.revokeLease("reader 4", "all readers", false, nil)
	c.acquire("reader 5", nil, read)
	c.read(sharedLock)
	c.release("reader 5")
	read.Grace = 0
	c.acquire("reader 6", nil, read)
	c.acquire("reader 7", nil, read)
	c.release("reader 7")
	c.revokeLease("reader 6", "the last reader", false, new(c.grant("reader 6").Slot))
	c.revokeLease("reader 7", "one that has gone", false, new(c.grant("reader 7").Slot)) // taken for a repetition
	permit := lock.Acquire{Locks: []lock.Member{{Name: permitLock, Mode: lock.Permit, Capacity: 2}}, Grace: 5 * time.Second}
	c.acquire("first", nil, permit)
	c.acquire("second", nil, permit)
	c.revokeLease("first", "one permit", false, nil)
	c.acquire("third", lock.ErrHeld, permit)
	c.read(permitLock)
	c.release("second")
	c.acquire("third", nil, permit)
	c.read(permitLock)
}

func TestRevocationsThatLeaveTheGracePass(t *testing.T) {
	t.Parallel()
	if r := recordRevocations(t).Check(verify.CheckOptions{}); !r.OK() {
		t.Error(text(t, r))
	}
}

// changeRevoke changes the request of the revocations with that reason.
func (s editable) changeRevoke(reason string, change func(*lock.Revoke)) {
	s.t.Helper()
	for i := range s.Calls {
		if r, ok := s.Calls[i].Request.(lock.Revoke); ok && r.Reason == reason {
			change(&r)
			s.Calls[i].Request = r
		}
	}
}

func TestRevocationsThatSkipTheGraceAreFound(t *testing.T) {
	t.Parallel()
	base := recordRevocations(t)
	graceOf := func(holder string, grace time.Duration) func(editable) {
		return func(s editable) {
			s.grant(verify.Acquire, holder, 0, func(g *lock.Grant) { g.Grace = grace })
			a := s.call(verify.Acquire, holder, 0)
			asked := a.Request.(lock.Acquire)
			asked.Grace = grace
			a.Request = asked
		}
	}
	leave := func(r *lock.Revoke) { r.SkipGrace = false }
	for name, c := range map[string]mutation{
		"of a lease with waiters": {byEarlyEnd, graceOf("left", 2100*time.Millisecond),
			"during the grace of \"left\""},
		"without a request to skip": {byEarlyEnd, func(s editable) { s.changeRevoke("no grace", leave) },
			"during the grace of \"skipped\""},
		"of a lease in its grace": {byEarlyEnd, graceOf("in its grace", 5*time.Second),
			"during the grace of \"in its grace\""},
		"of a reader, for a writer": {byEarlyEnd, graceOf("reader 1", 5*time.Second),
			"during the grace of \"reader 1\""},
		"of a permit, granting its slot": {byEarlyEnd, func(s editable) {
			s.event(lock.Granted, "third").Slot = s.event(lock.Granted, "first").Slot
		}, "during the grace of \"first\""},
		"found by linearizability": {byLinearizable, func(s editable) { s.changeRevoke("no grace", leave) },
			"not linearizable"},
		"a second time without a call": {byAgreement, func(s editable) { s.changeRevoke("enough of it", leave) },
			"The grace of \"ended later\" with token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectFound(t, base, c)
		})
	}
}
