package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// A wait is an Acquire on its way.
type wait struct {
	grant lock.Grant
	err   error
	done  chan struct{}
}

// waitFor acquires in the background and returns once it has joined
// the queue, behind those that are there.
func waitFor(t *testing.T, s *store.Store, ctx context.Context, a lock.Acquire) *wait {
	t.Helper()
	before := len(queueOf(t, s, a.Locks[0].Name))
	w := start(s, ctx, a)
	until(t, a.Holder+" waits", func() bool { return len(queueOf(t, s, a.Locks[0].Name)) > before })
	return w
}

func start(s *store.Store, ctx context.Context, a lock.Acquire) *wait {
	w := &wait{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.grant, w.err = s.Acquire(ctx, a)
	}()
	return w
}

// granted returns what the wait got.
func (w *wait) granted(t *testing.T) lock.Grant {
	t.Helper()
	w.over(t)
	if w.err != nil {
		t.Fatalf("not granted: %v", w.err)
	}
	return w.grant
}

func (w *wait) over(t *testing.T) {
	t.Helper()
	select {
	case <-w.done:
	case <-time.After(patience):
		t.Fatal("waits without end")
	}
}

func (w *wait) isOver() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func queueOf(t *testing.T, s *store.Store, name string) []lock.WaiterInfo {
	t.Helper()
	q, err := s.Queue(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return q.Waiters
}

// waiting is an acquire that waits as long as may be.
func waitingAs(name, holder string) lock.Acquire {
	a := acquire(name)
	a.Holder, a.Wait = holder, lock.MaxWait
	return a
}

// TestReplicasServeWaitersInOrder: waiters of two replicas by turns are
// served in the order in which they came, whichever replica releases.
func TestReplicasServeWaitersInOrder(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]store.Options{
		"told by notifications": {}, "by asking alone": {TransactionPooling: true}, "with several workers": {BatchWorkers: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			replicas := []*store.Store{replica.Store(t, url, o), replica.Store(t, url, o)}
			g := mustAcquire(t, replicas[0], acquire("a"))
			var waits []*wait
			for i := range 10 {
				waits = append(waits, waitFor(t, replicas[i%2], t.Context(), waitingAs("a", fmt.Sprint(i))))
			}
			for i, w := range waits {
				mustRelease(t, replicas[i/2%2], g)
				next := w.granted(t)
				if next.Token <= g.Token || next.Holder != fmt.Sprint(i) {
					t.Errorf("waiter %d got token %d as %q after %d", i, next.Token, next.Holder, g.Token)
				}
				for _, later := range waits[i+1:] {
					if later.isOver() {
						t.Errorf("somebody behind waiter %d is through: %v, %v", i, later.grant, later.err)
					}
				}
				g = next
			}
		})
	}
}

// TestAStoreThatDrainsKeepsPlaces: calls that wait are sent away, and find their
// places with another replica.
func TestAStoreThatDrainsKeepsPlaces(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	old, s := open(t, url), open(t, url)
	g := mustAcquire(t, s, acquire("a"))
	first, second := waitingAs("a", "first"), waitingAs("a", "second")
	sent := waitFor(t, old, t.Context(), first)
	other := waitFor(t, s, t.Context(), second)
	old.Drain()
	sent.over(t)
	if e := new(lock.Error); !errors.As(sent.err, &e) || e.Code != lock.ErrUnavailable || e.RetryAfter == 0 {
		t.Errorf("told %v", sent.err)
	}
	if _, err := old.Acquire(t.Context(), waitingAs("a", "late")); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("a new one is told %v", err)
	}
	back := start(s, t.Context(), first)
	until(t, "the first is back", func() bool { q := queueOf(t, s, "a"); return len(q) == 2 && q[0].Attached })
	mustRelease(t, s, g)
	g = back.granted(t)
	if other.isOver() {
		t.Error("the second was served before the first")
	}
	mustRelease(t, s, g)
	other.granted(t)
}

// TestAStoreThatDrainsKeepsPlacesAtClosedLocks: such a call is not told that the lock is frozen, as if its wait were over.
func TestAStoreThatDrainsKeepsPlacesAtClosedLocks(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	if _, err := s.Freeze(t.Context(), lock.FreezeRequest{Scope: "a", Reason: "maintenance"}); err != nil {
		t.Fatal(err)
	}
	g := mustAcquire(t, s, acquire("b"))
	if err := s.Release(t.Context(), lock.Release{Locks: []string{"b"}, LeaseID: g.ID, Closed: lock.Closing{For: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	calls := []*wait{waitFor(t, s, t.Context(), waitingAs("a", "first")), waitFor(t, s, t.Context(), waitingAs("b", "first"))}
	s.Drain()
	for _, c := range calls {
		if c.over(t); !errors.Is(c.err, lock.ErrUnavailable) {
			t.Errorf("told %v", c.err)
		}
	}
}
