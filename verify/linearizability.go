package verify

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-lock/paddock/lock"
)

// linearizable searches for an order of all operations of one lock in which each takes effect
// between its call and its return, and the rules of package lock allow each. Grants and ends are in
// the order of their events.
func (x *examination) linearizable(t *lockHistory, c *Check) {
	if t.inTree {
		return // the rules need the locks above and below, too
	}
	ops := t.operations()
	c.Examined += len(ops)
	if len(ops) == 0 {
		return
	}
	p := linearizability{initial: state{lock: lock.Record{Name: t.name}}, ops: ops}
	if found := p.check(x.options.Timeout); found != porcupine.Ok {
		t.reportUnordered(c, p, found, x.options.Timeout)
	}
}

// A linearizability is the question whether operations on a lock in the initial state have such an
// order.
type linearizability struct {
	initial state
	ops     []*operation
}

// check searches for an order.
func (p linearizability) check(timeout time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(p.initial), p.operations(), timeout)
}

// operations returns the operations for porcupine, which tries them in the order in which they
// begin. Of those that begin together, operations that change nothing come first.
func (p linearizability) operations() []porcupine.Operation {
	all := make([]porcupine.Operation, len(p.ops))
	for i, o := range p.ops {
		all[i] = porcupine.Operation{Input: o, Call: 4 * int64(o.from), Return: 4*int64(max(o.from, o.to)) + 2}
		if o.changes() {
			all[i].Call++
		}
	}
	return all
}

// operations returns what took effect on the lock: the grants and ends in its events, and the calls
// that were answered.
func (t *lockHistory) operations() []*operation {
	chain := t.transitions()
	for i := 1; i < len(chain); i++ {
		chain[i].before = chain[i-1].revision
	}
	for _, o := range chain {
		i, _ := t.event(o.revision)
		k := t.epochs.of(&t.events[i])
		o.isIn(t.epochs, k, k)
	}
	tighten(chain)
	var answers []*operation
	for _, c := range t.calls {
		if o := t.callOperation(c); o != nil {
			answers = append(answers, o)
		}
	}
	ops := append(slices.Clone(chain), t.bounds(chain).narrow(answers)...)
	ops = append(ops, t.epochOperations()...)
	for _, l := range t.leases {
		ops = append(ops, t.extraOperations(l)...)
	}
	slices.SortStableFunc(ops, func(a, b *operation) int { return cmp.Compare(a.from, b.from) })
	return ops
}

// epochOperations returns the operations by which epochs begin.
func (t *lockHistory) epochOperations() (ops []*operation) {
	for k := range t.epochs[1:] {
		e := &t.epochs[k+1]
		ops = append(ops, &operation{text: "an epoch begins", before: -1, begins: e, epochs: [2]int{k, k}, from: e.after, to: min(e.before, t.last+1)})
	}
	return ops
}

// transitions returns the grants and ends of leases, ordered by event.
func (t *lockHistory) transitions() []*operation {
	begun, ended, skipped := map[*lock.Event]*lease{}, map[*lock.Event]*lease{}, map[*lock.Event]*lease{} // or suspected, in ended
	for _, l := range t.leases {
		if l.granted != nil {
			begun[l.granted] = l
		}
		if l.ended != nil {
			ended[l.ended] = l
		}
		if l.skipped != nil {
			skipped[l.skipped] = l
		}
		for _, e := range l.suspected {
			ended[e] = l
		}
	}
	var chain []*operation
	for i := 0; i < len(t.events); i++ {
		e := &t.events[i]
		if l := begun[e]; l != nil {
			o := t.grantOperation(l)
			o.from, o.to = t.grantBounds(l)
			chain = append(chain, o)
			continue
		}
		if l := skipped[e]; l != nil {
			o := t.skipGraceOperation(l)
			o.to = t.last + 1
			chain = append(chain, o)
			continue
		}
		l := ended[e]
		switch {
		case l == nil:
		case endedByTime(e):
			together := []timedEvent{{l, e}}
			for i+1 < len(t.events) && endedByTime(&t.events[i+1]) && t.events[i+1].At.Equal(e.At) &&
				ended[&t.events[i+1]] != nil {
				i++
				together = append(together, timedEvent{ended[&t.events[i]], &t.events[i]})
			}
			o := t.expiryOperation(together)
			o.from, o.to = lastKnownAlive(endsAmong(together)), t.last+1
			chain = append(chain, o)
		default:
			o := t.endOperation(l)
			o.from, o.to = t.endBounds(l)
			o.from = max(o.from, lastKnownAlive([]*lease{l}))
			chain = append(chain, o)
		}
	}
	return chain
}

// A timedEvent is the end of a lease by the passage of time, or that the lease is suspect.
type timedEvent struct {
	*lease
	event *lock.Event
}

// endsAmong returns the leases that have ended.
func endsAmong(events []timedEvent) (leases []*lease) {
	for _, e := range events {
		if e.event.Kind != lock.Suspected {
			leases = append(leases, e.lease)
		}
	}
	return leases
}

// endedByTime reports whether the lease ended or became suspect by the passage of time, without a call.
func endedByTime(e *lock.Event) bool {
	return e.Kind == lock.Expired || e.Kind == lock.Suspected || e.Kind == lock.Withdrawn && e.Reason == lock.ReasonUnclaimed
}

// grantBounds returns when the lease may have been granted: after its first acquire was sent, and
// before an answer mentioned it.
func (t *lockHistory) grantBounds(l *lease) (from, to time.Duration) {
	to = t.last + 1
	if l.group != nil {
		from = firstSent(l.group.acquires)
	}
	if first := l.firstAnswer(); first != nil {
		to = first.Answered
	}
	return from, to
}

// lastKnownAlive returns when the last call was sent that was answered with one of the leases.
func lastKnownAlive(leases []*lease) time.Duration {
	var sent time.Duration
	for _, l := range leases {
		for _, c := range slices.Concat(l.acquired, l.renewed) {
			sent = max(sent, c.Sent)
		}
	}
	return sent
}

func firstSent(calls []*Call) time.Duration {
	if len(calls) == 0 {
		return 0
	}
	return slices.MinFunc(calls, func(a, b *Call) int { return cmp.Compare(a.Sent, b.Sent) }).Sent
}

// endBounds returns when the lease may have been ended by the calls that can have ended it.
func (t *lockHistory) endBounds(l *lease) (from, to time.Duration) {
	to = t.last + 1
	switch l.ended.Kind {
	case lock.Released:
		releases := l.group.releaseCalls()
		from = firstSent(releases)
		for _, c := range releases {
			if c.Outcome() == Done {
				to = min(to, c.Answered)
			}
		}
	case lock.Revoked:
		var all []*Call
		for _, c := range t.calls {
			if r, ok := c.Request.(lock.Revoke); ok && r.Token == l.token && mayEnd(c) {
				all = append(all, c)
			}
		}
		from = firstSent(all)
		if len(all) == 1 && all[0].Outcome() == Done {
			to = all[0].Answered
		}
	}
	return from, to
}

// tighten narrows the bounds of the transitions, which happened in this order. Contradictory bounds
// stay as they are.
func tighten(chain []*operation) {
	from, to := make([]time.Duration, len(chain)), make([]time.Duration, len(chain))
	for i, o := range chain {
		from[i] = o.from
		if i > 0 {
			from[i] = max(from[i], from[i-1])
		}
	}
	for i := len(chain) - 1; i >= 0; i-- {
		to[i] = chain[i].to
		if i+1 < len(chain) {
			to[i] = min(to[i], to[i+1])
		}
		if from[i] > to[i] {
			return
		}
	}
	for i, o := range chain {
		o.from, o.to = from[i], to[i]
	}
}

// extraOperations returns the operations of a lease besides its grant and its end: that it was claimed,
// and its grant if there is no event of it.
func (t *lockHistory) extraOperations(l *lease) []*operation {
	var ops []*operation
	if b, g := t.origin(l); b == claimed {
		o := t.claimOperation(l, g)
		o.from, o.to = t.grantBounds(l)
		o.isIn(t.epochs, l.began(t), l.began(t))
		ops = append(ops, o)
	}
	if l.granted == nil {
		o := t.grantOperation(l)
		o.text += ", without an event"
		o.before = -1
		o.from, o.to = t.grantBounds(l)
		first, last := t.epochs.ofCall(l.firstAnswer())
		o.isIn(t.epochs, first, last)
		ops = append(ops, o)
	}
	return ops
}
