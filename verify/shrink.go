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
	shrinkTimeout = 2 * time.Second  // for each search
	shrinkTotal   = 30 * time.Second // for all searches, approximately
)

// reportUnordered records that no order was found, with the fewest operations that have none.
func (t *lockHistory) reportUnordered(c *Check, p linearizability, found porcupine.CheckResult,
	timeout time.Duration) {
	s := shrinker{until: time.Now().Add(shrinkTotal)}
	small, culprit := s.shortest(t, p)
	calls, events := t.evidence(culprit)
	if found == porcupine.Unknown && small.check(shrinkTimeout) != porcupine.Illegal {
		c.violated(t, fmt.Sprintf("The search for an order of %d operations did not finish within %v. "+
			"The first operation without an order is %s.",
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
	c.violated(t, fmt.Sprintf("The operations are not linearizable: %s has no place in any order.", culprit), calls,
		events...)
	c.counterexamples = append(c.counterexamples, small)
}

// evidence returns the call of an operation, and the events of its lease.
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

// A shrinker searches for the fewest operations that have no order. It uses delta debugging
// (Zeller and Hildebrandt, 2002), after cutting off later and earlier operations.
type shrinker struct{ until time.Time }

// shortest returns the fewest operations that it finds to have no order, and the last of them to
// return.
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

// minimize leaves out operations of calls while the rest has no order.
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

// calls returns the number of operations that belong to calls.
func (p linearizability) calls() (n int) {
	for _, o := range p.ops {
		if o.call != nil {
			n++
		}
	}
	return n
}

// without leaves out the calls' operations with index from up to to. Of a renewal only its answer is
// left out, not its possible effect: without it the lease would have ended sooner.
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

// unanswered returns the operation of a renewal without an answer.
func (o *operation) unanswered() *operation {
	quiet := *o
	quiet.call, quiet.text = nil, "some renewal"
	quiet.step, quiet.maybe = lostRenewalStep(o.call.Request.(lock.Renew).LeaseID), nil
	return &quiet
}

// dropPrefix leaves out what happened before the latest time at which the lock was free such that
// the rest has no order.
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
