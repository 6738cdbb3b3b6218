package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func crowding() cases {
	return cases{
		"two who contend hand the lock to and fro 512 times": crowdOfTwo,
		"of 20 who want one of 3 permits never 4 have one":   crowdOfPermits,
		"readers and writers never meet, and nobody starves": crowdOfReaders,
		"20 who contend for one lock are served in order":    crowdOfWriters,
	}
}

// crowd has n workers work at once, until each is through or one has failed.
func (s *scene) crowd(n int, work func(ctx context.Context, i int) error) {
	s.Helper()
	ctx, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	together(n, func(i int) {
		if err := work(ctx, i); err != nil {
			stop(err)
		}
	})
	s.must(context.Cause(ctx))
}

// with does what is to be done under a lease that is waited for.
func (s *scene) with(ctx context.Context, a lock.Acquire, do func(lock.Grant) error) error {
	g, err := s.patiently(ctx, s.complete(a))
	if err != nil {
		return err
	}
	return errors.Join(do(g), s.release(g))
}

// crowdOfTwo is where a wake-up is lost, if any is: the one has just released when
// the other begins to wait. Nobody comes by later and makes up for it.
func crowdOfTwo(s *scene) {
	const rounds = 256
	r := room{name: s.name}
	s.crowd(2, func(ctx context.Context, i int) error {
		for range rounds {
			g, err := s.locks.Acquire(ctx, s.complete(lock.Acquire{Holder: fmt.Sprint("contender ", i), Wait: lock.MaxWait}))
			if err != nil {
				return fmt.Errorf("contender %d: %w", i, err)
			}
			if err := errors.Join(r.visit(g.Token), s.release(g)); err != nil {
				return err
			}
		}
		return nil
	})
	if got := r.count.Load(); got != 2*rounds {
		s.Errorf("%d visits were counted, want %d", got, 2*rounds)
	}
	s.proven(s.name, verify.Rules{})
}

func crowdOfPermits(s *scene) {
	const workers, rounds = 20, 5
	var out atomic.Int32
	var slots [threePermits + 1]atomic.Int32
	s.crowd(workers, func(ctx context.Context, i int) error {
		a := lock.Acquire{Holder: fmt.Sprint("worker ", i), Mode: lock.Permit, Capacity: threePermits}
		for range rounds {
			if err := s.with(ctx, a, func(g lock.Grant) error {
				if g.Slot < 1 || g.Slot > threePermits {
					return fmt.Errorf("a permit sits in slot %d", g.Slot)
				}
				defer out.Add(-1)
				defer slots[g.Slot].Add(-1)
				if n, in := out.Add(1), slots[g.Slot].Add(1); n > threePermits || in > 1 {
					return fmt.Errorf("%d have one of %d permits, %d sit in slot %d", n, threePermits, in, g.Slot)
				}
				runtime.Gosched()
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	s.held()
	s.fair(s.proven(s.name, verify.Rules{Capacity: threePermits}), workers)
}

func crowdOfReaders(s *scene) {
	const readers, writers, rounds = 6, 2, 8
	var reading, writing atomic.Int32
	s.crowd(readers+writers, func(ctx context.Context, i int) error {
		a := lock.Acquire{Holder: fmt.Sprint("reader ", i), Mode: lock.Shared}
		mine, theirs, most := &reading, &writing, int32(readers)
		if i >= readers {
			a = lock.Acquire{Holder: fmt.Sprint("writer ", i)}
			mine, theirs, most = &writing, &reading, 1
		}
		for range rounds {
			if err := s.with(ctx, a, func(lock.Grant) error {
				defer mine.Add(-1)
				if n, others := mine.Add(1), theirs.Load(); n > most || others > 0 {
					return fmt.Errorf("%s is there with %d like it and %d others", a.Holder, n, others)
				}
				runtime.Gosched()
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	s.held()
	s.fair(s.proven(s.name, verify.Rules{}), readers+writers)
}

func crowdOfWriters(s *scene) {
	const workers, rounds = 20, 5
	r := room{name: s.name}
	s.crowd(workers, func(ctx context.Context, i int) error {
		for range rounds {
			if err := s.with(ctx, lock.Acquire{Holder: fmt.Sprint("worker ", i)}, func(g lock.Grant) error {
				return r.visit(g.Token)
			}); err != nil {
				return err
			}
		}
		return nil
	})
	s.fair(s.proven(s.name, verify.Rules{}), workers)
}

// fair ends the test if anybody saw more grants to others while it waited than two
// to each of the n who contend.
func (s *scene) fair(events []lock.Event, n int) {
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
