package verify_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// The locks of deadlocks.
const (
	leftLock    = "play:left"
	rightLock   = "play:right"
	readersLock = "play:readers"
)

func ofTask(task lock.TaskID, name string, mode lock.Mode) lock.Acquire {
	return lock.Acquire{Locks: []lock.Member{{Name: name, Mode: mode}}, Task: task}
}

// inCircle lets the holder wait for a lock as long as needed, or until it is refused with the code.
func (c *harness) inCircle(holder string, code error, a lock.Acquire) {
	c.t.Helper()
	a.Wait = 20 * time.Second
	c.acquire(holder, code, a)
}

// useTasks lets two tasks acquire two locks in opposite orders, so that the second wait of nat is the victim. Then a
// task waits for a lock that it reads, behind a writer that waits for it.
func (c *harness) useTasks() {
	c.t.Helper()
	c.acquire("mia", nil, ofTask("m", leftLock, lock.Exclusive))
	c.acquire("nat", nil, ofTask("n", rightLock, lock.Exclusive))
	c.waitWhile("mia again", ofTask("m.1", rightLock, lock.Exclusive), func() {
		c.inCircle("nat again", lock.ErrDeadlock, ofTask("n.1", leftLock, lock.Exclusive))
		c.release("nat")
	})
	c.release("mia again")
	c.release("mia")
	c.acquire("ola", nil, ofTask("o", readersLock, lock.Shared))
	c.waitWhile("pia", ofTask("p", readersLock, lock.Exclusive), func() {
		c.inCircle("ola again", lock.ErrDeadlock, ofTask("o.1", readersLock, lock.Shared))
		c.release("ola")
	})
	c.release("pia")
	c.poll()
}

// cycle changes the circle in the holder's refusal.
func (s editable) cycle(holder string, change func([]lock.DeadlockStep) []lock.DeadlockStep) {
	s.t.Helper()
	c := s.call(verify.Acquire, holder, 0)
	e := new(lock.Error)
	if !errors.As(c.Err, &e) || e.Code != lock.ErrDeadlock {
		s.t.Fatalf("%q was answered %v", holder, c.Err)
	}
	other := *e
	other.Cycle = change(append([]lock.DeadlockStep(nil), e.Cycle...))
	c.Err = &other
}

// request changes the holder's first acquire.
func (s editable) request(holder string, change func(*lock.Acquire)) {
	s.t.Helper()
	c := s.call(verify.Acquire, holder, 0)
	a := c.Request.(lock.Acquire)
	change(&a)
	c.Request = a
}

// swapRevisions swaps the revisions of two events.
func swapRevisions(a, b *lock.Event) { a.Revision, b.Revision = b.Revision, a.Revision }

func TestFalseVictimsAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"a call that does not wait is refused": {byDeadlocks, func(s editable) {
			s.request("nat again", func(a *lock.Acquire) { a.Wait = 0 })
		}, `"nat again" was refused with deadlock, but it did not ask to wait`},
		"a call without a task is refused": {byDeadlocks, func(s editable) {
			s.request("nat again", func(a *lock.Acquire) { a.Task = "" })
		}, `"nat again" was refused with deadlock, but it has no task and no session`},
		"the call that is only ahead is refused": {byDeadlocks, func(s editable) {
			s.cycle("nat again", func(c []lock.DeadlockStep) []lock.DeadlockStep {
				c[1].WaitsFor, c[1].Ahead = "nat again", true
				return c
			})
		}, "no call of the circle waits for what its task holds"},
		"the circle is missing": {byDeadlocks, func(s editable) {
			s.cycle("nat again", func([]lock.DeadlockStep) []lock.DeadlockStep { return nil })
		}, "but not of its circle"},
		"the circle is one of others": {byDeadlocks, func(s editable) {
			s.cycle("nat again", func(c []lock.DeadlockStep) []lock.DeadlockStep { return c[1:] })
		}, `the circle begins with "mia again"`},
		"the circle is cut short": {byDeadlocks, func(s editable) {
			s.cycle("nat again", func(c []lock.DeadlockStep) []lock.DeadlockStep { return c[:1] })
		}, `the task of "mia", which held play:left, does not include that of "nat again"`},
	})
}

func TestFalseDeadlocksAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"no event removes the victim": {byDeadlocks, func(s editable) {
			s.event(lock.Dequeued, "nat again").Reason = "timeout"
		}, "no event removed it"},
		"the lease in the way ended before": {byDeadlocks, func(s editable) {
			swapRevisions(s.event(lock.Released, "mia"), s.event(lock.Dequeued, "nat again"))
		}, `"mia" did not hold play:left`},
		"the lease of the victim ended before": {byDeadlocks, func(s editable) {
			e := s.event(lock.Released, "nat")
			e.At = e.At.Add(-2 * time.Second)
		}, `"nat" did not hold play:right`},
		"another call of the circle was granted its lock before": {byDeadlocks, func(s editable) {
			e := s.event(lock.Granted, "mia again")
			e.At = e.At.Add(-2 * time.Second)
		}, `"mia again" did not wait for play:right`},
		"another call of the circle joins later": {byDeadlocks, func(s editable) {
			e := s.event(lock.Queued, "mia again")
			e.At = e.At.Add(3 * time.Second)
		}, `"mia again" did not wait for play:right`},
		"the victim's lease is of another task": {byDeadlocks, func(s editable) {
			s.request("nat", func(a *lock.Acquire) { a.Task = "n.10" })
		}, `the task of "nat", which held play:right, does not include that of "nat again"`},
		"the call of the lease in the way is of another task": {byDeadlocks, func(s editable) {
			s.request("mia again", func(a *lock.Acquire) { a.Task = "mm" })
		}, `the task of "mia", which held play:left, does not include that of "mia again"`},
		"a lease has no task": {byDeadlocks, func(s editable) {
			s.request("mia", func(a *lock.Acquire) { a.Task = "" })
		}, `the task of "mia", which held play:left, does not include that of "mia again"`},
		"the call ahead is behind": {byDeadlocks, func(s editable) {
			a, b := s.event(lock.Queued, "ola again"), s.event(lock.Queued, "pia")
			for i := range s.Events {
				if e := &s.Events[i]; e.Name == readersLock && (e.Kind == lock.Granted || e.Kind == lock.Dequeued) {
					switch e.Place {
					case a.Place:
						e.Place = b.Place
					case b.Place:
						e.Place = a.Place
					}
				}
			}
			a.Place, b.Place = b.Place, a.Place
		}, `"pia" was not ahead of "ola again" in the queue of play:readers`},
		"the lease below the lock ended before": {byDeadlocks, func(s editable) {
			e := s.eventOn(leaf, lock.Released, "rae")
			e.At = e.At.Add(-2 * time.Second)
		}, `"rae" did not hold play:tree:a:b`},
		"the lease above the lock ended before": {byDeadlocks, func(s editable) {
			e := s.eventOn(side, lock.Released, "sam")
			e.At = e.At.Add(-2 * time.Second)
		}, `"sam" did not hold play:tree:c`},
		"the answer is lost, and the circle of the event is cut short": {byDeadlocks, func(s editable) {
			s.loseAnswer("nat again")
			e := s.event(lock.Dequeued, "nat again")
			e.Cycle = lock.CycleOf(e.Cycle.Steps()[:1])
		}, `the task of "mia", which held play:left, does not include that of "nat again"`},
		"the call ahead is not the next one": {byDeadlocks, func(s editable) {
			s.cycle("ola again", func(c []lock.DeadlockStep) []lock.DeadlockStep { return c[:1] })
		}, `"ola again" waited for "pia", not for "ola again"`},
	})
}

// loseAnswer has the holder's first acquire not be answered.
func (s editable) loseAnswer(holder string) {
	s.t.Helper()
	s.call(verify.Acquire, holder, 0).Err = &lock.Error{Code: lock.ErrUnknownOutcome}
}

// TestVictimsWhoseAnswerIsLostLoseTheirPlace: the client repeats its call, which joins the queue at the end.
func TestVictimsWhoseAnswerIsLostLoseTheirPlace(t *testing.T) {
	t.Parallel()
	expectPasses(t, func(s editable) { s.loseAnswer("nat again") })
}

// TestWhatADeadlockSaysOfUnknownCallsIsTakenForTrue: their holders, or the names of their locks, may be hidden.
func TestWhatADeadlockSaysOfUnknownCallsIsTakenForTrue(t *testing.T) {
	t.Parallel()
	expectPasses(t, func(s editable) {
		s.cycle("nat again", func(c []lock.DeadlockStep) []lock.DeadlockStep {
			c[0].WaitsFor = "a client that is not recorded"
			c[1] = lock.DeadlockStep{Name: "hidden", Holder: "hidden", WaitsFor: "hidden"}
			return c
		})
	})
}
