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
	judge    *judge
	register *register
	database *memlock.Memory
	late     sync.WaitGroup // messages under way
	mint

	mu       sync.Mutex
	started  lock.Replica          // how many replicas were, so that each has its number
	replicas [servers]lock.Replica // the number of each server's replica; zero while it is down
	attempts map[string]*attempt   // by holder
}

// A locker gives workers the lock while they work, one way or another.
type locker interface {
	// do takes the lock for as long as the work lasts. It returns an error if that
	// could not be, or the work's.
	do(a *attempt, work func(hold) error) error
	// restarts has the server forget what a server forgets that dies, and be down.
	restarts(server int)
	// returns has the server be up again.
	returns(server int)
}

func newWorld(p Plan, v Variant) *world {
	w := &world{Trace: newTrace(), plan: p, variant: v, attempts: map[string]*attempt{}, mint: mint{made: map[lock.Token]lock.Token{}}}
	w.database = memlock.NewOn(func() time.Time { return w.clock(0) })
	w.judge = &judge{world: w, going: map[*attempt]hold{}, knew: map[seat][]Span{}}
	w.register = &register{judge: w.judge, fenced: v.fenced, reads: map[lock.Token]int64{}}
	w.locker = v.locker(w)
	for i := range servers {
		w.starts(i)
	}
	return w
}

// clock returns what the server's clock shows now.
func (w *world) clock(server int) time.Time {
	return w.begun.Add(w.plan.Clocks[server].shows(w.now()))
}

// replica returns the service as the server's replica serves it, nil while it is down.
func (w *world) replica(server int) lock.Service {
	w.mu.Lock()
	defer w.mu.Unlock()
	number := w.replicas[server]
	if number == 0 {
		return nil
	}
	if w.variant.draw != nil {
		return minting{w.database.Replica(number), w, server}
	}
	return w.database.Replica(number)
}

// starts has a replica start on the server.
func (w *world) starts(server int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started++
	w.replicas[server] = w.started
}

// dies has the replica on the server die.
func (w *world) dies(server int) {
	w.mu.Lock()
	number := w.replicas[server]
	w.replicas[server] = 0
	w.mu.Unlock()
	w.database.Crash(number)
}

// look returns the lock as it is in the database.
func (w *world) look(name string) lock.Lock {
	l, err := w.database.Replica(0).Lock(context.Background(), name)
	if err != nil {
		panic(err) // the names are good
	}
	return l
}

func (w *world) enlist(a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[a.holder] = a
}

// kind returns what a worker wants next.
func (w *world) kind(rnd *rand.Rand) kind {
	if !w.variant.everything {
		return kinds[0]
	}
	return oneOf(rnd, kinds...)
}
