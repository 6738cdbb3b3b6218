package lock

import (
	"slices"
	"strconv"
	"time"
)

// MaxChainSteps bounds the steps of a WaitChain.
const MaxChainSteps = 16

// A WaitChain says what the first waiter of a lock waits for in the end: what is in its way, what that waits for by
// its TaskID, and so on. Where several are in the way, it follows one: a lease rather than a waiter that is ahead, and
// a lease whose task waits rather than another one. It shows no secret.
type WaitChain struct {
	// Steps are at least one and at most MaxChainSteps. The call of each step but the first is what keeps the step
	// before it waiting: it waits under the lease in the way, or it is the waiter ahead.
	Steps []DeadlockStep
	End   ChainEnd
}

// A ChainEnd says why a WaitChain ends with its last step.
type ChainEnd string

// The ends of a WaitChain.
const (
	// ChainNotWaiting: no call of the task of the last lease waits, so this lease is the root.
	ChainNotWaiting ChainEnd = "not_waiting"
	// ChainUnknown: the last lease has no TaskID, or nothing is seen in the way of the call that it waits for.
	ChainUnknown ChainEnd = "unknown"
	// ChainCircle: the last step waits for a call of the chain. If it lasts, it is a Deadlock.
	ChainCircle ChainEnd = "circle"
	// ChainLimit: there may be more.
	ChainLimit ChainEnd = "limit"
)

// Plain reports whether the chain says no more than what the first waiter waits for.
func (c WaitChain) Plain() bool { return len(c.Steps) == 1 && c.End == ChainUnknown }

// Conclusion says in words why the chain ends.
func (c WaitChain) Conclusion() string {
	last := strconv.Quote(c.Steps[len(c.Steps)-1].WaitsFor)
	return map[ChainEnd]string{
		ChainNotWaiting: "The task of " + last + " waits for no lock.",
		ChainUnknown:    "It is not known what " + last + " waits for.",
		ChainCircle:     "The chain is a circle. If it lasts, it is a deadlock, which the service breaks.",
		ChainLimit:      "The chain may go on.",
	}[c.End]
}

// WaitChainOf returns the chain of the first attached waiter of the first of the locks, as far as these locks show it,
// in the view of the replica self at now; nil if no lease and no waiter is in its way. complete reports whether the
// locks contain all at which a call of the chain may wait.
func WaitChainOf(locks []Record, now time.Time, self Replica, complete bool) *WaitChain {
	locks = slices.Clone(locks)
	for i := range locks {
		locks[i].Leases = locks[i].ActiveLeases(now)
	}
	g := newWaitGraph(locks, func(w *Waiter) bool { return w.Attached(now, self) })
	chain, seen := &WaitChain{End: ChainUnknown}, make(map[*stuckCall]bool)
	for c := g.firstAt(&locks[0]); c != nil; {
		if seen[c] {
			chain.End = ChainCircle
			break
		}
		if len(chain.Steps) == MaxChainSteps {
			chain.End = ChainLimit
			break
		}
		seen[c] = true
		step, next, end := g.chainStep(c)
		if chain.End = end; step.Name == "" {
			break
		}
		chain.Steps, c = append(chain.Steps, step), next
	}
	if !complete && chain.End == ChainNotWaiting {
		chain.End = ChainLimit
	}
	if len(chain.Steps) == 0 {
		return nil
	}
	return chain
}

// firstAt returns the call of the first attached waiter of the record, nil if there is none.
func (g *waitGraph) firstAt(r *Record) (first *stuckCall) {
	var least int64
	for _, c := range g.calls {
		for _, p := range c.places {
			if p.record == r && (first == nil || p.waiter.Place < least) {
				first, least = c, p.waiter.Place
			}
		}
	}
	return first
}

// chainStep returns what the call waits for, and the call that this waits for in turn. If that is nil, end says why.
// The step has no name if nothing is seen in its way.
func (g *waitGraph) chainStep(c *stuckCall) (step DeadlockStep, next *stuckCall, end ChainEnd) {
	var in place
	var best *Lease
	for _, p := range c.places {
		if l := g.leaseInWay(p); l != nil && (best == nil || g.endRank(l) < g.endRank(best)) {
			in, best = p, l
		}
	}
	if best != nil {
		step = in.step(best, false)
		switch g.endRank(best) {
		case rankWaits:
			return step, slices.MinFunc(g.byTask[best.Task], older), ""
		case rankUnknown:
			return step, nil, ChainUnknown
		}
		return step, nil, ChainNotWaiting
	}
	for _, p := range c.places {
		if len(p.ahead) > 0 {
			first := p.ahead[0]
			return p.step(first.leaseAt(p.record), true), first, ""
		}
	}
	return step, nil, ChainUnknown
}

// The ranks of leases: how sure it is that they last.
const (
	rankWaits   = iota // a call of its task waits
	rankUnknown        // it has no task
	rankRuns
)

func (g *waitGraph) endRank(l *Lease) int {
	switch {
	case l.Task == "":
		return rankUnknown
	case len(g.byTask[l.Task]) > 0:
		return rankWaits
	}
	return rankRuns
}

// leaseInWay returns the lease for which the waiter of the place waits longest: of leases that must all end, the first
// whose task waits; of permits of which some are enough, the last of these, if those are freed first whose task does not
// wait. It returns nil if there is none.
func (g *waitGraph) leaseInWay(p place) *Lease {
	if len(p.blocking) == 0 {
		return nil
	}
	byRank := func(a, b *Lease) int { return g.endRank(a) - g.endRank(b) }
	if p.spare == 0 {
		return slices.MinFunc(p.blocking, byRank)
	}
	out := 0
	for _, l := range p.blocking {
		out += l.Permits()
	}
	soonest := slices.SortedStableFunc(slices.Values(p.blocking), func(a, b *Lease) int { return byRank(b, a) })
	for _, l := range soonest {
		if out -= l.Permits(); out <= p.spare {
			return l
		}
	}
	return nil
}
