package verify

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// limitSlack is how much longer than the rules say a place may count: a call is under way, and a
// replica's heartbeats are apart.
const limitSlack = 2 * time.Second

// waiterLimit checks that no call was refused with too_many_waiters while fewer places than the
// limit counted. A place counts while its call waits, and for lock.PlaceRetention after it was kept
// or its replica died. A call whose answer was lost is assumed to be cut at that time.
func (x *examination) waiterLimit(t *lockHistory, c *Check) {
	var from, to []time.Duration // when each place may have started and stopped to count
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
			c.violated(t,
				fmt.Sprintf("%q was refused with too_many_waiters while at most %d places counted; the limit is %d.",
					call.Request.(lock.Acquire).Holder, n, x.options.WaitersPerLock), []*Call{call})
		}
	}
}

// keepsPlace reports whether the place of a call answered with err is kept: because the client asked
// for that, or because the replica is stopping and says when to return.
func keepsPlace(err error, asked bool) bool {
	var e *lock.Error
	if !errors.As(err, &e) {
		return false
	}
	return asked && e.Code == lock.ErrHeld || e.Code == lock.ErrUnavailable && e.RetryAfter > 0
}

// placeBounds returns the widest interval in which the place of the group may have counted, false if
// it never had a place.
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
