package lock

import (
	"slices"
	"time"
)

// A Deadlock is a circle of waiting calls of which none can go on: each waits for a lease that ends, by its TaskID,
// only after another of these waits, or in a queue behind another of them.
//
// Deadlocks are found by reduction, as in Holt, "Some deadlock properties of computer systems" (1972): calls whose
// blockers may go on are removed until only those are left that wait for each other. A call waits for all leases that
// it conflicts with, so one that cannot end is enough to stop it; a call for permits goes on if enough of them can be
// freed. What is not known, such as the waits of a lease without a TaskID, counts as able to go on. So a part of the
// locks shows some of the deadlocks, and never a false one.
//
// A call of the circle is its victim, and gives way: the one that joined last, of those whose end lets the others of
// the circle go on. If one is not enough, there is a Deadlock for each of several victims: as few as are found,
// preferably at one lock. Only a call whose task holds what another call of the circle waits for is a victim. So a call
// without a task is none, even if it is ahead of one of these calls in a queue. Leases are never taken away.
type Deadlock struct {
	// Cycle is from the victim on: each waits for the next, and the last one for a lease of the victim's task.
	Cycle []DeadlockStep
	Locks []string // of the circle and of the victim, in order: what BreakDeadlock needs
	// The victim's call.
	Victim     LeaseID
	Attachment Attachment
	Replica    Replica
}

// A BreakDeadlock ends the wait of a call if it is the victim of a deadlock. Its replica sends it, with the locks of a
// Deadlock that FindDeadlocks has found.
type BreakDeadlock struct {
	Locks      []string // in order, with all locks that the call waits for
	LeaseID    LeaseID
	Attachment Attachment
}

// Names returns the locks.
func (b BreakDeadlock) Names() []string { return b.Locks }

// Traits returns those of a command that may end a wait, whatever else is sent about it.
func (b BreakDeadlock) Traits() Traits { return Traits{} }

// In returns b: its locks are those of waiters, which know their sets.
func (b BreakDeadlock) In(*Policy) (Command, error) { return b, nil }

// Apply refuses the call with ErrDeadlock and removes its places, if there still is the deadlock and the call still is
// its victim. Otherwise it decides nothing about the call, and sets Queued.
func (b BreakDeadlock) Apply(v View) Decision {
	d := begin(v, nil)
	d.applyTime()
	found := d.deadlocksOf(b.LeaseID)
	i := slices.IndexFunc(found, func(d Deadlock) bool { return d.Attachment == b.Attachment })
	if i < 0 {
		return d.finishWaiting()
	}
	cycle := CycleOf(found[i].Cycle)
	for _, s := range d.locks {
		if w, waits := s.waiter(b.LeaseID); waits && w.Attachment == b.Attachment {
			s.removeWaiter(w.Lease.ID)
			s.emit(Event{Kind: Dequeued, Place: w.Place, Reason: reasonDeadlock, Cycle: cycle, Caller: w.Caller}, w.Lease)
		}
	}
	d.promote()
	return d.finish(DeadlockError(found[i].Cycle))
}

// deadlocksOf returns the deadlocks that the locks show, and whose victim has the LeaseID.
func (d *decider) deadlocksOf(id LeaseID) []Deadlock {
	records, attached := make([]Record, len(d.locks)), make(map[*Waiter]bool)
	for i, s := range d.locks {
		records[i] = s.record
		for _, w := range s.record.Queue {
			attached[w] = s.attached(w)
		}
	}
	return newWaitGraph(records, func(w *Waiter) bool { return attached[w] }).deadlocks(func(c *stuckCall) bool { return c.id == id })
}

// FindDeadlocks returns the deadlocks of the waiting calls of the locks, as far as these locks show them, in the view
// of the replica self at now. The leases of the locks must not be over.
func FindDeadlocks(locks []Record, now time.Time, self Replica) []Deadlock {
	return newWaitGraph(locks, func(w *Waiter) bool { return w.Attached(now, self) }).deadlocks(func(*stuckCall) bool { return true })
}

// deadlocks returns a Deadlock for each victim that the function selects in a circle.
func (g *waitGraph) deadlocks(of func(*stuckCall) bool) (all []Deadlock) {
	g.reduce(g.calls)
	for _, circle := range g.circles() {
		victims, locks := g.breaks(circle)
		for _, victim := range victims {
			if !of(victim) {
				continue
			}
			d := g.deadlockOf(victim)
			if locks != nil {
				d.Locks = locks
			}
			if len(d.Locks) <= MaxDeadlockLocks {
				all = append(all, d)
			}
		}
	}
	return all
}

// deadlockOf returns the shortest circle of the victim, in which another call waits for a lease of its task.
func (g *waitGraph) deadlockOf(victim *stuckCall) Deadlock {
	w := victim.places[0].waiter
	d := Deadlock{Victim: victim.id, Attachment: w.Attachment, Replica: w.Replica}
	type reached struct {
		from *stuckCall
		by   obstacle
	}
	to, queue := map[*stuckCall]reached{}, []*stuckCall{victim}
	for to[victim].from == nil {
		c := queue[0]
		queue = queue[1:]
		for _, o := range g.obstacles(c, true) {
			if _, known := to[o.call]; !known && (o.call != victim || !o.step.Ahead) {
				to[o.call] = reached{c, o}
				queue = append(queue, o.call)
			}
		}
	}
	shown := proof{waitGraph: g, calls: map[*stuckCall]bool{}, locks: slices.Clone(victim.set)}
	var path []*stuckCall
	for c := victim; len(path) == 0 || c != victim; c = to[c].from {
		path, shown.calls[c] = append(path, c), true
	}
	for _, c := range slices.Backward(path) {
		d.Cycle = append(d.Cycle, to[c].by.step)
		shown.addObstacle(to[c].by)
	}
	for _, p := range victim.places {
		shown.locks = append(shown.locks, p.record.Name)
	}
	d.Locks = shown.inOrder()
	return d
}
