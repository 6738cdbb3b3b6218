package verify

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-lock/paddock/lock"
)

// Bounds of the search for a counterexample that can be drawn.
const (
	counterexampleTimeout = 2 * time.Second  // for each search
	dropPrefixTotal       = 30 * time.Second // for all searches of dropPrefix, approximately
)

// reportUnordered records that no order was found, with the first operation that has none.
func (t *lockHistory) reportUnordered(c *Check, p linearizability, found porcupine.CheckResult,
	timeout time.Duration) {
	p, culprit := p.untilUnordered(t.last, found)
	less := t.dropPrefix(p)
	calls, events := t.evidence(culprit, less)
	if found == porcupine.Unknown && p.check(counterexampleTimeout) != porcupine.Illegal {
		c.violated(t, fmt.Sprintf("The search for an order did not finish within %v, with %d operations. "+
			"The first operation without an order is %s.",
			timeout, len(p.ops), culprit), calls, events...)
		return
	}
	c.violated(t, fmt.Sprintf("The operations are not linearizable: %s has no place in any order.", culprit), calls,
		events...)
	c.counterexamples = append(c.counterexamples, less)
}

// shownOperations is how many operations are shown before one of the service that has no place: any of them may be the
// one that is wrong.
const shownOperations = 20

// evidence returns the call of an operation, and the events of its lease. If the operation is the service's, it returns
// the calls and events of the last ones of p.
func (t *lockHistory) evidence(o *operation, p linearizability) (calls []*Call, events []*lock.Event) {
	if o == nil || o.call == nil {
		for _, o := range p.ops[max(0, len(p.ops)-shownOperations):] {
			if i, found := t.event(o.revision); found {
				events = append(events, &t.events[i])
			}
			calls = append(calls, o.call)
		}
		return calls, events
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

// untilUnordered returns what was known when the first operation returned that has no place in any order, and that
// operation; nil if there is none. A search that does not finish tells nothing, unless that is what was found.
func (p linearizability) untilUnordered(last time.Duration, found porcupine.CheckResult) (linearizability, *operation) {
	var ends []time.Duration
	for _, o := range p.ops {
		if o.to <= last {
			ends = append(ends, o.to)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	first := sort.Search(len(ends), func(i int) bool {
		known := p.until(ends[i], last+1).check(counterexampleTimeout)
		return known == porcupine.Illegal || known == found
	})
	if first == len(ends) {
		return p, nil
	}
	p = p.until(ends[first], last+1)
	return p, p.ops[slices.IndexFunc(p.ops, func(o *operation) bool { return o.to == ends[first] })]
}

// String names the operation and its client.
func (o *operation) String() string {
	switch {
	case o == nil:
		return "an operation that never returned"
	case o.call == nil:
		return "the service's operation (" + o.text + ")"
	}
	return fmt.Sprintf("(client %d, %s)", o.call.Client, o.text)
}

// until returns what was known at that time: operations that had not returned may or may not have
// taken effect, and operations that had not begun are left out.
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

// changes reports whether the operation may change the lock.
func (o *operation) changes() bool {
	return o.call == nil || o.call.Verb == Renew && o.call.Outcome() != Refused
}

// optional returns the operation as one that may have no effect and may return until end.
func (o *operation) optional(end time.Duration) *operation {
	maybe := *o
	maybe.before, maybe.to = -1, end
	maybe.revision = 0
	maybe.maybe = o
	return &maybe
}

// dropPrefix leaves out what happened before the latest time at which the lock was free such that
// the rest has no order.
func (t *lockHistory) dropPrefix(p linearizability) linearizability {
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
	until := time.Now().Add(dropPrefixTotal)
	for _, i := range slices.Backward(free) {
		if time.Now().After(until) {
			return p
		}
		less := p.after(t.events[:i+1])
		if less.check(counterexampleTimeout) == porcupine.Illegal {
			return less
		}
	}
	return p
}

// after leaves out the transitions of those events; the lock is free after the last of them.
func (p linearizability) after(events []lock.Event) linearizability {
	last := events[len(events)-1]
	less := linearizability{initial: state{lock: lock.Record{Name: last.Name, ChangedAt: last.At, LastEnd: last.Kind},
		revision: last.Revision}}
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

// event returns the index of the event with that revision.
func (t *lockHistory) event(revision int64) (int, bool) {
	return slices.BinarySearchFunc(t.events, revision, func(e lock.Event, r int64) int { return int(e.Revision - r) })
}
