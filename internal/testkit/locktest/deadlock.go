package locktest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func deadlockCases() cases {
	return cases{
		"two tasks that wait for each other: the last call gives way": deadlockOf(2),
		"four tasks that wait for each other":                         deadlockOf(4),
		"calls without a task wait for each other":                    deadlockUnknown,
		"a task that waits for itself is told at once":                deadlockOfOne,
		"two sessions that wait for each other, without tasks":        deadlockOfSessions,
		"four tasks in two sides that wait for each other":            deadlockOfSides,
		"a try of a task that holds the lock is only told that":       deadlockTry,
		"parts of one task wait for each other's locks":               deadlockSiblings,
		"a task id with an empty segment is refused":                  taskInvalid("a..b"),
		"a task id with another character is refused":                 taskInvalid("a/b"),
		"a task id that is too long is refused":                       taskInvalid(strings.Repeat("t", lock.MaxTaskIDLength+1)),
	}
}

// ofTask returns an acquire of the i-th lock by the task.
func (s *fixture) ofTask(i int, task string) lock.Acquire {
	return lock.Acquire{Name: s.other(i), Holder: task, Task: lock.TaskID(task)}
}

func deadlockOf(n int) func(*fixture) {
	return func(s *fixture) {
		task := func(i int) string { return fmt.Sprintf("task-%d-%d", n, i) } // other cases have tasks of their own
		held, waits := make([]lock.Grant, n), make([]*waitingCall, n)
		for i := range n {
			held[i] = s.holdAs(i, task(i))
		}
		for i := range n - 1 {
			waits[i] = s.enqueue(s.ofTask(i+1, task(i)+".part"))
		}
		waits[n-1] = s.startAcquire(s.ofTask(0, task(n-1)+".part"))
		victim := s.firstToEnd(waits)
		e := s.expectError(waits[victim].err, lock.ErrDeadlock)
		next := (victim + 1) % n
		if len(e.Cycle) != n || e.Cycle[0].Name != s.other(next) || e.Cycle[0].WaitsFor != task(next) {
			s.Errorf("the circle is %+v", e.Cycle)
		}
		s.expectCycle(e.Cycle)
		s.must(s.release(held[victim]))
		for i := 1; i < n; i++ { // the others go on, one after the other
			at := (victim + n - i) % n
			s.must(s.release(waits[at].mustBeGranted()))
			s.must(s.release(held[at]))
		}
	}
}

// deadlockOfSessions: a session is the thread of work of the calls in it that have no task.
func deadlockOfSessions(s *fixture) {
	var ids [2]lock.SessionID
	waits := make([]*waitingCall, len(ids))
	inSession := func(i, at int) lock.Acquire {
		return lock.Acquire{Name: s.other(at), Holder: fmt.Sprint("session-", i), SessionID: ids[i]}
	}
	for i := range ids {
		ids[i] = s.openSession(lock.OpenSession{}).ID
		_, err := s.acquire(inSession(i, i))
		s.must(err)
	}
	for i := range waits {
		waits[i] = s.startAcquire(inSession(i, 1-i))
	}
	victim := s.firstToEnd(waits)
	e := s.expectError(waits[victim].err, lock.ErrDeadlock)
	if len(e.Cycle) != len(ids) || e.Cycle[0].Name != s.other(1-victim) {
		s.Errorf("the circle is %+v", e.Cycle)
	}
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: ids[victim]}))
	waits[1-victim].mustBeGranted()
}

// deadlockOfSides: two tasks hold a lock together and wait for another one, and two do so the other way round. Both of
// one side give way, and both of the other side are granted the lock, one after the other.
func deadlockOfSides(s *fixture) {
	const n = 4
	held, waits := make([]lock.Grant, n), make([]*waitingCall, n)
	for i := range n {
		a := s.ofTask(i%2, fmt.Sprint("side-", i))
		a.Mode = lock.Shared
		g, err := s.acquire(a)
		s.must(err)
		held[i] = g
	}
	for i := range n {
		waits[i] = s.startAcquire(s.ofTask((i+1)%2, fmt.Sprint("side-", i)))
	}
	side := s.firstToEnd(waits) % 2
	for i := side; i < n; i += 2 {
		<-waits[i].done
		s.expectError(waits[i].err, lock.ErrDeadlock)
		s.must(s.release(held[i]))
	}
	first := s.firstToEnd([]*waitingCall{waits[1-side], waits[3-side]})
	for _, i := range []int{1 - side + 2*first, 3 - side - 2*first} {
		s.must(s.release(waits[i].mustBeGranted()))
		s.must(s.release(held[i]))
	}
}

// expectCycle expects the circle in the event of the victim.
func (s *fixture) expectCycle(cycle []lock.DeadlockStep) {
	s.Helper()
	query := lock.EventQuery{Name: cycle[0].Name, Kinds: []lock.Kind{lock.Dequeued}}
	e := (&reader{s, query}).want(1)[0] // the event may be visible later than the answer
	if e.Reason != "deadlock" || !slices.Equal(e.Cycle.Steps(), cycle) {
		s.Errorf("the event is %+v, want the circle %+v", e, cycle)
	}
}

// holdAs acquires the i-th lock for the task.
func (s *fixture) holdAs(i int, task string) lock.Grant {
	s.Helper()
	g, err := s.acquire(s.ofTask(i, task))
	s.must(err)
	return g
}

// firstToEnd waits until one of the calls has ended, and returns which.
func (s *fixture) firstToEnd(calls []*waitingCall) (first int) {
	s.Helper()
	s.eventually("a call ends", func() bool {
		first = slices.IndexFunc(calls, func(c *waitingCall) bool {
			select {
			case <-c.done:
				return true
			default:
				return false
			}
		})
		return first >= 0
	})
	return first
}

func deadlockUnknown(s *fixture) {
	ofNone := func(i int) lock.Acquire { return lock.Acquire{Name: s.other(i), Holder: "holder"} }
	first, err := s.acquire(ofNone(0))
	s.must(err)
	_, err = s.acquire(ofNone(1))
	s.must(err)
	a := s.enqueue(ofNone(1))
	again := ofNone(0)
	again.Holder, again.Wait = "another", 2*time.Second // longer than it takes to find a deadlock
	_, err = s.acquire(again)
	s.expectError(err, lock.ErrHeld)
	s.must(s.release(first))
	a.cancel()
}

func deadlockOfOne(s *fixture) {
	g := s.holdAs(0, "task")
	inner := s.ofTask(0, "task.part")
	inner.Wait = lock.MaxWait
	_, err := s.acquire(inner)
	if e := s.expectError(err, lock.ErrDeadlock); len(e.Cycle) != 1 || e.Cycle[0].Name != s.other(0) || e.Cycle[0].WaitsFor != "task" {
		s.Errorf("the circle is %+v", e.Cycle)
	}
	if q := s.queue(s.other(0)).Waiters; len(q) != 0 {
		s.Errorf("it waits still: %+v", q)
	}
	s.must(s.release(g))
}

func deadlockTry(s *fixture) {
	s.holdAs(0, "task")
	_, err := s.acquire(s.ofTask(0, "task"))
	s.expectError(err, lock.ErrHeld)
}

func deadlockSiblings(s *fixture) {
	s.holdAs(0, "task")
	one := s.holdAs(1, "task.1")
	waits := s.enqueue(s.ofTask(1, "task.2"))
	s.must(s.release(one))
	s.must(s.release(waits.mustBeGranted()))
}

func taskInvalid(id string) func(*fixture) {
	return func(s *fixture) {
		_, err := s.acquire(lock.Acquire{Holder: "holder", Task: lock.TaskID(id)})
		if e := s.expectError(err, lock.ErrInvalid); e.Field != "task_id" {
			s.Errorf("the field is %q", e.Field)
		}
	}
}
