package verify

import (
	"cmp"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// slowAfter is how long an answer may take, besides its wait, until the service counts
// as disturbed.
const slowAfter = time.Second

// A interval is a time on the recorder's clock.
type interval struct{ from, to time.Duration }

// disturbances are when not much can be asked of a replica: while a fault lasts and
// until a call that was sent after it is answered; while a call to it fails or is slow;
// while a call to another replica is slow. They do not overlap and are in order.
type disturbances []interval

// disturbed returns the disturbances of each replica.
func (h History) disturbed() map[string]disturbances {
	all, common := map[string]disturbances{}, disturbances(nil)
	answered := map[string][]interval{}
	for _, c := range h.Calls {
		if _, known := all[c.Via]; !known {
			all[c.Via] = nil
		}
		took := interval{c.Sent, c.Answered}
		switch slow := c.Answered-c.Sent-c.wait() > slowAfter; {
		case c.Cancelled:
		case slow:
			common = append(common, took)
		case c.Outcome() == NotDone || c.Outcome() == Unknown:
			all[c.Via] = append(all[c.Via], took)
		default:
			answered[c.Via] = append(answered[c.Via], took)
		}
	}
	for via := range all {
		for _, f := range h.Faults {
			all[via] = append(all[via], interval{f.At, servesAgain(answered[via], max(f.Ended, f.At))})
		}
		all[via] = append(all[via], common...).merged()
	}
	return all
}

// servesAgain returns when the first of the calls was answered that was sent after that. The
// calls are in the order in which they were sent. A call that waits for a lock may be
// answered late, so the first answer among the next few counts.
func servesAgain(calls []interval, after time.Duration) time.Duration {
	const few = 50
	i, _ := slices.BinarySearchFunc(calls, after, func(s interval, at time.Duration) int { return cmp.Compare(s.from, at) })
	soonest := time.Duration(-1)
	for _, c := range calls[i:min(i+few, len(calls))] {
		if soonest < 0 || c.to < soonest {
			soonest = c.to
		}
	}
	if soonest < 0 {
		return forever
	}
	return soonest
}

// forever is after all that was recorded.
const forever = time.Duration(1<<63 - 1)

// wait returns for how long the call asked to wait.
func (c Call) wait() time.Duration {
	switch a := c.Request.(type) {
	case lock.Acquire:
		return a.Wait
	case lock.Watch:
		return a.Wait
	}
	return 0
}

func (d disturbances) merged() disturbances {
	slices.SortFunc(d, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	var all disturbances
	for _, s := range d {
		if n := len(all); n > 0 && s.from <= all[n-1].to {
			all[n-1].to = max(all[n-1].to, s.to)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// undisturbed returns the longest undisturbed stretch between the two, and how long all of
// them are together.
func (d disturbances) undisturbed(from, to time.Duration) (longest, total time.Duration) {
	i, _ := slices.BinarySearchFunc(d, from, func(s interval, at time.Duration) int { return cmp.Compare(s.to, at) })
	for at := from; at < to; i++ {
		end := to
		if i < len(d) {
			end = min(to, max(at, d[i].from))
		}
		longest, total = max(longest, end-at), total+end-at
		if i == len(d) {
			break
		}
		at = max(end, d[i].to)
	}
	return longest, total
}
