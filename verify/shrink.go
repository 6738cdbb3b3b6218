package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-lock/paddock/lock"
)

// Bounds of the search for the shortest history.
const (
	shrinkTimeout = 2 * time.Second  // for how long each try may look for an order
	shrinkTotal   = 30 * time.Second // and all of them, about
)

// reportUnordered notes that no order was found, with the fewest operations that have none.
func (t *lockHistory) reportUnordered(c *Check, p linearizability, found porcupine.CheckResult, timeout time.Duration) {
	s := shrinker{until: time.Now().Add(shrinkTotal)}
	small, culprit := s.shortest(t, p)
	calls, events := t.evidence(culprit)
	if found == porcupine.Unknown && small.check(shrinkTimeout) != porcupine.Illegal {
		c.violated(t, fmt.Sprintf("No order of %d operations was found within %v, and none was ruled out. The trouble begins with %s.",
			len(p.ops), timeout, culprit), calls, events...)
		return
	}
	for _, o := range small.ops {
		if o.maybe != nil {
			o = o.maybe
		}
		calls = append(calls, o.call)
		if i, ok := t.event(o.revision); ok && o.revision > 0 {
			events = append(events, &t.events[i])
		}
	}
	c.violated(t, fmt.Sprintf("There is no order in which the rules allow all that was answered: %s fits nowhere.", culprit), calls, events...)
	c.counterexamples = append(c.counterexamples, small)
}

// evidence returns the call of an operation, and the events that tell of its lease.
func (t *lockHistory) evidence(o *operation) (calls []*Call, events []*lock.Event) {
	if o == nil || o.call == nil {
		return nil, nil
	}
	if r := t.groupOf(o.call); r != nil {
		for _, l := range r.leases {
			events = append(events, l.granted, l.ended)
		}
	}
	if token, ok := newestToken(o.call); ok {
		events = append(events, t.grantOf(token))
	}
	return []*Call{o.call}, events
}

// A shrinker is the search for the fewest operations that have no order. It is
// delta debugging (Zeller and Hildebrandt, 2002), made quick by first cutting off
// what came after and before.
type shrinker struct{ until time.Time }

// shortest returns the fewest operations that it finds to have no order, and what
// came last to them.
func (s shrinker) shortest(t *lockHistory, p linearizability) (linearizability, *operation) {
	ends := make([]time.Duration, 0, len(p.ops))
	for _, o := range p.ops {
		if o.to <= t.last {
			ends = append(ends, o.to)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	least, most := 0, len(ends)
	for least < most {
		if middle := (least + most) / 2; p.until(ends[middle], t.last+1).check(shrinkTimeout) == porcupine.Ok {
			least = middle + 1
		} else {
			most = middle
		}
	}
	var culprit *operation
	if least < len(ends) {
		p = p.until(ends[least], t.last+1)
		for _, o := range p.ops {
			if o.to == ends[least] {
				culprit = o
			}
		}
	}
	return s.dropPrefix(t, s.minimize(p)), culprit
}

// String says who did what.
func (o *operation) String() string {
	switch {
	case o == nil:
		return "what was left open at the end"
	case o.call == nil:
		return "the service's (" + o.text + ")"
	}
	return fmt.Sprintf("(client %d, %s)", o.call.Client, o.text)
}

// until returns what was known at that time: operations that were not over then may
// or may not have taken effect, and those that had not begun have not.
func (p linearizability) until(at, end time.Duration) linearizability {
	cut := linearizability{initial: p.initial}
	for _, o := range p.ops {
		switch {
		case o.to <= at:
			cut.ops = append(cut.ops, o)
		case o.from <= at && o.changes():
			cut.ops = append(cut.ops, o.optional(end))
		}
	}
	return cut
}

// changes is whether the operation may change the lock.
func (o *operation) changes() bool {
	return o.call == nil || o.call.Verb == Renew && o.call.Outcome() != Refused
}

// optional returns an operation that may do nothing, and has until the end to return.
func (o *operation) optional(end time.Duration) *operation {
	maybe := *o
	maybe.before, maybe.to = -1, end
	maybe.revision = 0
	maybe.maybe = o
	return &maybe
}

// minimize leaves out operations of calls for as long as there is no order even so.
func (s shrinker) minimize(p linearizability) linearizability {
	for size := len(p.ops); size > 0; size /= 2 {
		for from := 0; from < len(p.ops); {
			less := p.without(from, min(from+size, len(p.ops)))
			if time.Now().After(s.until) {
				return p
			}
			if less.calls() < p.calls() && less.check(shrinkTimeout) == porcupine.Illegal {
				p = less
			} else {
				from += size
			}
		}
	}
	return p
}

// calls returns how many of the operations are those of calls.
func (p linearizability) calls() (n int) {
	for _, o := range p.ops {
		if o.call != nil {
			n++
		}
	}
	return n
}

// without leaves out the operations of calls from one place up to another.
// What a renewal was answered is left out, but not that it may have been done: without
// it the lease would have ended sooner.
func (p linearizability) without(from, to int) linearizability {
	less := linearizability{initial: p.initial, ops: slices.Clone(p.ops[:from])}
	for i, o := range p.ops[from:] {
		switch {
		case from+i >= to, o.call == nil:
			less.ops = append(less.ops, o)
		case o.call.Verb == Renew && o.changes():
			less.ops = append(less.ops, o.unanswered())
		}
	}
	return less
}

// unanswered returns the operation of a renewal of which nobody was told.
func (o *operation) unanswered() *operation {
	quiet := *o
	quiet.call, quiet.text = nil, "some renewal"
	quiet.step, quiet.maybe = lostRenewalStep(o.call.Request.(lock.Renew).LeaseID), nil
	return &quiet
}

// dropPrefix leaves out what happened before an instant at which nobody had the lock, the
// latest after which there is no order even so.
func (s shrinker) dropPrefix(t *lockHistory, p linearizability) linearizability {
	var free []int
	held := map[int]bool{}
	for i, e := range t.events {
		switch e.Kind {
		case lock.Granted:
			held[e.Slot] = true
		case lock.Released, lock.Expired, lock.Revoked, lock.Withdrawn:
			if delete(held, e.Slot); len(held) == 0 {
				free = append(free, i)
			}
		}
	}
	for _, i := range slices.Backward(free) {
		if time.Now().After(s.until) {
			return p
		}
		less := p.after(t.events[:i+1])
		if less.check(shrinkTimeout) == porcupine.Illegal {
			return less
		}
	}
	return p
}

// after leaves out the transitions of those events, the last of which left nobody
// with the lock.
func (p linearizability) after(events []lock.Event) linearizability {
	last := events[len(events)-1]
	less := linearizability{initial: state{lock: lock.Record{Name: last.Name, ChangedAt: last.At, LastEnd: last.Kind}, revision: last.Revision}}
	for _, e := range events {
		less.initial.lock.Token = max(less.initial.lock.Token, e.Token)
	}
	for _, o := range p.ops {
		if o.revision == 0 || o.revision > last.Revision {
			less.ops = append(less.ops, o)
		}
	}
	return less
}

// event returns where the event of that revision is.
func (t *lockHistory) event(revision int64) (int, bool) {
	return slices.BinarySearchFunc(t.events, revision, func(e lock.Event, r int64) int { return int(e.Revision - r) })
}
