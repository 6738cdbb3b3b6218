package engine

import (
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// A scripted inbox records its batches, each of which waits for a value from gate.
type scripted struct {
	*inbox
	gate chan struct{}

	seen sync.Mutex // guards all
	all  [][]lock.Command
}

// batches returns those that have begun.
func (s *scripted) batches() [][]lock.Command {
	s.seen.Lock()
	defer s.seen.Unlock()
	return slices.Clone(s.all)
}

func newScripted() *scripted {
	s := &scripted{gate: make(chan struct{})}
	s.inbox = newInbox(func(calls []*call) {
		var commands []lock.Command
		for _, c := range calls {
			commands = append(commands, c.Req.Command)
		}
		s.seen.Lock()
		s.all = append(s.all, commands)
		s.seen.Unlock()
		<-s.gate
		for _, c := range calls {
			c.Answer(new(row.Outcome), nil)
		}
	})
	return s
}

// run lets all batches run.
func (s *scripted) run() {
	synctest.Wait()
	close(s.gate)
	s.wait()
}

// keepBusy starts a batch, behind which the following calls wait.
func (s *scripted) keepBusy() {
	s.offer(callOf(lock.Sweep{Locks: []string{"busy"}}))
	synctest.Wait()
}

func callOf(cmd lock.Command) *call {
	return batch.NewCall[request, *row.Outcome](newRequest(cmd, &policy.Snapshot{}))
}

func joinOf(name string, id byte) *call {
	return callOf(lock.Acquire{Locks: lock.One(name), LeaseID: lock.LeaseID{id}, Wait: time.Second})
}

// TestAnUrgentCallWaitsForOneShareOfQueueCalls: a renewal that comes after a thousand acquires that wait is in the
// next batch, no batch has more than one share of them, and all are done in the end.
func TestAnUrgentCallWaitsForOneShareOfQueueCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.keepBusy()
		const joins = 1000
		for i := range joins {
			s.hold(joinOf(fmt.Sprintf("queued:%d", i%11), 0), true, false)
		}
		renewal := lock.Renew{Locks: []string{"other"}}
		s.offer(callOf(renewal))
		s.run()
		if !slices.ContainsFunc(s.batches()[1], func(c lock.Command) bool { return reflect.DeepEqual(c, renewal) }) {
			t.Error("the renewal is not in the next batch")
		}
		done := 0
		for i, b := range s.batches()[1:] {
			if len(b) > queuedBudget+1 {
				t.Errorf("batch %d has %d calls, a share is %d", i, len(b), queuedBudget)
			}
			done += len(b)
		}
		if done != joins+1 || s.held != 0 || len(s.backlogs) != 0 || len(s.turns) != 0 {
			t.Errorf("%d of %d calls were done, %d are held back", done, joins+1, s.held)
		}
	})
}

// TestLocksTakeTurns: a lock with one queue call does not wait for the backlog of another lock, and one without a
// queue does not wait for locks that have one.
func TestLocksTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.keepBusy()
		for i := range 500 {
			s.hold(joinOf("queued", byte(i)), true, false)
		}
		s.hold(joinOf("queued too", 0), true, false)
		s.hold(joinOf("free", 0), false, false)
		s.run()
		for i, name := range []string{"free", "queued too"} {
			if b := s.batches()[1+i]; !slices.ContainsFunc(b, func(c lock.Command) bool { return c.Names()[0] == name }) {
				t.Errorf("batch %d has nothing of the lock %q: %v", 1+i, name, b)
			}
		}
	})
}

// TestABatchHasABoundedShareOfEachLock, and all queue calls of locks without a queue are within the budget.
func TestABatchHasABoundedShareOfEachLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.keepBusy()
		for i := range 2000 {
			s.hold(joinOf(fmt.Sprintf("free:%d", i%2), 0), false, false)
		}
		s.run()
		for i, b := range s.batches() {
			if len(b) > queueBudget {
				t.Errorf("batch %d has %d calls, the budget is %d", i, len(b), queueBudget)
			}
		}
		if first := s.batches()[1]; first[queueShare-1].Names()[0] != "free:0" || first[queueShare].Names()[0] != "free:1" {
			t.Errorf("after %d calls it is not the turn of the next lock", queueShare)
		}
	})
}

// TestQueueCallsOfALockKeepTheirOrder, but that claims go first: a grant waits for them.
func TestQueueCallsOfALockKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.keepBusy()
		want := []lock.Command{lock.Claim{Locks: []string{"a"}, LeaseID: lock.LeaseID{9}}}
		for i := range byte(40) {
			c := joinOf("a", i)
			if i%3 == 0 {
				c = callOf(lock.Leave{Locks: []string{"a"}, LeaseID: lock.LeaseID{i}})
			}
			s.hold(c, false, false)
			want = append(want, c.Req.Command)
		}
		s.hold(callOf(want[0]), false, false)
		s.run()
		var got []lock.Command
		for _, b := range s.batches()[1:] {
			got = append(got, b...)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
}

// TestAReleaseDoesNotOvertakeItsAcquire, nor do other calls about the lease_id; those about others do.
func TestAReleaseDoesNotOvertakeItsAcquire(t *testing.T) {
	t.Parallel()
	for _, urgent := range []lock.Command{
		lock.Release{Locks: []string{"a"}, LeaseID: lock.LeaseID{3}}, lock.Renew{Locks: []string{"a"}, LeaseID: lock.LeaseID{3}},
		lock.Acquire{Locks: lock.One("a"), LeaseID: lock.LeaseID{3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScripted()
			s.keepBusy()
			for i := range byte(200) {
				s.hold(joinOf("a", i), true, false)
			}
			s.offer(callOf(urgent))
			s.run()
			b := s.batches()[1]
			if n := len(b); !reflect.DeepEqual(b[n-2], joinOf("a", 3).Req.Command) || !reflect.DeepEqual(b[n-1], urgent) {
				t.Errorf("%T: the batch is %v, want the acquire and then the call at its end", urgent, b)
			}
		})
	}
}

// TestLingeringCallsGoInWithTheNextCallAboutTheirLock, not with those about others; or when they have lingered for long
// enough.
func TestLingeringCallsGoInWithTheNextCallAboutTheirLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		began := time.Now()
		for round := range 2 {
			first, second := joinOf("a", 1), joinOf("a", 2)
			s.hold(first, true, true)
			s.hold(second, true, true)
			if synctest.Wait(); len(s.batches()) != round {
				t.Fatalf("batches before they have lingered: %v", s.batches())
			}
			s.gate <- struct{}{}
			if _, err := second.Wait(t.Context()); err != nil || len(s.batches()) != round+1 || time.Since(began) != joinLinger {
				t.Errorf("%v, %v after %v, want one batch after %v", s.batches(), err, time.Since(began), joinLinger)
			}
			began = time.Now()
		}
		about := func(name string) []func() {
			return []func(){
				func() { s.offer(callOf(lock.Release{Locks: []string{name}})) },
				func() { s.hold(callOf(lock.Claim{Locks: []string{name}}), true, false) },
				func() { s.hold(joinOf(name, 4), false, false) },
			}
		}
		done := len(s.batches())
		for i, others := range about("b") {
			s.hold(joinOf("a", 3), true, true)
			others()
			s.gate <- struct{}{}
			synctest.Wait()
			about("a")[i]()
			s.gate <- struct{}{}
			synctest.Wait()
			b := s.batches()
			if len(b) != done+2 || len(b[done]) != 1 || len(b[done+1]) != 2 || s.held != 0 || len(s.backlogs) != 0 {
				t.Errorf("the batches are %v, want one without the acquire that lingers, and one with it", b[done:])
			}
			done = len(b)
		}
		if time.Since(began) != 0 {
			t.Error("a call had to wait")
		}
		s.run()
	})
}

// TestAcquiresAreRefusedBeyondMaxQueue, and other queue calls are not: their callers were let in before.
func TestAcquiresAreRefusedBeyondMaxQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.keepBusy()
		for i := range MaxQueue {
			if !s.hold(joinOf(fmt.Sprintf("n:%d", i%100), 0), true, false) {
				t.Fatalf("acquire %d was refused", i)
			}
		}
		if s.hold(joinOf("n:0", 0), true, false) {
			t.Error("one more acquire was held back")
		}
		if !s.hold(callOf(lock.Leave{Locks: []string{"n:0"}}), true, false) {
			t.Error("a leave was refused")
		}
		if _, err := s.do(t.Context(), joinOf("n:0", 0), true, false); !errors.Is(err, errFull) {
			t.Errorf("err = %v, want errFull", err)
		}
		s.run()
	})
}

// TestAWorkerTakesItsCommandsAllOrNone: those that do not fit are refused as a single call is, and those of other
// workers are done.
func TestAWorkerTakesItsCommandsAllOrNone(t *testing.T) {
	t.Parallel()
	const places = 3
	run := func(calls []*call) {
		for _, c := range calls {
			c.Answer(new(row.Outcome), nil)
		}
	}
	s := &shared{seed: maphash.MakeSeed()}
	room := make(map[*worker]int)
	for i := range 2 {
		w := &worker{shared: s, inbox: newInbox(run)}
		w.inbox.room = places
		s.workers, room[w] = append(s.workers, w), places+i
	}
	var calls []*call
	fits := make(map[*call]bool)
	for i := 0; len(calls) < 2*places+1; i++ {
		name := fmt.Sprint("jobs:", i)
		c := callOf(lock.Release{Locks: []string{name}})
		if w := s.workerOf(c); room[w] > 0 {
			room[w]--
			calls, fits[c] = append(calls, c), w == s.workers[0]
		}
	}
	s.enqueue(calls)
	for c, fits := range fits {
		if _, err := answered(c.Wait(t.Context())); fits && err != nil || !fits && !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("a call for which there is room (%t): %v", fits, err)
		}
	}
}

// TestAnInboxContinuesBesideDetachedBatches also checks that wait waits for them.
func TestAnInboxContinuesBesideDetachedBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		b := newInbox(func(calls []*call) {
			for _, c := range calls {
				if c.Req.Names()[0] == "stuck" {
					<-stuck
				}
				c.Answer(new(row.Outcome), nil)
			}
		})
		first, second, third := callOf(lock.Sweep{Locks: []string{"stuck"}}), callOf(lock.Sweep{Locks: []string{"a"}}), callOf(lock.Sweep{Locks: []string{"b"}})
		b.offer(first)
		synctest.Wait()
		b.offer(second)
		b.detach()
		for _, c := range []*call{second, third} {
			if c == third {
				b.offer(third)
			}
			if _, err := c.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		over := make(chan struct{})
		go func() { defer close(over); b.wait() }()
		synctest.Wait()
		select {
		case <-over:
			t.Error("wait returned while a batch runs")
		default:
		}
		close(stuck)
		<-over
		if _, err := first.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
