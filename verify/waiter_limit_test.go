package verify_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

const byLimit = "no waiter is refused below the limit"

// waitingAcquire returns the nth call of a history, an acquire that waits.
func waitingAcquire(n int, sent, answered time.Duration, code lock.Code) verify.Call {
	c := verify.Call{
		ID: n, Client: n, Verb: verify.Acquire, Name: exclusiveLock, Sent: sent, Answered: answered,
		Request: lock.Acquire{Locks: []lock.Member{{Name: exclusiveLock, Mode: lock.Exclusive}}, LeaseID: lock.LeaseID{byte(n + 1)}, Holder: "h", TTL: time.Second, Wait: time.Minute},
	}
	if code != "" {
		c.Err = &lock.Error{Code: code, Detail: "x"}
	}
	return c
}

func TestASetMayBeRefusedWhenTheQueueOfOneLockIsFull(t *testing.T) {
	t.Parallel()
	set := waitingAcquire(2, 5*time.Second, 6*time.Second, lock.ErrTooManyWaiters)
	for other, found := range map[string]bool{exclusiveLock: false, sharedLock: true} {
		a := set.Request.(lock.Acquire)
		a.Locks = []lock.Member{{Name: permitLock}, {Name: other}}
		set.Request = a
		h := verify.History{Calls: []verify.Call{
			waitingAcquire(0, time.Second, 10*time.Second, lock.ErrHeld), waitingAcquire(1, time.Second, 10*time.Second, lock.ErrHeld), set,
		}}
		for _, check := range h.Check(verify.CheckOptions{WaitersPerLock: 2}).Checks {
			if check.Name == byLimit && (check.Examined != 1 || len(check.Violations) > 0 != found) {
				t.Errorf("a set with %s: %d cases, %+v", other, check.Examined, check.Violations)
			}
		}
	}
}

func TestWaiterLimitRefusalsNeedEnoughWaiters(t *testing.T) {
	t.Parallel()
	const limit, cut = 2, 10 * time.Second
	const kept = lock.ReplicaTTL + lock.PlaceRetention
	for name, c := range map[string]struct {
		answer  lock.Code     // of the calls that wait from the first second to the tenth
		refused time.Duration // when another call is refused
		found   bool
	}{
		"while calls wait":                   {lock.ErrHeld, 5 * time.Second, false},
		"before calls wait":                  {lock.ErrHeld, 500 * time.Millisecond, true},
		"after the waits have ended":         {lock.ErrHeld, cut + time.Second, true},
		"soon after the answers were lost":   {lock.ErrUnknownOutcome, cut + kept, false},
		"long after the answers were lost":   {lock.ErrUnknownOutcome, cut + kept + 3*time.Second, true},
		"while the other calls were refused": {lock.ErrTooManyWaiters, 5 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := verify.History{Calls: []verify.Call{
				waitingAcquire(0, time.Second, cut, c.answer), waitingAcquire(1, time.Second, cut, c.answer),
				waitingAcquire(2, c.refused, c.refused+time.Millisecond, lock.ErrTooManyWaiters),
			}}
			for _, check := range h.Check(verify.CheckOptions{WaitersPerLock: limit}).Checks {
				if check.Name == byLimit && (len(check.Violations) > 0) != c.found {
					t.Errorf("%d violations: %+v", len(check.Violations), check.Violations)
				}
			}
			for _, check := range h.Check(verify.CheckOptions{}).Checks {
				if check.Name == byLimit {
					t.Error("the check ran without a limit")
				}
			}
		})
	}
}
