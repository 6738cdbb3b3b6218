package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func contentionCases() cases {
	return cases{
		"two contenders pass the lock back and forth":              contentionOfTwo,
		"of 20 contenders for 3 permits at most 3 hold one":        contentionForPermits,
		"readers and writers exclude each other, and none starves": contentionOfReadersAndWriters,
		"20 contenders for one lock are served in order":           contentionOfWriters,
	}
}

// runWorkers runs n workers concurrently, until all have finished or one has failed.
func (s *fixture) runWorkers(n int, work func(ctx context.Context, i int) error) {
	s.Helper()
	ctx, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	concurrently(n, func(i int) {
		if err := work(ctx, i); err != nil {
			stop(err)
		}
	})
	s.must(context.Cause(ctx))
}

// withLock waits for the lock, calls do, and releases the lock.
func (s *fixture) withLock(ctx context.Context, a lock.Acquire, do func(lock.Grant) error) error {
	g, err := s.acquirePatiently(ctx, s.complete(a))
	if err != nil {
		return err
	}
	return errors.Join(do(g), s.release(g))
}

// contentionOfTwo provokes lost wake-ups: one contender releases at the moment when the other begins to wait, and no
// later request repairs it.
func contentionOfTwo(s *fixture) {
	rounds := soak.Rounds(60, 256)
	r := criticalSection{name: s.name}
	s.runWorkers(2, func(ctx context.Context, i int) error {
		for range rounds {
			g, err := s.locks.Acquire(
				ctx,
				s.complete(lock.Acquire{Holder: fmt.Sprint("contender ", i), Wait: lock.MaxWait}),
			)
			if err != nil {
				return fmt.Errorf("contender %d: %w", i, err)
			}
			if err := errors.Join(r.enter(g.Token), s.release(g)); err != nil {
				return err
			}
		}
		return nil
	})
	if got := r.count.Load(); got != int64(2*rounds) {
		s.Errorf("%d visits were counted, want %d", got, 2*rounds)
	}
	s.verifyHistory(s.name, verify.Rules{})
}

func contentionForPermits(s *fixture) {
	const workers, rounds = 20, 5
	var out atomic.Int32
	var slots [threePermits + 1]atomic.Int32
	s.runWorkers(workers, func(ctx context.Context, i int) error {
		a := lock.Acquire{Holder: fmt.Sprint("worker ", i), Mode: lock.Permit, Capacity: threePermits}
		for range rounds {
			if err := s.withLock(ctx, a, func(g lock.Grant) error {
				if g.Slot < 1 || g.Slot > threePermits {
					return fmt.Errorf("a permit has slot %d", g.Slot)
				}
				defer out.Add(-1)
				defer slots[g.Slot].Add(-1)
				if n, in := out.Add(1), slots[g.Slot].Add(1); n > threePermits || in > 1 {
					return fmt.Errorf("%d hold one of %d permits, %d in slot %d", n, threePermits, in, g.Slot)
				}
				runtime.Gosched()
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	s.expectHolders()
	s.expectFair(s.verifyHistory(s.name, verify.Rules{Capacity: threePermits}), workers)
}

func contentionOfReadersAndWriters(s *fixture) {
	const readers, writers, rounds = 6, 2, 8
	var reading, writing atomic.Int32
	s.runWorkers(readers+writers, func(ctx context.Context, i int) error {
		a := lock.Acquire{Holder: fmt.Sprint("reader ", i), Mode: lock.Shared}
		mine, theirs, most := &reading, &writing, int32(readers)
		if i >= readers {
			a = lock.Acquire{Holder: fmt.Sprint("writer ", i)}
			mine, theirs, most = &writing, &reading, 1
		}
		for range rounds {
			if err := s.withLock(ctx, a, func(lock.Grant) error {
				defer mine.Add(-1)
				if n, others := mine.Add(1), theirs.Load(); n > most || others > 0 {
					return fmt.Errorf("%s holds the lock with %d of its kind and %d others", a.Holder, n, others)
				}
				runtime.Gosched()
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	s.expectHolders()
	s.expectFair(s.verifyHistory(s.name, verify.Rules{}), readers+writers)
}

func contentionOfWriters(s *fixture) {
	const workers, rounds = 20, 5
	r := criticalSection{name: s.name}
	s.runWorkers(workers, func(ctx context.Context, i int) error {
		for range rounds {
			if err := s.withLock(ctx, lock.Acquire{Holder: fmt.Sprint("worker ", i)}, func(g lock.Grant) error {
				return r.enter(g.Token)
			}); err != nil {
				return err
			}
		}
		return nil
	})
	s.expectFair(s.verifyHistory(s.name, verify.Rules{}), workers)
}

// expectFair ends the test if a waiter waited for more grants than two to each of the n contenders.
func (s *fixture) expectFair(events []lock.Event, n int) {
	s.Helper()
	grants, seen := 0, map[int64]int{}
	for _, e := range events {
		switch e.Kind {
		case lock.Queued:
			seen[e.Place] = grants
		case lock.Granted:
			if since := grants - seen[e.Place]; e.Place != 0 && since > 2*n {
				s.Fatalf("%s waited while %d others were granted the lock", e.Holder, since)
			}
			grants++
		}
	}
}
