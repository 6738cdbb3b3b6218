package verify_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// revocations plays what revocations do to leases with a grace, and returns what was recorded.
func revocations(t *testing.T) verify.History {
	t.Helper()
	var h verify.History
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		c.playGraces()
		c.playGracesTogether()
		time.Sleep(2 * time.Minute)
		h = c.rec.History()
		var err error
		h.Events, err = verify.Collect(t.Context(), c.memory.Replica(1), "play:")
		c.want(nil, err)
	})
	return h
}

// ousts revokes a lease as an operator does.
func (c *cast) ousts(holder, reason string, atOnce bool, slot *int) {
	c.t.Helper()
	g := c.grants[holder]
	_, err := c.who("the operator").Revoke(c.t.Context(), lock.Revoke{Name: g.Name, Token: g.Token, Slot: slot, Reason: reason, SkipGrace: atOnce})
	c.want(nil, err)
}

func (c *cast) playGraces() {
	long := lock.Acquire{Name: alone, Grace: 2 * time.Second}
	c.acquires("left", nil, long)
	c.waits("served", lock.Acquire{Name: alone, TTL: 30 * time.Second}, func() {
		c.ousts("left", "leave the grace", false, nil)
		c.looks(alone)
		c.renews("left", lock.ErrLeaseLost)
		c.acquires("a try", lock.ErrHeld, lock.Acquire{Name: alone})
		c.ousts("left", "leave the grace", false, nil)
		c.verifies("left")
	})
	c.releases("served")
	c.acquires("skipped", nil, long)
	c.ousts("skipped", "no grace", true, nil)
	c.acquires("after skipped", nil, lock.Acquire{Name: alone})
	c.releases("after skipped")
	c.acquires("ended later", nil, long)
	c.ousts("ended later", "some grace", false, nil)
	c.looks(alone)
	c.ousts("ended later", "enough of it", true, nil)
	c.acquires("after ended", nil, lock.Acquire{Name: alone})
	c.releases("after ended")
	c.acquires("in its grace", nil, lock.Acquire{Name: alone, TTL: time.Second, Grace: 2 * time.Second})
	time.Sleep(2 * time.Second)
	c.ousts("in its grace", "what is left of it", false, nil)
	c.looks(alone)
	time.Sleep(time.Second)
	c.acquires("after that", nil, lock.Acquire{Name: alone})
	c.releases("after that")
}

func (c *cast) playGracesTogether() {
	read := lock.Acquire{Name: rooms, Mode: lock.Shared, Grace: time.Second}
	c.acquires("reader 1", nil, read)
	c.acquires("reader 2", nil, read)
	c.ousts("reader 1", "one reader", false, new(int(1)))
	c.acquires("reader 3", nil, read)
	c.looks(rooms)
	c.releases("reader 2")
	c.waits("writer", lock.Acquire{Name: rooms}, func() { c.releases("reader 3") })
	c.releases("writer")
	c.acquires("reader 4", nil, read)
	c.ousts("reader 4", "all readers", false, nil)
	c.acquires("reader 5", nil, read)
	c.looks(rooms)
	c.releases("reader 5")
	permit := lock.Acquire{Name: permits, Mode: lock.Permit, Capacity: 2, Grace: 5 * time.Second}
	c.acquires("first", nil, permit)
	c.acquires("second", nil, permit)
	c.ousts("first", "one permit", false, nil)
	c.acquires("third", lock.ErrHeld, permit)
	c.looks(permits)
	c.releases("second")
	c.acquires("third", nil, permit)
	c.looks(permits)
}

func TestRevocationsThatLeaveTheGracePass(t *testing.T) {
	t.Parallel()
	if r := revocations(t).Check(verify.CheckOptions{}); !r.OK() {
		t.Error(text(t, r))
	}
}

// asks changes what the nth revocation with the reason asked for.
func (s script) asks(reason string, change func(*lock.Revoke)) {
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
	base := revocations(t)
	graceOf := func(holder string, grace time.Duration) func(script) {
		return func(s script) {
			s.grant(verify.Acquire, holder, 0, func(g *lock.Grant) { g.Grace = grace })
			a := s.call(verify.Acquire, holder, 0)
			asked := a.Request.(lock.Acquire)
			asked.Grace = grace
			a.Request = asked
		}
	}
	leave := func(r *lock.Revoke) { r.SkipGrace = false }
	for name, c := range map[string]spoiling{
		"of a lease that is waited for":    {byEarly, graceOf("left", 2100*time.Millisecond), "and the grace of \"left\""},
		"of one that nobody asked to skip": {byEarly, func(s script) { s.asks("no grace", leave) }, "and the grace of \"skipped\""},
		"of a lease in its grace":          {byEarly, graceOf("in its grace", 5*time.Second), "and the grace of \"in its grace\""},
		"of a reader, for a writer":        {byEarly, graceOf("reader 1", 5*time.Second), "and the grace of \"reader 1\""},
		"of a permit, for its slot": {byEarly, func(s script) {
			s.event(lock.Granted, "third").Slot = s.event(lock.Granted, "first").Slot
		}, "and the grace of \"first\""},
		"by the order of all": {byOrder, func(s script) { s.asks("no grace", leave) }, "no order"},
		"a second time, which nobody did": {byAgreement, func(s script) { s.asks("enough of it", leave) },
			"The grace of \"ended later\" with token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectFound(t, base, c)
		})
	}
}
