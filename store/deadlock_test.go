package store_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// ofTask returns an acquire by a task, which waits.
func ofTask(task, name string) lock.Acquire {
	a := acquire(name)
	a.Holder, a.Task, a.Wait = task, lock.TaskID(task), lock.MaxWait
	return a
}

// TestACircleOfTwoReplicasHasOneVictim, of any length up to 8: the call that closes it. When the victim has released
// what it holds, the others are granted their locks one after the other.
func TestACircleOfTwoReplicasHasOneVictim(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	replicas := []*store.Store{open(t, url), open(t, url)}
	for n := 2; n <= 8; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			name := func(i int) string { return fmt.Sprintf("%d:%d", n, i%n) }
			held, waits := make([]lock.Grant, n), make([]*wait, n)
			for i := range n {
				held[i] = mustAcquire(t, replicas[i%2], ofTask(fmt.Sprintf("t%d-%d", n, i), name(i)))
			}
			for i := range n {
				waits[i] = waitFor(t, replicas[i%2], t.Context(), ofTask(fmt.Sprintf("t%d-%d.part", n, i), name(i+1)))
			}
			began, victim := time.Now(), -1
			until(t, "a call is told", func() bool {
				victim = slices.IndexFunc(waits, (*wait).isOver)
				return victim >= 0
			})
			t.Logf("call %d is told after %v", victim, time.Since(began))
			e := new(lock.Error)
			if err := waits[victim].err; !errors.As(err, &e) || e.Code != lock.ErrDeadlock || len(e.Cycle) != n {
				t.Fatalf("it was answered with %v", err)
			}
			for i := range n { // the others were not refused
				at := (victim + n - i) % n
				if i > 0 {
					mustRelease(t, replicas[1], waits[at].granted(t))
				}
				mustRelease(t, replicas[0], held[at])
			}
		})
	}
}

// TestOneLookBreaksADeadlockOfMany: tasks that hold one lock together wait for another one exclusively, and as many do
// so the other way round, on two replicas. The tasks of one side give way, since any two of different sides stop each
// other. All others are granted their locks.
func TestOneLookBreaksADeadlockOfMany(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	replicas := []*store.Store{open(t, url), open(t, url)}
	for _, n := range []int{10, 30} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			held := make([]lock.Grant, 2*n)
			for i := range held {
				a := ofTask(fmt.Sprintf("t%d-%d", n, i), fmt.Sprintf("%d:%d", n, i%2))
				a.Locks[0].Mode = lock.Shared
				held[i] = mustAcquire(t, replicas[i%2], a)
			}
			began, victims := time.Now(), make(chan int, len(held))
			var all sync.WaitGroup
			for i, g := range held {
				all.Go(func() {
					s := replicas[i/2%2]
					got, err := s.Acquire(t.Context(), ofTask(g.Holder, fmt.Sprintf("%d:%d", n, (i+1)%2)))
					if errors.Is(err, lock.ErrDeadlock) {
						victims <- i
					} else if err != nil {
						t.Error(err)
					} else if err = s.Release(t.Context(), lock.Release{Locks: []string{got.Name}, LeaseID: got.ID}); err != nil {
						t.Error(err)
					}
					if err := s.Release(t.Context(), lock.Release{Locks: []string{g.Name}, LeaseID: g.ID}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			t.Logf("%d of %d give way; all are done after %v", len(victims), len(held), time.Since(began))
			if few := n + n/5; len(victims) < n || len(victims) > few { // more than n if some join only after a look
				t.Errorf("%d of %d give way, want %d to %d", len(victims), len(held), n, few)
			}
		})
	}
}
