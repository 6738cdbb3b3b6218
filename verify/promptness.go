package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// promptness checks that each subscriber received each event soon after it was known to be
// committed.
func (x *examination) promptness(c *Check) {
	for i := range x.subscriptions {
		x.index.checkPromptness(&x.subscriptions[i], c)
	}
}

func (n *index) checkPromptness(s *Subscription, c *Check) {
	first, last := s.cursors()
	if first < 0 {
		return
	}
	at := map[int64]time.Duration{}
	s.each(func(d Delivery, e *lock.Event) {
		if _, twice := at[e.ID]; !twice {
			at[e.ID] = d.At
		}
	})
	reads, violations := s.readIntervals(), 0
	from, _ := n.find(first + 1)
	for _, e := range n.table[min(from, len(n.table)):] {
		proven, known := n.proven[e.ID]
		received, found := at[e.ID]
		if !known || !s.selects(e) || !found && e.ID <= last {
			continue
		}
		if !found {
			received = forever
		}
		c.Examined++
		late := n.lateBy(reads, proven, received)
		if late == 0 {
			continue
		}
		what := fmt.Sprintf(
			"received event %d at %s, but it was known to be committed at %s: %v of undisturbed time late",
			e.ID, sinceStart(received), sinceStart(proven), late)
		if !found {
			what = fmt.Sprintf(
				"did not receive event %d, known to be committed at %s, while it read for %v of undisturbed time",
				e.ID, sinceStart(proven), late)
		}
		c.subscriberViolated(n, s, e, what)
		if violations++; violations == maxViolations {
			return
		}
	}
}

// lateBy returns how late an event was received, zero if it was in time.
func (n *index) lateBy(reads []readInterval, proven, received time.Duration) time.Duration {
	if received-proven <= promptWithin {
		return 0
	}
	i, _ := slices.BinarySearchFunc(reads, proven,
		func(a readInterval, at time.Duration) int { return cmp.Compare(a.to, at) })
	for _, a := range reads[min(i, len(reads)):] {
		if a.from >= received {
			break
		}
		if late := n.overdue(a.via, max(a.from, proven), min(a.to, received)); late > 0 {
			return late
		}
	}
	return 0
}

// overdue returns the undisturbed time in the interval if that is more than the service may need,
// else zero.
func (n *index) overdue(via string, from, to time.Duration) time.Duration {
	d, known := n.disturbed[via]
	if !known || to-from <= promptWithin {
		return 0
	}
	longest, total := d.undisturbed(from, to)
	if longest > promptWithin || total > promptInTotal {
		return total
	}
	return 0
}

// cursors returns the first and the last cursor, negative if there was none.
func (s *Subscription) cursors() (first, last int64) {
	first, last = cursorNow, cursorNow
	for _, r := range s.Requests {
		for _, d := range r.Deliveries {
			if first < 0 {
				if first = r.Cursor; first < 0 {
					first = d.Next
				}
			}
			last = d.Next
		}
	}
	return first, last
}

// A readInterval is a time in which a subscriber read from one replica without a break.
type readInterval struct {
	via string
	interval
}

// readIntervals returns when the subscriber read.
func (s *Subscription) readIntervals() []readInterval {
	var all []readInterval
	for _, r := range s.Requests {
		if r.Opened == 0 || s.Kind == Polling && r.Failed {
			continue
		}
		if n := len(all); s.Kind == Polling && n > 0 && all[n-1].via == r.Via && r.Sent-all[n-1].to <= maxPollPause {
			all[n-1].to = r.Ended
			continue
		}
		all = append(all, readInterval{r.Via, interval{r.Opened, r.Ended}})
	}
	return all
}

// blockingReads checks that each blocking read of the lock returned soon after the lock was known to
// have changed, and never with a revision before the one it was given.
func (x *examination) blockingReads(t *lockHistory, c *Check) {
	n := x.index
	for _, call := range t.calls {
		w, ok := call.Request.(paddock.Watch)
		if !ok || call.Err != nil && !call.Cancelled {
			continue
		}
		c.Examined++
		seen, got := revisionOf(w.Seen), call.Response
		if l, ok := got.(lock.Lock); ok && l.Revision < seen {
			c.violated(t, fmt.Sprintf("A blocking read from revision %d returned the older revision %d.", seen,
				l.Revision), []*Call{call})
		}
		i, found := t.event(seen + 1)
		if !found {
			continue
		}
		changed := &t.events[i]
		proven, known := n.proven[changed.ID]
		if !known {
			continue
		}
		late := n.overdue(call.Via, max(proven, call.Sent), call.Answered)
		if late == 0 {
			continue
		}
		how := "returned"
		if call.Cancelled {
			how = "was cancelled without an answer"
		}
		c.violated(t, fmt.Sprintf("A blocking read from revision %d %s at %s, "+
			"but the lock was known to have changed at %s: %v of undisturbed time late.",
			seen, how, sinceStart(call.Answered), sinceStart(proven), late), []*Call{call}, changed)
	}
}

// revisionOf returns the revision at the start of a lock's version, zero if there is none.
func revisionOf(version string) int64 {
	text, _, _ := strings.Cut(version, ".")
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// slowAfter is how long an answer may take, besides its wait, before the service counts as
// disturbed.
const slowAfter = time.Second

// An interval is a time on the recorder's clock.
type interval struct{ from, to time.Duration }

// disturbances are the times in which little is required of a replica: from the start of a fault until
// a call that was sent after its end is answered, while a call to the replica fails or is slow, and while a call to
// another replica is slow. They are ordered and do not overlap.
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

// servesAgain returns when the first call was answered that was sent after that time. The calls are
// ordered by Sent. A call that waits for a lock may be answered late, so the first answer among the next few counts.
func servesAgain(calls []interval, after time.Duration) time.Duration {
	const few = 50
	i, _ := slices.BinarySearchFunc(calls, after,
		func(s interval, at time.Duration) int { return cmp.Compare(s.from, at) })
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

// forever is later than anything that was recorded.
const forever = time.Duration(1<<63 - 1)

// wait returns how long the call asked to wait.
func (c Call) wait() time.Duration {
	switch a := c.Request.(type) {
	case lock.Acquire:
		return a.Wait
	case paddock.Watch:
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

// undisturbed returns the longest undisturbed part of the interval, and the sum of all such parts.
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
