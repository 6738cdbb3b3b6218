package verify

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-lock/paddock/lock"
)

// inOrder looks for an order of all operations of one lock in which each takes
// effect between its call and its return, and the rules of package lock allow each.
// The order of grants and ends is that of their events.
func (x *examination) inOrder(t *tale, c *Check) {
	ops := t.operations()
	c.Examined += len(ops)
	if len(ops) == 0 {
		return
	}
	p := puzzle{first: state{lock: lock.Record{Name: t.name}}, ops: ops}
	if found := p.solve(x.options.Timeout); found != porcupine.Ok {
		t.disorder(c, p, found, x.options.Timeout)
	}
}

// A puzzle is operations for which an order is looked for, on a lock that begins in
// that state.
type puzzle struct {
	first state
	ops   []*operation
}

// solve looks for an order.
func (p puzzle) solve(timeout time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(p.first), p.operations(), timeout)
}

// operations returns the operations as porcupine takes them. It tries them in the order
// in which they begin: of those that begin together, first those that change nothing.
func (p puzzle) operations() []porcupine.Operation {
	all := make([]porcupine.Operation, len(p.ops))
	for i, o := range p.ops {
		all[i] = porcupine.Operation{Input: o, Call: 4 * int64(o.from), Return: 4*int64(max(o.from, o.to)) + 2}
		if o.changes() {
			all[i].Call++
		}
	}
	return all
}

// operations returns what took effect on the lock: the grants and ends that the
// events tell of, and what was answered.
func (t *tale) operations() []*operation {
	chain := t.transitions()
	for i := 1; i < len(chain); i++ {
		chain[i].before = chain[i-1].revision
	}
	tighten(chain)
	var answers []*operation
	for _, c := range t.calls {
		if o := t.answering(c); o != nil {
			answers = append(answers, o)
		}
	}
	ops := append(slices.Clone(chain), t.windows(chain).narrow(answers)...)
	for _, l := range t.leases {
		ops = append(ops, t.afterwards(l)...)
	}
	if t.newEpoch() {
		for _, o := range ops {
			o.step = timeless(o.step)
		}
	}
	slices.SortStableFunc(ops, func(a, b *operation) int { return cmp.Compare(a.from, b.from) })
	return ops
}

// timeless lets the time of a lock run backwards.
func timeless(do step) step {
	return func(s lock.Record) (lock.Record, bool) {
		s.ChangedAt = time.Time{}
		return do(s)
	}
}

// transitions returns the grants and ends of leases in the order of their events.
func (t *tale) transitions() []*operation {
	begun, ended, skipped := map[*lock.Event]*lease{}, map[*lock.Event]*lease{}, map[*lock.Event]*lease{}
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
	}
	var chain []*operation
	for i := 0; i < len(t.events); i++ {
		e := &t.events[i]
		if l := begun[e]; l != nil {
			o := t.granting(l)
			o.from, o.to = t.asking(l)
			chain = append(chain, o)
			continue
		}
		if l := skipped[e]; l != nil {
			o := t.skipping(l)
			o.to = t.last + 1
			chain = append(chain, o)
			continue
		}
		l := ended[e]
		switch {
		case l == nil:
		case byTime(e):
			together := []*lease{l}
			for i+1 < len(t.events) && byTime(&t.events[i+1]) && t.events[i+1].At.Equal(e.At) && ended[&t.events[i+1]] != nil {
				i++
				together = append(together, ended[&t.events[i]])
			}
			o := t.passing(together)
			o.from, o.to = latest(together), t.last+1
			chain = append(chain, o)
		default:
			o := t.ending(l)
			o.from, o.to = t.endingBy(l)
			o.from = max(o.from, latest([]*lease{l}))
			chain = append(chain, o)
		}
	}
	return chain
}

// byTime is whether time alone has ended the lease.
func byTime(e *lock.Event) bool {
	return e.Kind == lock.Expired || e.Kind == lock.Withdrawn && e.Reason == lock.ReasonUnclaimed
}

// asking returns when the lease may have been granted: since it was asked for, until
// somebody was told.
func (t *tale) asking(l *lease) (from, to time.Duration) {
	to = t.last + 1
	if l.of != nil {
		from = earliest(l.of.acquires)
	}
	if first := l.first(); first != nil {
		to = first.Answered
	}
	return from, to
}

// latest returns when the last call was sent that found one of the leases there.
func latest(leases []*lease) time.Duration {
	var sent time.Duration
	for _, l := range leases {
		for _, c := range slices.Concat(l.told, l.renewed) {
			sent = max(sent, c.Sent)
		}
	}
	return sent
}

func earliest(calls []*Call) time.Duration {
	if len(calls) == 0 {
		return 0
	}
	return slices.MinFunc(calls, func(a, b *Call) int { return cmp.Compare(a.Sent, b.Sent) }).Sent
}

// endingBy returns when the lease may have been ended by those who did.
func (t *tale) endingBy(l *lease) (from, to time.Duration) {
	to = t.last + 1
	switch l.ended.Kind {
	case lock.Released:
		releases := l.of.safeReleases()
		from = earliest(releases)
		for _, c := range releases {
			if c.Outcome() == Done {
				to = min(to, c.Answered)
			}
		}
	case lock.Revoked:
		var all []*Call
		for _, c := range t.calls {
			if r, ok := c.Asked.(lock.Revoke); ok && r.Token == l.token && mayEnd(c) {
				all = append(all, c)
			}
		}
		from = earliest(all)
		if len(all) == 1 && all[0].Outcome() == Done {
			to = all[0].Answered
		}
	}
	return from, to
}

// tighten narrows when the transitions may have been, since each is after the one
// before it. Should they contradict one another, they are left as they are.
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

// afterwards returns the operations of a lease beside its grant and its end: that it
// was fetched; and its grant and end if no event tells of them.
func (t *tale) afterwards(l *lease) []*operation {
	var ops []*operation
	if b, g := t.birth(l); b == fetched {
		o := t.fetching(l, g)
		o.from, o.to = t.asking(l)
		ops = append(ops, o)
	}
	if l.granted == nil {
		o := t.granting(l)
		o.text += ", of which no event tells"
		o.before = -1
		o.from, o.to = t.asking(l)
		ops = append(ops, o)
	}
	return ops
}
