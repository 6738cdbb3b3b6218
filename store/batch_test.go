package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// TestABatchIsOneTransaction of each worker, whether the locks are new or in the cache: its locks are written by one
// transaction, and its events are one row. A row has the tokens of lock.MaxTokens grants, so more take another one.
func TestABatchIsOneTransaction(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 4} {
		attempts := 1
		for !batchesAreOneTransaction(t, workers) {
			if attempts++; attempts > 5 {
				t.Fatal("the database did not answer in time, five times")
			}
		}
	}
}

// batchesAreOneTransaction checks it with a new database. It returns false if the database did not answer in time: on a
// machine that is busy for seconds, a batch is then decided in several parts.
func batchesAreOneTransaction(t *testing.T, workers int) bool {
	t.Helper()
	url := pgtest.URL(t)
	s := replica.Store(t, url, store.Options{BatchWorkers: workers})
	acquires, releases := make([]lock.Command, lock.MaxTokens), make([]lock.Command, lock.MaxTokens)
	for i := range acquires {
		a := acquire(fmt.Sprintf("jobs:%d", i))
		acquires[i], releases[i] = a, lock.Release{Locks: []string{a.Locks[0].Name}, LeaseID: a.LeaseID}
	}
	outside := connect(t, url)
	for batch, items := range [][]lock.Command{acquires, releases} {
		for i, r := range s.Batch(t.Context(), items) {
			switch {
			case errors.Is(r.Err, lock.ErrUnavailable):
				t.Logf("item %d: %v", i, r.Err)
				return false
			case r.Err != nil:
				t.Fatalf("item %d: %v", i, r.Err)
			}
		}
		if n := number(t, outside, "select count(distinct xmin::text) from paddock.records"); n != int64(workers) {
			t.Errorf("with %d workers, batch %d took %d transactions", workers, batch, n)
		}
		if n := number(t, outside, "select count(*) from paddock.event_batches"); n != int64((batch+1)*workers) {
			t.Errorf("with %d workers, there are %d rows of events after batch %d", workers, n, batch)
		}
	}
	return true
}

// TestOneStuckItemIsItsOwn: the row of one name is kept locked outside. The other
// items are done, and when the context ends that one alone has no answer.
func TestOneStuckItemIsItsOwn(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	mustRelease(t, s, mustAcquire(t, s, acquire("stuck")))
	hold(t, outside, "stuck")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	held := mustAcquire(t, s, acquire("held"))
	answered := make(chan []paddock.Result, 1)
	go func() {
		answered <- s.Batch(ctx, []lock.Command{
			acquire("a"), acquire("stuck"), acquire("held"), lock.Release{Locks: []string{"held"}, LeaseID: held.ID}, acquire("held"), acquire("a/b"),
		})
	}()
	until(t, "the others are done", func() bool { return len(eventsOf(t, s, "a")) == 1 && len(eventsOf(t, s, "held")) == 3 })
	mustAcquire(t, s, acquire("later")) // in a batch that begins when theirs is answered
	select {
	case results := <-answered:
		t.Fatalf("answered before all was decided: %+v", results)
	default:
	}
	cancel()
	results := <-answered
	for i, want := range []error{nil, nil, lock.ErrHeld, nil, nil, lock.ErrInvalid} {
		if i != 1 && !errors.Is(results[i].Err, want) {
			t.Errorf("item %d: %v, want %v", i, results[i].Err, want)
		}
	}
	left := results[1].Err
	if !errors.Is(left, lock.ErrUnavailable) && !errors.Is(left, lock.ErrUnknownOutcome) {
		t.Errorf("the stuck item: %v", left)
	}
	exec(t, outside, "commit")
	if events := eventsOf(t, s, "stuck"); errors.Is(left, lock.ErrUnavailable) && len(events) != 2 {
		t.Errorf("the stuck item was done, though its caller was told that it was not: %+v", events)
	}
}

func TestAClosedStoreDoesNoItem(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	s.Close()
	for i, r := range s.Batch(t.Context(), []lock.Command{acquire("a"), lock.Revoke{}}) {
		if want := []error{lock.ErrUnavailable, lock.ErrInvalid}[i]; !errors.Is(r.Err, want) {
			t.Errorf("item %d: %v, want %v", i, r.Err, want)
		}
	}
}
