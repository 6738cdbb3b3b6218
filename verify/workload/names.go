package workload

import (
	"fmt"
	"sync/atomic"

	"github.com/paddock-lock/paddock/lock"
)

// A lockKind is what a lock is used for.
type lockKind int

const (
	exclusiveOnly     lockKind = iota // exclusive leases only
	readersAndWriters                 // shared and exclusive leases
	permitsOnly                       // permits only
)

// capacity is that of all semaphores.
const capacity = 3

// kindOf returns what the lock with that number is used for: of four in a row, two are mutexes, one
// is for readers and writers, one is a semaphore.
func kindOf(number int) lockKind {
	return [...]lockKind{exclusiveOnly, readersAndWriters, permitsOnly, exclusiveOnly}[number%4]
}

// names are the current names of the locks.
type names struct {
	prefix string
	turns  int64 // per name
	taken  []atomic.Int64
}

func newNames(o Options) *names {
	return &names{prefix: o.Prefix, turns: int64(o.TurnsPerName), taken: make([]atomic.Int64, o.Locks)}
}

// forTurn returns the name of the lock with that number for one turn.
func (n *names) forTurn(number int) string {
	generation := (n.taken[number].Add(1) - 1) / n.turns
	return fmt.Sprintf("%s:%d.%d", n.prefix, number, generation)
}

// now returns the current name of the lock with that number.
func (n *names) now(number int) string {
	return fmt.Sprintf("%s:%d.%d", n.prefix, number, max(n.taken[number].Load()-1, 0)/n.turns)
}

// keysOfLock is how many resources a lock guards; for a semaphore, each of its slots.
const keysOfLock = 2

// keyOf returns the name of a resource that the lock, or that slot of it, guards.
func keyOf(name string, mode lock.Mode, slot, number int) string {
	if mode == lock.Permit {
		return fmt.Sprintf("%s:s%d:k%d", name, slot, number%keysOfLock)
	}
	return fmt.Sprintf("%s:k%d", name, number%keysOfLock)
}
