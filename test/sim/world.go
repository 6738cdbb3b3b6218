package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// The lock that guards the register, and a semaphore that guards nothing.
const (
	ledger  = "ledger"
	gates   = "gates"
	permits = 2
)

// A world is servers, a register, and workers who share it. It exists in one bubble of
// testing/synctest.
type world struct {
	*Trace
	plan     Plan
	variant  Variant
	locker   locker
	oracle   *oracle
	register *register
	database *memlock.Memory
	inFlight sync.WaitGroup // messages under way
	tokenMint

	mu       sync.Mutex
	started  lock.Replica          // how many replicas were, so that each has its number
	replicas [servers]lock.Replica // the number of each server's replica; zero while it is down
	attempts map[string]*attempt   // by holder
}

// A locker gives workers the lock while they work, one way or another.
type locker interface {
	// do takes the lock for as long as the work lasts. It returns an error if that
	// could not be, or the work's.
	do(a *attempt, work func(holdStatus) error) error
	// crash has the server forget what a server forgets that dies, and be down.
	crash(server int)
	// restart has the server be up again.
	restart(server int)
}

func newWorld(p Plan, v Variant) *world {
	w := &world{Trace: newTrace(), plan: p, variant: v, attempts: map[string]*attempt{}, tokenMint: tokenMint{byLease: map[lock.Token]lock.Token{}, terms: map[int]int{}}}
	w.database = memlock.NewOn(func() time.Time { return w.clock(0) })
	w.oracle = &oracle{world: w, current: map[*attempt]holdStatus{}, informed: map[leaseKey][]Interval{}}
	w.register = &register{oracle: w.oracle, fenced: v.fenced, reads: map[lock.Token]int64{}}
	w.locker = v.locker(w)
	for i := range servers {
		w.startReplica(i)
	}
	return w
}

// clock returns what the server's clock shows now.
func (w *world) clock(server int) time.Time {
	return w.start.Add(w.plan.Clocks[server].shows(w.now()))
}

// replica returns the service as the server's replica serves it, nil while it is down.
func (w *world) replica(server int) lock.Service {
	w.mu.Lock()
	defer w.mu.Unlock()
	number := w.replicas[server]
	if number == 0 {
		return nil
	}
	if w.variant.tokens != nil {
		return mintingService{w.database.Replica(number), w, server}
	}
	return w.database.Replica(number)
}

// startReplica has a replica start on the server.
func (w *world) startReplica(server int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started++
	w.replicas[server] = w.started
}

// stopReplica has the replica on the server die.
func (w *world) stopReplica(server int) {
	w.mu.Lock()
	number := w.replicas[server]
	w.replicas[server] = 0
	w.mu.Unlock()
	w.forget(server)
	w.database.Crash(number)
}

// lockNow returns the lock as it is in the database.
func (w *world) lockNow(name string) lock.Lock {
	l, err := w.database.Replica(0).Lock(context.Background(), name)
	if err != nil {
		panic(err) // the names are good
	}
	return l
}

func (w *world) addAttempt(a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[a.holder] = a
}

// scenario returns what a worker wants next.
func (w *world) scenario(rnd *rand.Rand) scenario {
	if !w.variant.allGuards {
		return scenarios[0]
	}
	return oneOf(rnd, scenarios...)
}
