package locktest

import (
	"fmt"
	"slices"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func deadlockCases() cases {
	return cases{
		"of three tasks that wait for each other the last call gives way": deadlockOfTasks,
		"two sessions that wait for each other, without tasks":            deadlockOfSessions,
	}
}

// ofTask returns an acquire of the i-th lock by the task.
func (s *fixture) ofTask(i int, task string) lock.Acquire {
	return lock.Acquire{Locks: lock.One(s.other(i)), Holder: task, Task: lock.TaskID(task)}
}

func deadlockOfTasks(s *fixture) {
	const n = 3
	task := func(i int) string { return fmt.Sprint("task-", i) }
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

// deadlockOfSessions: a session is the thread of work of the calls in it that have no task.
func deadlockOfSessions(s *fixture) {
	var ids [2]lock.SessionID
	waits := make([]*waitingCall, len(ids))
	inSession := func(i, at int) lock.Acquire {
		return lock.Acquire{Locks: lock.One(s.other(at)), Holder: fmt.Sprint("session-", i), SessionID: ids[i]}
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
	s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: ids[victim]}))
	waits[1-victim].mustBeGranted()
}

// expectCycle expects the circle in the event of the victim.
func (s *fixture) expectCycle(cycle []lock.DeadlockStep) {
	s.Helper()
	query := paddock.EventQuery{Names: []string{cycle[0].Name}, Deadlock: true}
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
