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
	permitsByRule                     // permits only, whose number is that of a rule
	doneOnce                          // exclusive leases only; a release closes the lock, since its work is done
)

// capacity is that of all semaphores without a rule.
const capacity = 3

// kindOf returns what the lock with that number is used for: of four in a row, two are mutexes, one
// is for readers and writers, one is a semaphore.
func kindOf(number int) lockKind {
	return [...]lockKind{exclusiveOnly, readersAndWriters, permitsOnly, exclusiveOnly}[number%4]
}

// treePaths are the locks in the tree, in each generation of its names: one covers all others, one covers another.
var treePaths = [...]string{"", ":a", ":a:b", ":c"}

// names are the current names of the locks. Those from treeFrom on are in a tree.
type names struct {
	prefix   string
	turns    int64 // per name
	taken    []atomic.Int64
	treeFrom int
	inTree   atomic.Int64 // taken of all locks in the tree
	ofPool   atomic.Int64 // taken of the pool
	ofOnce   atomic.Int64 // taken of the lock that releases close
}

func newNames(o Options) *names {
	return &names{prefix: o.Prefix, turns: int64(o.TurnsPerName), taken: make([]atomic.Int64, o.Locks), treeFrom: o.Locks}
}

// pool returns the number of the semaphore with a rule: the one after the locks in the tree.
func (o Options) pool() int { return o.Locks + len(treePaths) }

// once returns the number of the lock that releases close.
func (o Options) once() int { return o.pool() + 1 }

// turnsPerOnce is after how many turns the name of that lock is replaced: it may be closed for a minute.
const turnsPerOnce = 20

// poolsOf returns the scope of the rule of a run.
func poolsOf(prefix string) lock.Scope { return lock.Scope(prefix + ":pool:") }

// rootOf returns the root of the tree of a run.
func rootOf(prefix string) string { return prefix + ":tree" }

// forTurn returns the name of the lock with that number for one turn.
func (n *names) forTurn(number int) string {
	if number == n.treeFrom+len(treePaths) {
		return fmt.Sprintf("%s%d", poolsOf(n.prefix), (n.ofPool.Add(1)-1)/n.turns)
	}
	if number == n.treeFrom+len(treePaths)+1 {
		return fmt.Sprintf("%s:once.%d", n.prefix, (n.ofOnce.Add(1)-1)/turnsPerOnce)
	}
	if number >= n.treeFrom {
		return n.ofTree(number, n.inTree.Add(1))
	}
	generation := (n.taken[number].Add(1) - 1) / n.turns
	return fmt.Sprintf("%s:%d.%d", n.prefix, number, generation)
}

// ofTree returns the name of a lock in the tree at a turn of all of them together.
func (n *names) ofTree(number int, turn int64) string {
	generation := max(turn-1, 0) / (n.turns * int64(len(treePaths)))
	return fmt.Sprintf("%s:%d%s", rootOf(n.prefix), generation, treePaths[number-n.treeFrom])
}

// now returns the current name of the lock with that number, which is not the pool.
func (n *names) now(number int) string {
	if number >= n.treeFrom {
		return n.ofTree(number, n.inTree.Load())
	}
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
