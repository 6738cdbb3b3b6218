package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// take acquires, asking again with the same lease_id whenever the answer says so.
func take(t *testing.T, s paddock.Service, a lock.Acquire) lock.Grant {
	t.Helper()
	a.KeepPlace = true
	for {
		g, err := s.Acquire(t.Context(), a)
		switch {
		case err == nil:
			return g
		case t.Context().Err() != nil,
			!errors.Is(err, lock.ErrHeld) && !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnknownOutcome):
			t.Errorf("%s: %v", a.Holder, err)
			return g
		}
	}
}

// give releases until it is known to be done.
func give(t *testing.T, s paddock.Service, g lock.Grant) {
	t.Helper()
	err := s.Release(t.Context(), lock.Release{Locks: []string{g.Name}, LeaseID: g.ID})
	for errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) {
		err = s.Release(t.Context(), lock.Release{Locks: []string{g.Name}, LeaseID: g.ID})
	}
	if err != nil {
		t.Errorf("%s: release: %v", g.Holder, err)
	}
}

// TestAGrantThatCrossesAClientsLeavingIsGivenBack forces the crossing: the release
// that promotes the waiter is held up at the lock's row until the waiter's client
// is gone.
func TestAGrantThatCrossesAClientsLeavingIsGivenBack(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there, outside := open(t, url), open(t, url), connect(t, url)
	for round := range 20 {
		waits := []*store.Store{here, there}[round%2]
		g := mustAcquire(t, here, acquire("a"))
		ctx, cut := context.WithCancel(t.Context())
		w := waitFor(t, waits, ctx, waitingAs("a", "gone"))
		hold(t, outside, "a")
		released := make(chan struct{})
		go func() {
			defer close(released)
			give(t, here, g)
		}()
		until(t, "the release waits for the row", func() bool { return rowWaiters(t, url) > 0 })
		cut()
		w.over(t)
		exec(t, outside, "rollback")
		<-released
		mustRelease(t, here, mustAcquire(t, here, waitingAs("a", "next")))
	}
}

// rowWaiters returns how many sessions wait for a lock, on a connection of its own.
func rowWaiters(t *testing.T, url string) int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it has said what it had to
	return waiting(t, conn)
}

// TestWaitersOutliveARestartOfTheDatabase kills PostgreSQL while clients wait at two replicas. When the database and
// the clients are back, all are served in the order in which they came first.
func TestWaitersOutliveARestartOfTheDatabase(t *testing.T) {
	t.Parallel()
	server, url := pgtest.Server(t)
	replicas := []*store.Store{open(t, url), open(t, url)}
	g := mustAcquire(t, replicas[0], acquire("a"))
	var served []string
	var wg sync.WaitGroup
	const n = 40
	for i := range n {
		s, a := replicas[i%2], waitingAs("a", fmt.Sprint(i))
		wg.Go(func() {
			g := take(t, s, a)
			served = append(served, a.Holder) // no other holder is inside
			give(t, s, g)
		})
		until(t, "it waits", func() bool { return len(queueOf(t, replicas[0], "a")) > i })
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "all clients are back", func() bool { return attached(queueOf(t, replicas[0], "a")) == n })
	give(t, replicas[0], g)
	wg.Wait()
	for i, who := range served {
		if who != fmt.Sprint(i) {
			t.Fatalf("served in the order %v", served)
		}
	}
	if len(served) != n {
		t.Errorf("served %d of %d", len(served), n)
	}
}

// attached returns how many waiters have a client.
func attached(waiters []lock.WaiterInfo) (n int) {
	for _, w := range waiters {
		if w.Attached {
			n++
		}
	}
	return n
}

// TestAWaiterIsServedAtTheEndOfALease, with no call from outside, and its TTL
// begins then.
func TestAWaiterIsServedAtTheEndOfALease(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for name, replicas := range map[string][]*store.Store{
		"of the same replica": {open(t, url)}, "of another": {open(t, url), open(t, url)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustAcquire(t, replicas[0], short(lockFor(name)))
			a := waitingAs(lockFor(name), "next")
			a.TTL = time.Hour
			g := mustAcquire(t, replicas[len(replicas)-1], a)
			if left := time.Until(g.Until); left < 59*time.Minute {
				t.Errorf("%v are left of an hour", left)
			}
		})
	}
}

func lockFor(text string) string { return "n" + fmt.Sprint(len(text)) }
