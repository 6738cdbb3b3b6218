package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

// joins has a call wait for the lock, behind so many others, and returns where it is answered.
func (x *site) joins(ctx context.Context, s *Store, name string, behind int) <-chan lock.Grant {
	x.Helper()
	granted := make(chan lock.Grant, 1)
	a := wants(name)
	a.Wait = time.Minute / 2
	go func() {
		defer close(granted)
		if g, err := s.Acquire(ctx, a); err == nil {
			granted <- g
		}
	}()
	x.until(fmt.Sprintf("select count(*) = %d from paddock.waiters where name = '%s'", behind+1, name))
	return granted
}

func (x *site) kinds(name string) []lock.Kind {
	x.Helper()
	rows, err := x.outside.Query(x.Context(), "select kind from paddock.events where name = $1 order by id", name)
	if err != nil {
		x.Fatal(err)
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowTo[lock.Kind])
	if err != nil {
		x.Fatal(err)
	}
	return kinds
}

// TestAQueueIsServedFromMemory: whoever joins it, and whoever it is handed to.
func TestAQueueIsServedFromMemory(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	g := x.acquires(s, wants("a"))
	var line []<-chan lock.Grant
	for i := range 3 {
		line = append(line, x.joins(t.Context(), s, "a", i))
	}
	for i, granted := range line {
		x.releases(s, g)
		next, ok := <-granted
		if !ok || next.Token <= g.Token {
			t.Fatalf("after token %d the call at place %d got %d", g.Token, i, next.Token)
		}
		g = x.renews(s, next)
	}
	x.releases(s, g)
	x.until("select count(*) = 0 from paddock.waiters")
	x.wrote("a", 10, 1)
	want := []lock.Kind{
		lock.Granted, lock.Queued, lock.Queued, lock.Queued,
		lock.Released, lock.Granted, lock.Released, lock.Granted, lock.Released, lock.Granted, lock.Released,
	}
	if got := x.kinds("a"); !slices.Equal(got, want) {
		t.Errorf("the events are %v, want %v", got, want)
	}
}

// TestACrowdThatWasChangedIsLeftAlone: neither the lock is written, nor what belongs to it.
func TestACrowdThatWasChangedIsLeftAlone(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s, other := x.store(), x.store()
	g := x.acquires(s, wants("a"))
	ctx, cancel := context.WithCancel(t.Context())
	granted := x.joins(ctx, s, "a", 0)
	other.mustRevoke(t, g)
	e := new(lock.Error)
	if err := s.Release(t.Context(), lock.Release{Name: "a", LeaseID: g.ID}); !errors.As(err, &e) || e.Ended != lock.Revoked {
		t.Errorf("releasing what was revoked gave %v", err)
	}
	cancel()
	for range granted {
		t.Error("a call was told of a lease that it had not fetched")
	}
	if kinds := x.kinds("a"); slices.Contains(kinds, lock.Released) {
		t.Errorf("the events are %v", kinds)
	}
}

// TestCrowdsAreSwappedInFewLocksOnly: else those with a queue go through a transaction.
func TestCrowdsAreSwappedInFewLocksOnly(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct{ locks, swapped int }{{maxCrowdedSwap, maxCrowdedSwap}, {maxCrowdedSwap + 1, maxCrowdedSwap}} {
		r := &recents{young: make(map[string]recent), epoch: epoch{longest: time.Hour}, clock: reading{shown: now, after: now, before: now}}
		var calls []*call
		for i := range c.locks {
			a := wants(fmt.Sprintf("n:%02d", i))
			a.Mode = lock.Exclusive
			s := lock.Record{Name: a.Name}
			if i == 0 {
				s.Queue = []*lock.Waiter{{Place: 1, Lease: lock.Lease{Holder: "w"}, KeptUntil: now.Add(time.Hour)}}
			}
			r.put(s, anchor{}, here)
			calls = append(calls, batch.NewCall[lock.Command, outcome](acquireCall{Acquire: a}))
		}
		w := newSwap(r, here, calls, now)
		if crowded := c.locks <= maxCrowdedSwap; len(w.all) != c.swapped || w.crowded != crowded {
			t.Errorf("of %d locks %d are swapped, crowded: %t", c.locks, len(w.all), w.crowded)
		}
	}
}
