package lock

import (
	"maps"
	"slices"
)

const (
	// maxSearched bounds the calls of a circle of which the fewest victims are searched for. In a larger circle all
	// calls of one lock give way, or the call that joined last.
	maxSearched = 128
	// maxVictimLocks bounds the locks that are considered as those of all victims of a circle.
	maxVictimLocks = 16
	// maxVictims bounds the calls of a circle that give way at once. The others do at the next look.
	maxVictims = 128
)

// breaks returns the victims of the circle, and the locks that each of them needs to break it; nil if those of its own
// Deadlock are enough. Each needs all locks of the circle unless the call that joined last is the only one: another
// choice of victims may be enough for a part of the circle. If these locks are too many, that call gives way alone.
func (g *waitGraph) breaks(circle []*stuckCall) (victims []*stuckCall, locks []string) {
	candidates := g.candidates(circle)
	if len(candidates) == 0 {
		return nil, nil
	}
	victims = g.victims(circle, candidates)
	if len(victims) == 1 && victims[0] == candidates[0] {
		return victims, nil
	}
	if locks = g.allLocks(circle); len(locks) > MaxDeadlockLocks {
		return candidates[:1], nil
	}
	return victims[:min(len(victims), maxVictims)], locks
}

// candidates returns the calls of the circle that may be its victims, the one that joined last first: those whose task
// holds what a call of the circle waits for. A call that is only ahead in a queue need not be in a task that holds
// anything, or may be one of another API key.
func (g *waitGraph) candidates(circle []*stuckCall) []*stuckCall {
	in, holds := make(map[*stuckCall]bool, len(circle)), make(map[*stuckCall]bool)
	for _, c := range circle {
		in[c] = true
	}
	for _, c := range circle {
		for _, o := range g.obstacles(c, false) {
			if in[o.call] && !o.step.Ahead {
				holds[o.call] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(holds), func(a, b *stuckCall) int { return older(b, a) })
}

// victims returns those of the candidates that give way, so that all other calls of the circle may go on: one if one is
// enough, otherwise as few as are found, preferably at one lock. Of several choices it is the calls that joined last.
func (g *waitGraph) victims(circle, candidates []*stuckCall) []*stuckCall {
	circle = slices.SortedFunc(slices.Values(circle), older)
	defer g.assumeOthersGoOn(circle)()
	if len(circle) <= maxSearched {
		for _, c := range candidates {
			if g.isBroken(circle, []*stuckCall{c}) {
				return []*stuckCall{c}
			}
		}
	}
	var best []*stuckCall
	for _, at := range byLock(candidates) {
		if some := g.fewest(circle, at); some != nil && (best == nil || len(some) < len(best)) {
			best = some
		}
	}
	if len(circle) <= maxSearched {
		if some := g.fewest(circle, candidates); some != nil && (best == nil || len(some) < len(best)) {
			best = some
		}
	}
	if best == nil {
		return candidates[:1] // what is left then is looked at again
	}
	return best
}

// assumeOthersGoOn marks all stuck calls outside of the circle, which has victims of its own if it waits for them,
// until the returned function is called.
func (g *waitGraph) assumeOthersGoOn(circle []*stuckCall) (undo func()) {
	for _, c := range circle {
		c.gone = true
	}
	var others []*stuckCall
	for _, c := range g.calls {
		if c.isStuck() {
			c.goesOn = true
			others = append(others, c)
		}
	}
	for _, c := range circle {
		c.gone = false
	}
	return func() {
		for _, c := range others {
			c.goesOn = false
		}
	}
}

// byLock returns the candidates that wait at each lock, first that of the first candidate.
func byLock(candidates []*stuckCall) (all [][]*stuckCall) {
	index := make(map[*Record]int)
	for _, c := range candidates {
		for _, p := range c.places {
			i, known := index[p.record]
			switch {
			case known:
				all[i] = append(all[i], c)
			case len(all) < maxVictimLocks:
				index[p.record] = len(all)
				all = append(all, []*stuckCall{c})
			}
		}
	}
	return all
}

// fewest returns those of the calls that must give way, as all of them would, for the others of the circle to go on;
// nil if all of them are not enough. It keeps the calls that joined first, one after the other, unless the circle is
// too large.
func (g *waitGraph) fewest(circle, from []*stuckCall) []*stuckCall {
	if !g.isBroken(circle, from) {
		return nil
	}
	few := slices.Clone(from)
	if len(circle) > maxSearched {
		return few
	}
	for i := len(few) - 1; i >= 0 && len(few) > 1; i-- {
		if less := slices.Delete(slices.Clone(few), i, i+1); g.isBroken(circle, less) {
			few = less
		}
	}
	return few
}

// isBroken reports whether all other calls of the circle, which is in the order in which they joined, may go on once
// the victims have given way.
func (g *waitGraph) isBroken(circle, victims []*stuckCall) bool {
	for _, c := range victims {
		c.gone = true
	}
	g.reduce(circle)
	broken := !slices.ContainsFunc(circle, (*stuckCall).isStuck)
	for _, c := range circle {
		c.goesOn, c.gone = false, false
	}
	return broken
}

// A proof is the locks that show that calls are stuck: at these, each of the calls waits for others of them.
type proof struct {
	*waitGraph
	calls map[*stuckCall]bool
	locks []string
}

// allLocks returns the locks that show that each of the calls of a circle is stuck, wherever it is, with all that they
// wait for.
func (g *waitGraph) allLocks(circle []*stuckCall) []string {
	shown := proof{waitGraph: g, calls: make(map[*stuckCall]bool)}
	for _, c := range circle {
		shown.calls[c] = true
	}
	for _, c := range circle {
		shown.locks = append(shown.locks, c.set...)
		for _, p := range c.places {
			shown.locks = append(shown.locks, p.record.Name)
			shown.addPermits(p)
		}
	}
	return shown.inOrder()
}

// addObstacle adds what shows that a call waits for the obstacle. A call that waits for permits is stuck only if not enough
// of them can be freed.
func (f *proof) addObstacle(o obstacle) {
	f.locks = append(f.locks, o.place.record.Name)
	if !o.step.Ahead {
		f.addPermits(o.place)
	}
}

// addPermits adds what shows that the permits stay which are in the way at the place, if there are any.
func (f *proof) addPermits(p place) {
	if p.spare == 0 || !f.leasesStay(p) {
		return
	}
	for _, l := range p.blocking {
		if stuck := f.under(l); len(stuck) > 0 {
			f.add(stuck[0])
		}
	}
}

// add adds what shows that the call is stuck.
func (f *proof) add(c *stuckCall) {
	if f.calls[c] {
		return
	}
	f.calls[c] = true
	o := f.obstacles(c, false)[0]
	f.addObstacle(o)
	f.add(o.call)
}

// inOrder returns the locks in order, without duplicates.
func (f *proof) inOrder() []string {
	slices.Sort(f.locks)
	return slices.Compact(f.locks)
}

// MaxDeadlockLocks bounds the locks of a deadlock that is broken. A greater one lasts until a wait in it ends.
const MaxDeadlockLocks = 128
