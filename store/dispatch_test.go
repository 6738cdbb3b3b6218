package store

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// queued returns how many wait for the lock "a".
func queued(t *testing.T, s *Store) int {
	t.Helper()
	q, err := s.Queue(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return len(q.Waiters)
}

// heldBack returns how many queue calls the dispatcher holds back.
func (d *dispatcher) heldBack() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// waitedFor reports whether the store knows that calls wait for the lock here.
func (s *Store) waitedFor(name string) bool {
	_, waitedFor := s.crowd.knows(name)
	return waitedFor
}

// TestACallThatMustWaitJoinsWithTheNextBatch, ahead of the call that the batch is for.
func TestACallThatMustWaitJoinsWithTheNextBatch(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.URL(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	d := s.group("a")
	g, err := s.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: "holder"})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan string, 3)
	wait := func(holder string) {
		go func() {
			if _, err := s.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: holder, Wait: lock.MaxWait, TTL: 300 * time.Millisecond}); err != nil {
				t.Error(err)
			}
			served <- holder
		}()
	}
	wait("first")
	for queued(t, s) < 1 || !s.waitedFor("a") {
	}
	wait("second") // it does not wait for ever
	for queued(t, s) < 2 {
	}
	d.mu.Lock()
	d.linger = time.Hour
	d.mu.Unlock()
	wait("third")
	for d.heldBack() < 1 {
	}
	if n := queued(t, s); n != 2 {
		t.Errorf("%d wait, and the third has no company yet", n)
	}
	if err := s.Release(t.Context(), lock.Release{Name: "a", LeaseID: g.ID}); err != nil {
		t.Fatal(err)
	}
	if n := d.heldBack(); n != 0 {
		t.Errorf("%d are held back still", n)
	}
	page, err := s.Events(t.Context(), lock.EventQuery{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	joined, released := page.Items[3], page.Items[4]
	if joined.Kind != lock.Queued || joined.Holder != "third" || released.Kind != lock.Released || !joined.At.Equal(released.At) {
		t.Errorf("not in one transaction, in that order: %+v, %+v", joined, released)
	}
	for _, want := range []string{"first", "second", "third"} {
		if got := <-served; got != want {
			t.Errorf("%s was served, want %s", got, want)
		}
	}
}

// A scripted dispatcher notes its batches, each of which waits for a value from gate.
type scripted struct {
	*dispatcher
	gate chan struct{}

	seen sync.Mutex // guards batches
	all  [][]lock.Command
}

// batches returns those that there were so far.
func (s *scripted) batches() [][]lock.Command {
	s.seen.Lock()
	defer s.seen.Unlock()
	return slices.Clone(s.all)
}

func newScripted() *scripted {
	s := &scripted{gate: make(chan struct{})}
	s.dispatcher = newDispatcher(batch.New(maxBatch, maxQueue, func(calls []*call) {
		s.took(calls)
		var commands []lock.Command
		for _, c := range calls {
			commands = append(commands, c.Req)
		}
		s.seen.Lock()
		s.all = append(s.all, commands)
		s.seen.Unlock()
		<-s.gate
		for _, c := range calls {
			c.Answer(outcome{}, nil)
		}
	}))
	return s
}

// run lets all batches run.
func (s *scripted) run() {
	synctest.Wait()
	close(s.gate)
	s.Wait()
}

// busy has a batch run that is there before all others.
func (s *scripted) busy() {
	s.offer(callOf(lock.Sweep{Name: "busy"}))
	synctest.Wait()
}

func callOf(cmd lock.Command) *call { return batch.NewCall[lock.Command, outcome](cmd) }

func joinOf(name string, id byte) *call {
	return callOf(acquireCall{Acquire: lock.Acquire{Name: name, LeaseID: lock.LeaseID{id}, Wait: time.Second}})
}

// TestAnUrgentCallWaitsForOneShareOfQueueCalls: a renewal that comes when a thousand joins are there is in the next batch, no
// batch has more than one share of joins, and all are done in the end.
func TestAnUrgentCallWaitsForOneShareOfQueueCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.busy()
		const joins = 1000
		for i := range joins {
			s.hold(joinOf(fmt.Sprintf("crowded:%d", i%11), 0), true, false)
		}
		renewal := lock.Renew{Name: "other"}
		s.offer(callOf(renewal))
		s.run()
		if !slices.ContainsFunc(s.batches()[1], func(c lock.Command) bool { return reflect.DeepEqual(c, renewal) }) {
			t.Error("the renewal is not in the next batch")
		}
		done := 0
		for i, b := range s.batches()[1:] {
			if share := crowdedBudget; len(b) > share+1 {
				t.Errorf("batch %d has %d calls, a share is %d", i, len(b), share)
			}
			done += len(b)
		}
		if done != joins+1 || s.held != 0 || len(s.backlogs) != 0 || len(s.turns) != 0 {
			t.Errorf("%d of %d calls were done, %d are held back", done, joins+1, s.held)
		}
	})
}

// TestLocksTakeTurns: a lock with one queue call does not wait for the backlog of another lock, and one that has no queue waits
// for no turn of locks that have one.
func TestLocksTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.busy()
		s.hold(joinOf("first", 0), true, false) // it is in the group from now on
		for i := range 500 {
			s.hold(joinOf("crowded", byte(i)), true, false)
		}
		s.hold(joinOf("crowded too", 0), true, false)
		s.hold(joinOf("free", 0), false, false)
		s.run()
		for i, name := range []string{"free", "crowded too"} {
			if b := s.batches()[2+i]; !slices.ContainsFunc(b, func(c lock.Command) bool { return c.Names()[0] == name }) {
				t.Errorf("batch %d has nothing of the lock %q: %v", 2+i, name, b)
			}
		}
	})
}

// TestQueueCallsOfALockKeepTheirOrder, but that claims go first: a grant waits for them.
func TestQueueCallsOfALockKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.busy()
		s.hold(joinOf("other", 0), false, false) // so that what follows is held back
		want := []lock.Command{lock.Claim{Name: "a", LeaseID: lock.LeaseID{9}}}
		for i := range byte(40) {
			c := joinOf("a", i)
			if i%3 == 0 {
				c = callOf(lock.Leave{Name: "a", LeaseID: lock.LeaseID{i}})
			}
			s.hold(c, false, false)
			want = append(want, c.Req)
		}
		s.hold(callOf(want[0]), false, false)
		s.run()
		var got []lock.Command
		for _, b := range s.batches()[2:] {
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
		lock.Release{Name: "a", LeaseID: lock.LeaseID{3}}, lock.Renew{Name: "a", LeaseID: lock.LeaseID{3}}, acquireCall{Acquire: lock.Acquire{Name: "a", LeaseID: lock.LeaseID{3}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScripted()
			s.busy()
			s.hold(joinOf("other", 0), true, false)
			for i := range byte(200) {
				s.hold(joinOf("a", i), true, false)
			}
			s.offer(callOf(urgent))
			s.run()
			if b := s.batches()[1]; len(b) != 3 || !reflect.DeepEqual(b[1], joinOf("a", 3).Req) || !reflect.DeepEqual(b[2], urgent) {
				t.Errorf("%T: the batch is %v, want the acquire and then the call", urgent, b)
			}
		})
	}
}

// TestLingeringCallsGoInWithTheNextBatch, or when they have lingered for long enough.
func TestLingeringCallsGoInWithTheNextBatch(t *testing.T) {
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
		s.hold(joinOf("a", 3), true, true)
		s.offer(callOf(lock.Release{Name: "a"}))
		s.run()
		if b := s.batches(); len(b) != 3 || len(b[2]) != 2 {
			t.Errorf("the batches are %v, want a last one with both", b)
		}
	})
}

// TestAcquiresAreRefusedBeyondWhatIsHeldBack, and what else is about a queue is not: its calls were let in before.
func TestAcquiresAreRefusedBeyondWhatIsHeldBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.busy()
		s.hold(joinOf("first", 0), false, false)
		for i := range maxQueue {
			if !s.hold(joinOf(fmt.Sprintf("n:%d", i%100), 0), true, false) {
				t.Fatalf("acquire %d was refused", i)
			}
		}
		if s.hold(joinOf("n:0", 0), true, false) {
			t.Error("one more acquire was held back")
		}
		if !s.hold(callOf(lock.Leave{Name: "n:0"}), true, false) {
			t.Error("a leave was refused")
		}
		if _, err := s.queue(t.Context(), joinOf("n:0", 0).Req, true, false); !errors.Is(err, batch.ErrFull) {
			t.Errorf("err = %v, want ErrFull", err)
		}
		s.run()
	})
}
