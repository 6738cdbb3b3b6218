package verify_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

const (
	frozenLock = "play:ice:lake"
	ruledLock  = "play:rules:pool"
)

// usePolicy freezes a lock while a waiter waits for it, and changes the rule of another one.
func (c *harness) usePolicy() {
	c.t.Helper()
	ctx, operator := c.t.Context(), c.client("the operator")
	c.acquire("skater", nil, lock.Acquire{Locks: lock.One(frozenLock)})
	_, err := operator.Freeze(ctx, lock.FreezeRequest{Scope: "play:ice:", Reason: "maintenance"})
	c.want(nil, err)
	c.acquire("fisher", lock.ErrFrozen, lock.Acquire{Locks: lock.One(frozenLock)})
	c.waitWhile("fisher", lock.Acquire{Locks: lock.One(frozenLock)}, func() {
		c.release("skater")
		c.want(nil, operator.Thaw(ctx, lock.ThawRequest{Scope: "play:ice:"}))
	})
	c.release("fisher")

	_, err = operator.Freeze(ctx, lock.FreezeRequest{Scope: branch, Reason: "maintenance"})
	c.want(nil, err)
	c.acquire("bird", lock.ErrFrozen, lock.Acquire{Locks: lock.One(leaf)})
	c.want(nil, operator.Thaw(ctx, lock.ThawRequest{Scope: branch}))
	c.acquire("bird", nil, lock.Acquire{Locks: lock.One(leaf)})
	c.release("bird")

	permits := lock.Acquire{Locks: []lock.Member{{Name: ruledLock, Mode: lock.Permit}}, Grace: time.Second}
	rule := lock.Rule{Scope: "play:rules:", Capacity: 2, MaxTTL: 10 * time.Second, MinGrace: time.Second, MaxHold: time.Minute}
	_, err = operator.SetRule(ctx, rule)
	c.want(nil, err)
	c.acquire("swimmer 1", nil, permits)
	c.acquire("swimmer 2", nil, permits)
	c.acquire("swimmer 3", lock.ErrHeld, permits)
	rule.Capacity = 1
	_, err = operator.SetRule(ctx, rule)
	c.want(nil, err)
	time.Sleep(time.Second)
	c.release("swimmer 1")
	c.acquire("swimmer 3", lock.ErrHeld, permits)
	c.release("swimmer 2")
	c.acquire("swimmer 3", nil, permits)
	c.renew("swimmer 3", nil)
	rule.MaxTTL = 5 * time.Second
	_, err = operator.SetRule(ctx, rule)
	c.want(nil, err)
	c.renew("swimmer 3", nil)
	c.release("swimmer 3")
	c.want(nil, operator.RemoveRule(ctx, "play:rules:"))
	c.poll()
}

func TestGrantsAgainstThePolicyAreFound(t *testing.T) {
	answer := func(change func(*lock.Grant)) func(editable) {
		return func(s editable) { s.grant(verify.Acquire, "swimmer 3", 2, change) }
	}
	expectAllFound(t, map[string]mutation{
		"a waiter is granted the lock in a freeze": {byPolicy, func(s editable) {
			frozen := s.eventOn("play:ice:", lock.Frozen, "").At
			s.eventOn(frozenLock, lock.Granted, "fisher").At = frozen.Add(time.Millisecond)
			s.call(verify.Acquire, "fisher", 1).Answered = s.call(verify.Thaw, "", 0).Sent - 1
		}, `"fisher" was granted the lock at`},
		"a lock below is granted in a freeze": {byPolicy, func(s editable) {
			s.eventOn(leaf, lock.Granted, "bird").At = s.eventOn(branch, lock.Frozen, "").At.Add(time.Millisecond)
			s.call(verify.Acquire, "bird", 1).Answered = s.call(verify.Thaw, "", 1).Sent - 1
		}, `"bird" was granted the lock at`},
		"more permits than by the rule": {byPolicy, func(s editable) {
			set := s.call(verify.SetRule, "", 0)
			rule := set.Response.(lock.Rule)
			rule.Capacity = 1
			set.Response = rule
		}, `the 2. of 1 by the rule for play:rules:`},
		"a longer TTL":  {byPolicy, answer(func(g *lock.Grant) { g.TTL++ }), "with a TTL of 10.000000001s of at most 10s"},
		"a longer hold": {byPolicy, answer(func(g *lock.Grant) { g.ExpiresAt = g.AcquiredAt.Add(2 * time.Minute) }), "for 2m0s of at most 1m0s"},
		"a renewal with a longer TTL than by a newer rule": {byPolicy, func(s editable) {
			s.grant(verify.Renew, "swimmer 3", 1, func(g *lock.Grant) { g.TTL++ })
		}, "with a TTL of 5.000000001s of at most 5s"},
		"a shorter grace": {byPolicy, answer(func(g *lock.Grant) { g.Grace-- }), "of at least 1s"},
	})
}

// TestAGrantBesideAChangeOfThePolicyIsAccepted, since it may have been decided before it.
func TestAGrantBesideAChangeOfThePolicyIsAccepted(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	s := editable{t, &h}
	frozen := s.eventOn("play:ice:", lock.Frozen, "").At
	for name, change := range map[string]func(editable){
		"granted before the freeze, and answered in it": func(s editable) {
			s.eventOn(frozenLock, lock.Granted, "fisher").At = frozen.Add(-time.Hour)
			s.call(verify.Acquire, "fisher", 1).Answered = s.call(verify.Thaw, "", 0).Sent - 1
		},
		"the end of the freeze is on its way": func(s editable) {
			s.eventOn(frozenLock, lock.Granted, "fisher").At = frozen.Add(time.Millisecond)
			s.call(verify.Acquire, "fisher", 1).Answered = s.call(verify.Thaw, "", 0).Sent + 1
		},
		"an earlier end of the freeze was lost": func(s editable) {
			s.eventOn(frozenLock, lock.Granted, "fisher").At = frozen.Add(time.Millisecond)
			thaw := s.call(verify.Thaw, "", 0)
			s.call(verify.Acquire, "fisher", 1).Answered = thaw.Sent - 1
			lost := *thaw
			lost.Sent, lost.Answered, lost.Err = 0, 1, lock.ErrUnknownOutcome
			s.Calls = append(s.Calls, lost)
		},
	} {
		changed := copyOf(h)
		change(editable{t, &changed})
		for _, c := range changed.Check(verify.CheckOptions{}).Checks {
			if c.Name == byPolicy && len(c.Violations) > 0 {
				t.Errorf("%s: %s", name, c.Violations[0].Message)
			}
		}
	}
}
