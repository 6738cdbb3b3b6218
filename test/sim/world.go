package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// The lock that guards the register, one below it in its tree, which guards the register as well; and locks that guard
// nothing: a semaphore, work that is done once, and work that must be looked at when its worker dies.
const (
	ledger  = "ledger"
	page    = "ledger:page"
	gates   = "gates"
	report  = "report"
	state   = "state"
	permits = 2 // of the gates, unless the operator changes that
)

// A world has servers, a register, and workers that share it. It lives in one bubble of testing/synctest.
type world struct {
	*Trace
	plan     Plan
	variant  Variant
	locker   locker
	oracle   *oracle
	operator *operator
	register *register
	database *memlock.Memory
	inFlight sync.WaitGroup // messages on the network
	tokenMint

	mu       sync.Mutex
	started  lock.Replica          // how many replicas have started, which numbers them
	replicas [servers]lock.Replica // the number of each server's replica; zero while it is down
	attempts map[string]*attempt   // by holder
}

// A locker gives workers the lock while they work.
type locker interface {
	// do acquires the lock for the duration of the work. It returns an error if that failed, or the error of the
	// work.
	do(a *attempt, work func(holdStatus) error) error
	// crash stops the server, which loses what it keeps in memory.
	crash(server int)
	// restart starts the server again.
	restart(server int)
}

func newWorld(p Plan, v Variant) *world {
	w := &world{Trace: newTrace(), plan: p, variant: v, attempts: map[string]*attempt{}, tokenMint: tokenMint{byLease: map[lock.Token]lock.Token{}, terms: map[int]int{}}}
	w.database = memlock.NewOn(func() time.Time { return w.clock(0) })
	if _, err := w.database.Replica(0).DeclareTree(context.Background(), ledger); err != nil {
		panic(err) // nothing is held
	}
	w.operator = newOperator(w)
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

// replica returns the service of the replica on the server, nil while it is down.
func (w *world) replica(server int) paddock.Service {
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

// startReplica starts a replica on the server.
func (w *world) startReplica(server int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started++
	w.replicas[server] = w.started
}

// stopReplica kills the replica on the server.
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
		panic(err) // the names are valid
	}
	return l
}

func (w *world) addAttempt(a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[a.holder] = a
}

// scenario returns what a worker does next. In its last attempt it must get the lock, whoever has done its work.
func (w *world) scenario(rnd *rand.Rand, last bool) scenario {
	if !w.variant.allGuards {
		return scenarios[0]
	}
	s := oneOf(rnd, scenarios...)
	for last && s.once {
		s = oneOf(rnd, scenarios...)
	}
	return s
}
