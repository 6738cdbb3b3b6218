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

// places are when the places of one lock may have started and stopped to count, each in order.
type places struct{ from, to []time.Duration }

// atMost returns how many places can have counted during the call.
func (p places) atMost(c *Call) int {
	begun, _ := slices.BinarySearch(p.from, c.Answered+1)
	over, _ := slices.BinarySearch(p.to, c.Sent)
	return begun - over
}

// waiterLimit checks that no call was refused with too_many_waiters while fewer places than the
// limit counted, at each of its locks. A place counts while its call waits, and for
// lock.PlaceRetention after it was kept or its replica died. A call whose answer was lost is
// assumed to be cut at that time.
func (x *examination) waiterLimit(c *Check) {
	all, most := map[string]places{}, map[int]int{} // most is how many counted at the fullest lock of a call
	for _, t := range x.locks {
		all[t.name] = t.places()
	}
	refused := func(call *Call) bool {
		return call.Verb == Acquire && errors.Is(call.Err, lock.ErrTooManyWaiters)
	}
	for _, t := range x.locks {
		for _, call := range t.calls {
			if refused(call) {
				most[call.ID] = max(most[call.ID], all[t.name].atMost(call))
			}
		}
	}
	for _, t := range x.locks {
		for _, call := range t.calls {
			if !refused(call) || call.whole != nil && t.name != call.whole.names()[0] {
				continue
			}
			c.Examined++
			if n := most[call.ID]; n < x.options.WaitersPerLock {
				c.violated(t,
					fmt.Sprintf("%q was refused with too_many_waiters while at most %d places counted; the limit is %d.",
						call.Request.(lock.Acquire).Holder, n, x.options.WaitersPerLock), []*Call{call})
			}
		}
	}
}

func (t *lockHistory) places() (p places) {
	for _, r := range t.groups {
		if first, last, waits := r.placeBounds(); waits {
			p.from, p.to = append(p.from, first), append(p.to, last)
		}
	}
	slices.Sort(p.from)
	slices.Sort(p.to)
	return p
}

// keepsPlace reports whether the place of a call answered with err is kept: because the client asked
// for that, or because the call ended early, as it does when the replica is stopping.
func keepsPlace(err error, asked bool) bool {
	var e *lock.Error
	if !errors.As(err, &e) {
		return false
	}
	return asked && e.Code == lock.ErrHeld || e.Code == lock.ErrUnavailable
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
