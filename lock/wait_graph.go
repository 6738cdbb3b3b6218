package lock

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A stuckCall is a waiting call, with its places.
type stuckCall struct {
	id     LeaseID
	set    []string
	task   TaskID
	joined time.Time
	places []place

	goesOn bool // it may be granted its locks
	gone   bool // it is looked at as if it had given way
	// The state of circles.
	index, low int
	onStack    bool
}

func (c *stuckCall) isStuck() bool { return !c.goesOn && !c.gone }

// A place is that of a call in the queue of one lock.
type place struct {
	record *Record
	waiter *Waiter
	ahead  []*stuckCall // the attached calls before it in the queue that it may not overtake
	// inTree: a call ahead need not wait for all that are ahead of it.
	inTree bool
	// blocking are the leases that are in the way: so many must end that those left have at most spare permits. If
	// spare is zero, all must end, as in other modes.
	blocking []*Lease
	spare    int
}

// A callKey identifies a waiting call: its lease, and its lock or set.
type callKey struct {
	id   LeaseID
	name string
}

// A waitGraph is the waiting calls of some locks.
type waitGraph struct {
	calls  []*stuckCall            // in the order in which they joined
	byTask map[TaskID][]*stuckCall // the calls of a task and its parts
}

// newWaitGraph returns the graph of the waiters that are attached.
func newWaitGraph(locks []Record, attached func(*Waiter) bool) *waitGraph {
	g, byKey := &waitGraph{byTask: make(map[TaskID][]*stuckCall)}, make(map[callKey]*stuckCall)
	for i := range locks {
		r := &locks[i]
		queue := make([]*stuckCall, 0, len(r.Queue))
		inTree := slices.ContainsFunc(r.Queue, func(w *Waiter) bool { return w.Lease.Mode.IsIntention() })
		for _, w := range r.Queue {
			if w.GrantedUnclaimed || !attached(w) {
				continue
			}
			key := callKey{w.Lease.ID, r.Name}
			if w.Lease.Set != nil {
				key.name = strings.Join(w.Lease.Set, " ")
			}
			c := byKey[key]
			if c == nil {
				c = &stuckCall{id: w.Lease.ID, set: w.Lease.Set, task: w.Lease.Task, joined: w.JoinedAt}
				byKey[key] = c
				g.add(c)
			}
			if w.JoinedAt.After(c.joined) {
				c.joined = w.JoinedAt
			}
			p := place{record: r, waiter: w, ahead: queue, inTree: inTree}
			if inTree {
				p.ahead = blockingCalls(r, w, queue)
			}
			p.blocking, p.spare = r.blocking(w)
			c.places, queue = append(c.places, p), append(queue, c)
		}
	}
	slices.SortStableFunc(g.calls, older)
	return g
}

// blockingCalls returns those of the calls ahead of the waiter in the lock's queue that it may not overtake.
func blockingCalls(r *Record, w *Waiter, ahead []*stuckCall) (blocking []*stuckCall) {
	for _, c := range ahead {
		if !w.Lease.Mode.mayOvertake(c.leaseAt(r).Mode) {
			blocking = append(blocking, c)
		}
	}
	return blocking
}

// older compares calls by when they joined, and by their leases.
func older(a, b *stuckCall) int {
	return cmp.Or(a.joined.Compare(b.joined), slices.Compare(a.id[:], b.id[:]))
}

func (g *waitGraph) add(c *stuckCall) {
	g.calls = append(g.calls, c)
	for i := 0; i <= len(c.task) && c.task != ""; i++ {
		if i == len(c.task) || c.task[i] == '.' {
			g.byTask[c.task[:i]] = append(g.byTask[c.task[:i]], c)
		}
	}
}

// blocking returns the leases that keep the waiter from being granted the lock, and how many permits those may have that
// stay. A revoked lease ends by itself.
func (r *Record) blocking(w *Waiter) (leases []*Lease, spare int) {
	m := w.Member()
	if r.isCompatible(m) {
		return nil, 0
	}
	conflicting, out := r.conflicting(m.Mode), 0
	for i := range conflicting {
		l := &conflicting[i]
		if m.Mode == Permit && l.Mode == Permit {
			spare = m.Capacity - m.permits()
		}
		if !l.Revoked() {
			leases, out = append(leases, l), out+l.Permits()
		}
	}
	if out <= spare {
		return nil, 0
	}
	return leases, spare
}

// under returns the stuck calls that must end before the lease does.
func (g *waitGraph) under(l *Lease) (stuck []*stuckCall) {
	for _, c := range g.byTask[l.Task] {
		if c.isStuck() {
			stuck = append(stuck, c)
		}
	}
	return stuck
}

// reduce finds those of the calls, which are in the order in which they joined, that may go on.
func (g *waitGraph) reduce(calls []*stuckCall) {
	for again := true; again; {
		again = false
		for _, c := range calls {
			if c.isStuck() && !slices.ContainsFunc(c.places, g.isStuckAt) {
				c.goesOn, again = true, true
			}
		}
	}
}

// isStuckAt reports whether a stuck call keeps that of p from being granted the lock. If the call just ahead may go on,
// so may all that are ahead of that one.
func (g *waitGraph) isStuckAt(p place) bool {
	for i := len(p.ahead) - 1; i >= 0; i-- {
		if c := p.ahead[i]; !c.gone {
			if c.isStuck() {
				return true
			}
			if !p.inTree {
				break
			}
		}
	}
	return g.leasesStay(p)
}

// leasesStay reports whether stuck calls keep enough of the leases for the call of p not to be granted the lock.
func (g *waitGraph) leasesStay(p place) bool {
	permits := 0
	for _, l := range p.blocking {
		if g.stays(l) {
			permits += l.Permits()
		}
	}
	return permits > p.spare
}

// stays reports whether a stuck call keeps the lease from ending.
func (g *waitGraph) stays(l *Lease) bool {
	return slices.ContainsFunc(g.byTask[l.Task], (*stuckCall).isStuck)
}

// An obstacle is a call that another one waits for at the place.
type obstacle struct {
	call  *stuckCall
	place place
	step  DeadlockStep
}

// obstacles returns stuck calls that c waits for: those under the leases in its way, and then the nearest one ahead of
// it, or all of them. The nearest one waits for the others.
func (g *waitGraph) obstacles(c *stuckCall, all bool) (found []obstacle) {
	for _, p := range c.places {
		if !g.leasesStay(p) {
			continue // the call may be stuck at another of its locks
		}
		for _, l := range p.blocking {
			for _, other := range g.under(l) {
				found = append(found, obstacle{other, p, p.step(l, false)})
			}
		}
	}
	for _, p := range c.places {
		for i := len(p.ahead) - 1; i >= 0 && (all || p.inTree || i == len(p.ahead)-1); i-- {
			if other := p.ahead[i]; other.isStuck() {
				found = append(found, obstacle{other, p, p.step(other.leaseAt(p.record), true)})
			}
		}
	}
	return found
}

// step returns the step of the place's call, in whose way the lease is, or the waiter for that lease. An intention stands
// for a lock below.
func (p place) step(inWay *Lease, ahead bool) DeadlockStep {
	s := DeadlockStep{
		Name: p.waiter.Lease.heldName(p.record.Name), Holder: p.waiter.Lease.Holder, WaitsFor: inWay.Holder, Ahead: ahead,
	}
	if at := inWay.heldName(p.record.Name); at != s.Name {
		s.At = at
	}
	return s
}

// leaseAt returns the lease that the call waits for in the queue of the record, in which it has a place.
func (c *stuckCall) leaseAt(r *Record) *Lease {
	i := slices.IndexFunc(c.places, func(p place) bool { return p.record == r })
	return &c.places[i].waiter.Lease
}

// circles returns the calls that wait for each other: the strongly connected components, by Tarjan, "Depth-first search
// and linear graph algorithms" (1972).
func (g *waitGraph) circles() (all [][]*stuckCall) {
	var stack []*stuckCall
	next := 0
	var visit func(c *stuckCall)
	visit = func(c *stuckCall) {
		next++
		c.index, c.low, c.onStack = next, next, true
		stack = append(stack, c)
		waitsForItself := false
		for _, o := range g.obstacles(c, false) {
			switch {
			case o.call.index == 0:
				visit(o.call)
				c.low = min(c.low, o.call.low)
			case o.call.onStack:
				c.low = min(c.low, o.call.index)
				waitsForItself = waitsForItself || o.call == c
			}
		}
		if c.low < c.index {
			return
		}
		at := slices.Index(stack, c)
		circle := slices.Clone(stack[at:])
		if stack = stack[:at]; len(circle) > 1 || waitsForItself {
			all = append(all, circle)
		}
		for _, member := range circle {
			member.onStack = false
		}
	}
	for _, c := range g.calls {
		if c.isStuck() && c.index == 0 {
			visit(c)
		}
	}
	return all
}
