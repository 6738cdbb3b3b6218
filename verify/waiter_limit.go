package verify

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// limitSlack is for how much longer than the rules say a place may count: for the time that a
// call is under way, and between two heartbeats of a replica.
const limitSlack = 2 * time.Second

// waiterLimit checks that no call was refused with too_many_waiters while fewer places counted
// than the limit of the lock. A place counts while its call waits, and for lock.KeepPlace after
// it was kept or its replica died. A call whose answer was lost is taken to be cut then.
func (x *examination) waiterLimit(t *lockHistory, c *Check) {
	var from, to []time.Duration // when each place may have begun to count, and ceased
	for _, r := range t.groups {
		if first, last, waits := r.placeBounds(); waits {
			from, to = append(from, first), append(to, last)
		}
	}
	slices.Sort(from)
	slices.Sort(to)
	for _, call := range t.calls {
		if !errors.Is(call.Err, lock.ErrTooManyWaiters) || call.Verb != Acquire {
			continue
		}
		c.Examined++
		begun, _ := slices.BinarySearch(from, call.Answered+1)
		over, _ := slices.BinarySearch(to, call.Sent)
		if n := begun - over; n < x.options.WaitersPerLock {
			c.violated(t, fmt.Sprintf("%q was refused with too_many_waiters while at most %d places counted, of %d.",
				call.Request.(lock.Acquire).Holder, n, x.options.WaitersPerLock), []*Call{call})
		}
	}
}

// keepsPlace reports whether the place of a call that was answered with err is kept: if the
// client asked for that, or if the replica is about to stop, which then says when to come back.
func keepsPlace(err error, asked bool) bool {
	var e *lock.Error
	if !errors.As(err, &e) {
		return false
	}
	return asked && e.Code == lock.ErrHeld || e.Code == lock.ErrUnavailable && e.RetryAfter > 0
}

// placeBounds returns between which instants, at the most, the place of the request may have
// counted as a waiter; false if it never had one.
func (r *callGroup) placeBounds() (from, to time.Duration, waits bool) {
	for _, c := range r.acquires {
		a := c.Request.(lock.Acquire)
		if a.Wait == 0 && !a.KeepPlace || errors.Is(c.Err, lock.ErrTooManyWaiters) {
			continue
		}
		end := c.Answered
		switch {
		case c.Outcome() == Unknown:
			end += lock.ReplicaTTL + lock.PlaceRetention + limitSlack
		case keepsPlace(c.Err, a.KeepPlace):
			end += lock.PlaceRetention + limitSlack
		}
		if !waits || c.Sent < from {
			from = c.Sent
		}
		to, waits = max(to, end), true
	}
	return from, to, waits
}
