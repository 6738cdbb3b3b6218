package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// promptness checks that each subscriber was told of each event soon after it was known to
// be committed.
func (x *examination) promptness(c *Check) {
	for i := range x.Subscriptions {
		x.index.checkPromptness(&x.Subscriptions[i], c)
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
	attended, found := s.readIntervals(), 0
	from, _ := n.find(first + 1)
	for _, e := range n.table[min(from, len(n.table)):] {
		proven, known := n.proven[e.ID]
		told, heard := at[e.ID]
		if !known || !strings.HasPrefix(e.Name, s.Prefix) || !heard && e.ID <= last {
			continue
		}
		if !heard {
			told = forever
		}
		c.Examined++
		late := n.lateBy(attended, proven, told)
		if late == 0 {
			continue
		}
		what := fmt.Sprintf("was told at %s of event %d, which was known to be committed at %s: %v of calm later", sinceStart(told), e.ID, sinceStart(proven), late)
		if !heard {
			what = fmt.Sprintf("was not told of event %d, which was known to be committed at %s, although it read for %v of calm after that", e.ID, sinceStart(proven), late)
		}
		c.subscriberViolated(n, s, e, what)
		if found++; found == maxViolations {
			return
		}
	}
}

// lateBy returns how much too late the subscriber was told, zero if it was in time.
func (n *index) lateBy(attended []readInterval, proven, told time.Duration) time.Duration {
	if told-proven <= promptWithin {
		return 0
	}
	i, _ := slices.BinarySearchFunc(attended, proven, func(a readInterval, at time.Duration) int { return cmp.Compare(a.to, at) })
	for _, a := range attended[min(i, len(attended)):] {
		if a.from >= told {
			break
		}
		if late := n.overdue(a.via, max(a.from, proven), min(a.to, told)); late > 0 {
			return late
		}
	}
	return 0
}

// overdue returns how long the service had in calm between the two, if that is more
// than it may need; else zero.
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

// cursors returns the first cursor and the last, which are negative if there was none.
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

// An readInterval is a time in which a subscriber read from a replica without a break.
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

// blockingReads checks that each blocking read of the lock blockingReads soon after it was known
// that the lock had changed, and nothing that is older than what it was given.
func (x *examination) blockingReads(t *lockHistory, c *Check) {
	n := x.index
	for _, call := range t.calls {
		w, ok := call.Request.(lock.Watch)
		if !ok || call.Err != nil && !call.Cancelled {
			continue
		}
		c.Examined++
		seen, got := revisionOf(w.Seen), call.Response
		if l, ok := got.(lock.Lock); ok && l.Revision < seen && !t.hasEpoch() {
			c.violated(t, fmt.Sprintf("A blocking read that had seen revision %d returned revision %d.", seen, l.Revision), []*Call{call})
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
			how = "was given up without an answer"
		}
		c.violated(t, fmt.Sprintf("A blocking read that had seen revision %d %s at %s, and the lock was known at %s to have changed: %v of calm too late.",
			seen, how, sinceStart(call.Answered), sinceStart(proven), late), []*Call{call}, changed)
	}
}

// revisionOf returns the revision with which the version of a lock begins, zero for none.
func revisionOf(version string) int64 {
	text, _, _ := strings.Cut(version, ".")
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

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
