package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// A worker is a process that wants the lock again and again.
type worker struct {
	*network
	world *world
	name  string
	rnd   *rand.Rand // for its choices
}

// An attempt is one try of a worker to get the lock and to work under it: read the register, work, check the lock
// from time to time, and write.
type attempt struct {
	*worker
	holder      string
	scenario    scenario
	wait        time.Duration
	workPeriods []time.Duration // each followed by a check of the lock
	lastPeriod  time.Duration   // from the last check until the write is sent

	granted   time.Duration // when it learned that it has the lock
	last      bool          // the worker's last attempt, without faults
	acquires  int           // how many acquire requests it sent
	disturbed bool          // its messages met a fault
	completed bool          // its work was done
	succeeded bool          // and its guard says so, too
}

// run makes attempts while there are faults, and a last one that waits until it has the lock.
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
			w.detail(w.name, "fails: %v", code(err))
		}
	}
	if err := w.attempt(n, guard.Forever); err != nil && !errors.Is(err, lock.ErrStaleToken) {
		w.world.oracle.reportGlobal(Unserved, "%s could wait without bound and met no fault: %v", w.name, err)
	}
}

// attempt makes one attempt.
func (w *worker) attempt(n int, wait time.Duration) error {
	ttl, holder := w.plan.TTL, fmt.Sprintf("%s, try %d", w.name, n)
	rnd := newRNG(w.plan.Seed, "work of "+holder) // the same whatever the outcome of earlier attempts
	last := wait == guard.Forever
	a := &attempt{worker: w, holder: holder, scenario: w.world.scenario(rnd, last), wait: wait, last: last}
	for range 1 + rnd.IntN(4) {
		a.workPeriods = append(a.workPeriods, randomDuration(rnd, oneOf(rnd, ttl/20, ttl/20, ttl/2)))
	}
	a.lastPeriod = randomDuration(rnd, ttl/15)
	w.world.addAttempt(a)
	defer w.awake(working)
	err := w.world.locker.do(a, a.work)
	a.succeeded = err == nil && a.completed
	return err
}

// lock returns the name of the lock.
func (a *attempt) lock() string { return a.scenario.lock }

// locks returns the names of all locks that the attempt holds at a time.
func (a *attempt) locks() []string {
	names := []string{a.scenario.lock}
	for _, m := range a.scenario.others {
		names = append(names, m.Name)
	}
	return names
}

// covering returns the first lock of the attempt that is the named one, or above or below it; empty if there is none.
func (a *attempt) covering(name string) string {
	for _, own := range a.locks() {
		if own == name || strings.HasPrefix(own, name+":") || strings.HasPrefix(name, own+":") {
			return own
		}
	}
	return ""
}

// modeOf returns the mode in which the attempt acquires the lock.
func (a *attempt) modeOf(name string) lock.Mode {
	for _, m := range a.scenario.others {
		if m.Name == name {
			return m.Mode
		}
	}
	return a.scenario.mode
}

// permitsOf returns how many permits of the lock the attempt acquires, if that is a semaphore.
func (a *attempt) permitsOf(name string) int {
	if name == a.scenario.lock {
		return max(a.scenario.permits, 1)
	}
	return 1
}

// work is the work under the lock.
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
			a.note(a.name, "finds that the lock is lost, and stops")
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
	a.completed = err == nil
	return err
}

// register performs an operation on the register over the network, if the lock guards it.
func (a *attempt) register(what string, op func(*register) (int64, error)) (int64, error) {
	if a.lock() != ledger && a.lock() != page {
		return 0, nil
	}
	a.awake(working)
	f, until := a.delivery(what), time.Now().Add(3*a.plan.TTL)
	f.duplicateAfter = 0 // a duplicate write would be wrong even without a lock
	return ask(context.Background(), a.network, working, f, until, func(context.Context) (int64, error) { return op(a.world.register) })
}

// code returns the error's code.
func code(err error) string {
	if e := (*lock.Error)(nil); errors.As(err, &e) {
		return e.Code.Error()
	}
	return err.Error()
}
