package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// TestATreeIsDeclaredForAllReplicasAtOnce: one that does not know it yet decides on its cache, and must not write that.
func TestATreeIsDeclaredForAllReplicasAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one, other := open(t, url), open(t, url)
	for i := range 20 {
		root := fmt.Sprint("root-", i)
		below := acquire(root + ":src:a")
		mustRelease(t, other, mustAcquire(t, other, below)) // it is in the cache
		if _, err := one.DeclareTree(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		below.LeaseID = newID()
		held := mustAcquire(t, other, below)
		if _, err := one.Acquire(t.Context(), acquire(root)); !errors.Is(err, lock.ErrHeld) {
			t.Fatalf("round %d: the root was granted over a lease below it: %v", i, err)
		}
		mustRelease(t, other, held)
		if err := other.RemoveTree(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, one, mustAcquire(t, one, acquire(root)))
		permit := acquire(root + ":src:a")
		permit.Locks[0].Mode, permit.Locks[0].Capacity = lock.Permit, 2
		mustAcquire(t, one, permit) // in the tree it would be refused
	}
}

// TestCallsOutliveChangesOfTrees that their locks are not in, though the changes never end: acquires, releases and fenced
// writes are held up and not refused.
func TestCallsOutliveChangesOfTrees(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, other := open(t, url), open(t, url)
	g := mustAcquire(t, s, acquire("free"))
	ctx, stop := context.WithCancel(t.Context())
	var changes sync.WaitGroup
	var changed atomic.Int64
	for i := range 4 {
		changes.Go(func() {
			for ctx.Err() == nil {
				root := fmt.Sprint("root-", i)
				_, err := other.DeclareTree(t.Context(), root)
				err = cmp.Or(err, other.RemoveTree(t.Context(), root))
				switch {
				case err == nil:
					changed.Add(1)
				case !errors.Is(err, lock.ErrUnavailable): // a busy machine may take too long
					t.Error(err)
				}
			}
		})
	}
	for range 30 {
		if _, err := s.WriteFenced(t.Context(), lock.FencedWrite{Key: "key", Lock: g.Name, Token: g.Token, Value: []byte(`1`)}); err != nil {
			t.Error(err)
		}
		mustRelease(t, s, mustAcquire(t, other, acquire("busy")))
	}
	stop()
	if changes.Wait(); changed.Load() == 0 {
		t.Error("no tree was changed meanwhile")
	}
}

// TestTreesOutliveAFailOver: a replica that knows them reads them again.
func TestTreesOutliveAFailOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	if _, err := s.DeclareTree(t.Context(), "root"); err != nil {
		t.Fatal(err)
	}
	below := acquire("root:a")
	below.TTL = 2 * time.Second
	mustAcquire(t, s, below)
	exec(t, outside, "update paddock.epochs set timeline = '00000000', longest_ms = 2000")
	until(t, "another epoch", func() bool { return epochs(t, outside) == 2 })
	if _, err := s.Acquire(t.Context(), acquire("root")); err == nil {
		t.Error("after the fail-over the root was granted over a lease below it")
	}
	root := acquire("root")
	root.Wait = 30 * time.Second
	mustRelease(t, s, mustAcquire(t, s, root))
	mustAcquire(t, s, acquire("root:b"))
	if _, err := s.Acquire(t.Context(), acquire("root")); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("the tree is lost: %v", err)
	}
}

// TestATreeHoldsUpNoDecision for long while another session keeps a row locked, and the caller is told when to try
// again.
func TestATreeHoldsUpNoDecision(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	mustRelease(t, s, mustAcquire(t, s, acquire("locked")))
	hold(t, outside, "locked")
	refused := make(chan error, 1)
	go func() {
		_, err := s.DeclareTree(t.Context(), "root")
		refused <- err
	}()
	var slowest time.Duration
	for n := 0; ; n++ {
		began := time.Now()
		mustRelease(t, s, mustAcquire(t, s, acquire(fmt.Sprint("free-", n))))
		slowest = max(slowest, time.Since(began))
		select {
		case err := <-refused:
			e := new(lock.Error)
			if !errors.As(err, &e) || e.Code != lock.ErrUnavailable || e.RetryAfter < time.Second {
				t.Errorf("the tree was refused with %v", err)
			}
			if slowest > time.Second*database.Slowness {
				t.Errorf("a decision took %v beside the change of a tree", slowest)
			}
			exec(t, outside, "commit")
			if _, err := s.DeclareTree(t.Context(), "root"); err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// TestWhatChangesNoTreeLocksNothing: to declare a tree again, to remove one that is not there, and to be refused.
func TestWhatChangesNoTreeLocksNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	declared, err := s.DeclareTree(t.Context(), "root")
	if err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, acquire("root:a"))
	mustAcquire(t, s, acquire("used:a"))
	exec(t, outside, "begin")
	exec(t, outside, "lock table paddock.records, paddock.epochs, paddock.trees in row exclusive mode")
	if again, err := s.DeclareTree(t.Context(), "root"); err != nil || again != declared {
		t.Errorf("declared again: %v, %v; want %v", again, err, declared)
	}
	if err := s.RemoveTree(t.Context(), "none"); err != nil {
		t.Errorf("a tree that is not there: %v", err)
	}
	if _, err := s.DeclareTree(t.Context(), "root:a"); !errors.Is(err, lock.ErrTreeOverlaps) {
		t.Errorf("a tree in a tree: %v", err)
	}
	if _, err := s.DeclareTree(t.Context(), "used"); !errors.Is(err, lock.ErrTreeBusy) {
		t.Errorf("a tree in use: %v", err)
	}
	if err := s.RemoveTree(t.Context(), "root"); !errors.Is(err, lock.ErrTreeBusy) {
		t.Errorf("the removal of a tree in use: %v", err)
	}
}

// TestALeaseIDEndsAtTheLockThatWasAskedFor, and not at its ancestors, which only had intentions.
func TestALeaseIDEndsAtTheLockThatWasAskedFor(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, other := open(t, url), open(t, url)
	if _, err := s.DeclareTree(t.Context(), "root"); err != nil {
		t.Fatal(err)
	}
	above, below := acquire("root:a"), acquire("root:a:b")
	below.LeaseID = above.LeaseID
	first := mustAcquire(t, s, above)
	mustRelease(t, s, first)
	second := mustAcquire(t, s, below)
	for _, from := range []paddock.Service{s, other} { // the lock above has an intention of the second lease, in a cache or not
		mustRelease(t, from, first)
		if _, err := from.Acquire(t.Context(), above); !errors.Is(err, lock.ErrLeaseLost) {
			t.Errorf("the first acquire again: %v", err)
		}
	}
	mustRelease(t, s, second)
	for _, a := range []lock.Acquire{above, below} {
		for _, from := range []paddock.Service{s, other} {
			if _, err := from.Acquire(t.Context(), a); !errors.Is(err, lock.ErrLeaseLost) {
				t.Errorf("%s was granted again: %v", a.Locks[0].Name, err)
			}
		}
	}
}
