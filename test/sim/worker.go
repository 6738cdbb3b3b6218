package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// A worker is a process that wants the lock again and again.
type worker struct {
	*network
	world *world
	name  string
	rnd   *rand.Rand // for what it wants
}

// An attempt is a worker's way to the lock once, and what it does there: read the
// register, work, look at times whether the lock is still its, and write.
type attempt struct {
	*worker
	holder      string
	scenario    scenario
	wait        time.Duration
	workPeriods []time.Duration // of work, each followed by a look
	lastPeriod  time.Duration   // of work after the last look, until the write is sent

	granted   time.Duration // when it was told that it has the lock
	last      bool          // the worker's last, when there was no trouble any more
	acquires  int           // how often it asked
	disturbed bool          // something was wrong with its messages
}

// run tries while there is trouble, and then once more until it has the lock.
func (w *worker) run() {
	n := 1
	for ; ; n++ {
		if w.sleep(working, randomDuration(w.rnd, w.plan.TTL/2)); w.dead() {
			return
		}
		if w.now() >= w.plan.Quiet {
			break
		}
		if err := w.attempt(n, oneOf(w.rnd, 0, randomDuration(w.rnd, w.plan.TTL), w.plan.TTL*3, time.Minute)); err != nil {
			w.detail(w.name, "gets no further: %v", code(err))
		}
	}
	if err := w.attempt(n, guard.Forever); err != nil && !errors.Is(err, lock.ErrStaleToken) {
		w.world.oracle.reportGlobal(Unserved, "%s had all the time, and no trouble: %v", w.name, err)
	}
}

// attempt tries once.
func (w *worker) attempt(n int, wait time.Duration) error {
	ttl, holder := w.plan.TTL, fmt.Sprintf("%s, try %d", w.name, n)
	rnd := newRNG(w.plan.Seed, "work of "+holder) // the same whatever came of the tries before
	a := &attempt{worker: w, holder: holder, scenario: w.world.scenario(rnd), wait: wait, last: wait == guard.Forever}
	for range 1 + rnd.IntN(4) {
		a.workPeriods = append(a.workPeriods, randomDuration(rnd, oneOf(rnd, ttl/20, ttl/20, ttl/2)))
	}
	a.lastPeriod = randomDuration(rnd, ttl/15)
	w.world.addAttempt(a)
	defer w.awake(working)
	return w.world.locker.do(a, a.work)
}

// lock returns the name of the lock that is wanted.
func (a *attempt) lock() string { return a.scenario.lock }

// work is what is done under the lock.
func (a *attempt) work(h holdStatus) error {
	if a.dead() {
		return errDied
	}
	j := a.world.oracle
	j.holdBegins(a, h)
	defer j.holdEnds(a)
	read := func(r *register) (int64, error) { return r.read(a, h.Token()) }
	was, err := a.register("read", read)
	if err != nil {
		return err
	}
	for _, d := range a.workPeriods {
		if a.sleep(working, d); a.dead() {
			return errDied
		}
		if h.Err() != nil {
			a.note(a.name, "finds the lock lost, and stops")
			return h.Err()
		}
	}
	if a.sleep(working, a.lastPeriod); a.dead() {
		return errDied
	}
	if a.scenario.mode == lock.Exclusive {
		_, err = a.register("write", func(r *register) (int64, error) { return 0, r.write(a, h.Token(), was) })
	} else {
		_, err = a.register("read", read)
	}
	return err
}

// register does something with the register, over the network. Permits guard none.
func (a *attempt) register(what string, op func(*register) (int64, error)) (int64, error) {
	if a.scenario.mode == lock.Permit {
		return 0, nil
	}
	a.awake(working)
	f, until := a.delivery(what), time.Now().Add(3*a.plan.TTL)
	f.duplicateAfter = 0 // a write that lands twice would be wrong with no lock at all
	return ask(context.Background(), a.network, working, f, until, func(context.Context) (int64, error) { return op(a.world.register) })
}

// code returns what the error is, in a word.
func code(err error) string {
	if e := (*lock.Error)(nil); errors.As(err, &e) {
		return e.Code.Error()
	}
	return err.Error()
}
