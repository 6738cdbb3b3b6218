package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// many returns n items.
func many(n int, item func(i int) lock.Command) []lock.Command {
	items := make([]lock.Command, n)
	for i := range items {
		items[i] = item(i)
	}
	return items
}

func batchLargest(s *fixture) {
	r := s.batch(many(lock.MaxBatch, func(i int) lock.Command {
		return s.complete(lock.Acquire{Name: fmt.Sprintf("%s:%d", s.name, i)})
	})...)
	tokens := map[lock.Token]bool{}
	for i := range r {
		g := s.mustSucceed(r[i])
		if g.Name != fmt.Sprintf("%s:%d", s.name, i) || tokens[g.Token] {
			s.Fatalf("item %d was granted %+v", i, g)
		}
		tokens[g.Token] = true
	}
	for i, renewed := range s.batch(many(len(r), func(i int) lock.Command { return renewOf(r[i].Grant) })...) {
		if g := s.mustSucceed(renewed); g.Token != r[i].Grant.Token {
			s.Fatalf("%+v was renewed as %+v", r[i].Grant, g)
		}
	}
	for _, released := range s.batch(many(len(r), func(i int) lock.Command { return releaseOf(r[i].Grant) })...) {
		s.mustSucceed(released)
	}
	page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name, State: lock.Held})
	s.must(err)
	if len(page.Items) != 0 {
		s.Errorf("still held: %+v", page.Items)
	}
}

func batchTooMany(s *fixture) {
	for _, r := range s.batch(many(lock.MaxBatch+1, func(int) lock.Command { return s.complete(lock.Acquire{}) })...) {
		s.expectInvalid("an item", r.Err, "items")
	}
	if l := s.get(s.name); l.Revision != 0 {
		s.Errorf("the lock is %+v", l)
	}
}

func batchRace(s *fixture) {
	const locks, contenders = 20, 10
	var granted [locks]atomic.Int32
	concurrently(contenders, func(i int) {
		order := rand.Perm(locks)
		results := s.locks.Batch(s.ctx, many(locks, func(n int) lock.Command {
			return s.complete(
				lock.Acquire{Name: fmt.Sprintf("%s:%d", s.name, order[n]), Holder: fmt.Sprint("contender ", i)},
			)
		}))
		for n, r := range results {
			if r.Err == nil {
				granted[order[n]].Add(1)
			} else if !errors.Is(r.Err, lock.ErrHeld) {
				s.Error(r.Err)
			}
		}
	})
	for i := range granted {
		if n := granted[i].Load(); n != 1 {
			s.Errorf("lock %d was granted %d times", i, n)
		}
	}
}

// batchCross runs batches that acquire and release a few locks in random orders.
func batchCross(s *fixture) {
	const locks, workers, rounds = 3, 6, 5
	concurrently(workers, func(i int) {
		for range rounds {
			var items []lock.Command
			for _, n := range rand.Perm(locks) {
				a := s.complete(lock.Acquire{Name: fmt.Sprintf("%s:%d", s.name, n), Holder: fmt.Sprint("worker ", i)})
				items = append(items, a, lock.Release{Name: a.Name, LeaseID: a.LeaseID})
			}
			for _, r := range s.locks.Batch(s.ctx, items) {
				if r.Err != nil && !errors.Is(r.Err, lock.ErrHeld) && !errors.Is(r.Err, lock.ErrLeaseLost) {
					s.Error(r.Err)
				}
			}
		}
	})
	for n := range locks {
		events := s.verifyHistory(fmt.Sprintf("%s:%d", s.name, n), verify.Rules{})
		if !slices.IsSortedFunc(events, func(a, b lock.Event) int { return cmp.Compare(a.Token, b.Token) }) {
			s.Errorf("the tokens do not increase: %+v", events)
		}
	}
}
