package lock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxDeadlockLocks bounds the locks of a deadlock that is broken. A greater one lasts until a wait in it ends.
const MaxDeadlockLocks = 128

// A Deadlock is a circle of waiting calls of which none can go on: each waits for a lease that ends, by its TaskID,
// only after another of these waits, or in a queue behind another of them.
//
// Deadlocks are found by reduction, as in Holt, "Some deadlock properties of computer systems" (1972): calls whose
// blockers may go on are removed until only those are left that wait for each other. A call waits for all leases that
// it conflicts with, so one that cannot end is enough to stop it; a permit needs any one, so none of them may be able
// to end. What is not known, such as the waits of a lease without a TaskID, counts as able to go on. So a part of the
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

// A DeadlockStep is one waiting call of a Deadlock or of a WaitChain, and what it waits for.
type DeadlockStep struct {
	Name     string // the lock that it waits for
	Holder   string // of the call
	WaitsFor string // the holder of the lease, or of the waiting call, that is in the way
	Ahead    bool   // in the way is a waiting call that is ahead in the queue, not a lease
}

// textOf describes the circle.
func textOf(cycle []DeadlockStep) string {
	var steps []string
	for _, s := range cycle {
		how := "holds it"
		if s.Ahead {
			how = "is ahead in its queue"
		}
		steps = append(steps, fmt.Sprintf("%s waits for %s, and %s %s", strconv.Quote(s.Holder), s.Name, strconv.Quote(s.WaitsFor), how))
	}
	return strings.Join(steps, "; ")
}

// DeadlockError returns the refusal of the first call of the circle.
func DeadlockError(cycle []DeadlockStep) *Error {
	e := &Error{Code: ErrDeadlock, Cycle: cycle}
	if len(cycle) == 1 && !cycle[0].Ahead {
		e.Detail = fmt.Sprintf("The call would wait for itself: its own task holds %s, as %s. Locks are not re-entrant: use the "+
			"lease that the task has, or release it first. In a session, calls without a task_id are of one task.", cycle[0].Name, strconv.Quote(cycle[0].WaitsFor))
		return e
	}
	e.Detail = "Deadlock: " + textOf(cycle) + ". This call gives way. Release what you hold, and begin again."
	return e
}

// reasonDeadlock is the reason of the event that removes the victim of a deadlock from a queue.
const reasonDeadlock = "deadlock"

// A BreakDeadlock ends the wait of a call if it is the victim of a deadlock. Its replica sends it, with the locks of a
// Deadlock that FindDeadlocks has found.
type BreakDeadlock struct {
	Locks      []string // in order, with all locks that the call waits for
	LeaseID    LeaseID
	Attachment Attachment
}

// Names returns the locks.
func (b BreakDeadlock) Names() []string { return b.Locks }

// Refs returns nil.
func (b BreakDeadlock) Refs() []LeaseRef { return nil }

// Apply refuses the call with ErrDeadlock and removes its places, if there still is the deadlock and the call still is
// its victim. Otherwise it decides nothing about the call, and sets Queued.
func (b BreakDeadlock) Apply(v View) Decision {
	d := begin(v)
	d.applyTime()
	found := d.deadlocksOf(b.LeaseID)
	i := slices.IndexFunc(found, func(d Deadlock) bool { return d.Attachment == b.Attachment })
	if i < 0 {
		out := d.finish(nil)
		out.Queued = true
		return out
	}
	cycle := CycleOf(found[i].Cycle)
	for _, s := range d.locks {
		if w, waits := s.waiter(b.LeaseID); waits && w.Attachment == b.Attachment {
			s.removeWaiter(w.Lease.ID)
			s.emit(Event{Kind: Dequeued, Place: w.Place, Reason: reasonDeadlock, Cycle: cycle}, w.Lease)
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
