package locktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func raceCases() cases {
	return cases{
		"of 50 contenders for a lock exactly one is granted it":    raceOfContenders(50, []int{0}),
		"of 20 contenders for a set exactly one is granted it":     raceOfContenders(20, []int{0, 1, 2}, []int{2, 1, 0}),
		"of 20 copies of one acquire one is the first grant":       raceOfCopies(0),
		"of 20 copies of one acquire of a set too":                 raceOfCopies(0, 1),
		"of 20 writes at version 0 exactly one succeeds":           raceOfVersions,
		"20 writes with one token all succeed":                     raceOfWrites,
		"two contenders pass a lock back and forth":                passedBetweenTwo([]int{0}, []int{0}),
		"two contenders with opposite orders pass a set":           passedBetweenTwo([]int{0, 1}, []int{1, 0}),
		"20 contenders for one lock are served in order":           contentionForOne,
		"16 contenders draw sets of 6 locks, and all are served":   contentionForSets,
		"of 20 contenders for 3 permits at most 3 hold one":        contentionForPermits,
		"readers and writers exclude each other, and none starves": contentionOfReadersAndWriters,
	}
}

// concurrently runs do n times at once and returns when all have finished. do must not end the test.
func concurrently(n int, do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
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

func raceOfContenders(n int, sets ...[]int) func(*fixture) {
	return func(s *fixture) {
		grants, errs := make([]lock.Grant, n), make([]error, n)
		concurrently(n, func(i int) {
			grants[i], errs[i] = s.acquire(lock.Acquire{Set: s.set(sets[i%len(sets)]...), Holder: fmt.Sprint(i)})
		})
		granted := 0
		for i, err := range errs {
			if err == nil {
				granted++
				for _, number := range sets[0] {
					s.expectHeld(map[int]string{number: fmt.Sprint(i)})
				}
				continue
			}
			s.expectError(err, lock.ErrHeld)
		}
		if granted != 1 {
			s.Errorf("%d were granted the locks", granted)
		}
		for _, number := range sets[0] {
			s.events(s.other(number), 1)
		}
	}
}

func raceOfCopies(numbers ...int) func(*fixture) {
	return func(s *fixture) {
		const n = 20
		a := lock.Acquire{Set: s.set(numbers...), LeaseID: newID()}
		grants, errs := make([]lock.Grant, n), make([]error, n)
		concurrently(n, func(i int) { grants[i], errs[i] = s.acquire(a) })
		first := 0
		for i, err := range errs {
			s.must(err)
			if !grants[i].Replayed {
				first++
			}
			if grants[i].Token != grants[0].Token || len(grants[i].Members) != len(grants[0].Members) {
				s.Errorf("one acquire has the grants %+v and %+v", grants[0], grants[i])
			}
		}
		if first != 1 {
			s.Errorf("%d answers are the first grant", first)
		}
		concurrently(n, func(i int) { errs[i] = s.release(grants[i]) })
		s.must(errors.Join(errs...))
		for _, number := range numbers {
			s.events(s.other(number), 2)
		}
	}
}

func raceOfVersions(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	errs := make([]error, 20)
	concurrently(len(errs), func(i int) { _, errs[i] = s.writeAt(0, g.Token, fmt.Sprint(i)) })
	landed := 0
	for _, err := range errs {
		if err == nil {
			landed++
		} else if e := s.expectError(err, lock.ErrVersionMismatch); e.Version != 1 {
			s.Errorf("a refusal names version %d, want 1", e.Version)
		}
	}
	if landed != 1 {
		s.Errorf("%d writes succeeded, want 1", landed)
	}
}

func raceOfWrites(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	written, errs := make([]lock.FencedValue, 20), make([]error, 20)
	concurrently(len(errs), func(i int) { written[i], errs[i] = s.write(g.Token, fmt.Sprint(i)) })
	s.must(errors.Join(errs...))
	values := map[int64]json.RawMessage{}
	for _, f := range written {
		values[f.Version] = f.Value
	}
	f, err := s.locks.ReadFenced(s.ctx, s.name)
	s.must(err)
	if f.Version != 20 || len(values) != 20 || string(values[20]) != string(f.Value) {
		s.Errorf("20 writes gave %d versions, and the last is %+v", len(values), f)
	}
}

// lockUse counts the holders of each lock s.other(n), and has the newest of their tokens.
type lockUse []struct{ inside, visits, token atomic.Int64 }

// visit enters all locks of the grant, and leaves them. It counts visits with a race, which loses some unless the locks
// exclude others.
func (u lockUse) visit(s *fixture, g lock.Grant) error {
	leases := g.Members
	if leases == nil {
		leases = []lock.Lease{g.Lease}
	}
	for n := range u {
		for _, l := range leases {
			if l.Name != s.other(n) {
				continue
			}
			if in := u[n].inside.Add(1); in != 1 {
				return fmt.Errorf("%d hold %s", in, l.Name)
			}
			if last := u[n].token.Swap(int64(l.Token)); last >= int64(l.Token) {
				return fmt.Errorf("token %d of %s was granted after %d", l.Token, l.Name, last)
			}
			before := u[n].visits.Load()
			runtime.Gosched()
			u[n].visits.Store(before + 1)
			defer u[n].inside.Add(-1)
		}
	}
	return nil
}

// expectVisits ends the test unless the locks were visited so often in all, and their histories keep the rules.
func (s *fixture) expectVisits(u lockUse, want int, r verify.Rules) {
	s.Helper()
	visits := 0
	for n := range u {
		visits += int(u[n].visits.Load())
		s.expectHeld(map[int]string{n: ""})
		s.verifyHistory(s.other(n), r)
	}
	if visits != want {
		s.Errorf("%d visits were counted, want %d", visits, want)
	}
}

// ofSets are the rules for locks of sets: at a free lock, the first waiter may wait for other locks of its set.
var ofSets = verify.Rules{AllowOvertaking: true}

// passedBetweenTwo provokes lost wake-ups: one contender releases at the moment when the other begins to wait, and no
// later request repairs it.
func passedBetweenTwo(sets ...[]int) func(*fixture) {
	return func(s *fixture) {
		rounds, rules := soak.Rounds(60, 256), verify.Rules{}
		if len(sets[0]) > 1 {
			rules = ofSets
		}
		u := make(lockUse, len(sets[0]))
		s.runWorkers(2, func(ctx context.Context, i int) error {
			for range rounds {
				a := lock.Acquire{Set: s.set(sets[i]...), Holder: fmt.Sprint("contender ", i), Wait: lock.MaxWait}
				g, err := s.locks.Acquire(ctx, s.complete(a))
				if err != nil {
					return fmt.Errorf("contender %d: %w", i, err)
				}
				if err := errors.Join(u.visit(s, g), s.release(g)); err != nil {
					return err
				}
			}
			return nil
		})
		s.expectVisits(u, 2*rounds*len(u), rules)
	}
}

// withLock waits for the lock, calls do, and releases the lock.
func (s *fixture) withLock(ctx context.Context, a lock.Acquire, do func(lock.Grant) error) error {
	g, err := s.acquirePatiently(ctx, s.complete(a))
	if err != nil {
		return err
	}
	return errors.Join(do(g), s.release(g))
}

func contentionForOne(s *fixture) {
	const workers, rounds = 20, 5
	u := make(lockUse, 1)
	s.runWorkers(workers, func(ctx context.Context, i int) error {
		for range rounds {
			a := lock.Acquire{Name: s.other(0), Holder: fmt.Sprint("worker ", i)}
			if err := s.withLock(ctx, a, func(g lock.Grant) error { return u.visit(s, g) }); err != nil {
				return err
			}
		}
		return nil
	})
	s.expectVisits(u, workers*rounds, verify.Rules{})
	s.expectFair(s.verifyHistory(s.other(0), verify.Rules{}), workers)
}

func contentionForSets(s *fixture) {
	const workers, rounds, count = 16, 20, 6
	u := make(lockUse, count)
	var visits atomic.Int64
	s.runWorkers(workers, func(ctx context.Context, i int) error {
		for range rounds {
			a := lock.Acquire{Set: s.set(rand.Perm(count)[:2+rand.IntN(2)]...), Holder: fmt.Sprint("contender ", i)}
			visits.Add(int64(len(a.Set)))
			if err := s.withLock(ctx, a, func(g lock.Grant) error { return u.visit(s, g) }); err != nil {
				return err
			}
		}
		return nil
	})
	s.expectVisits(u, int(visits.Load()), ofSets)
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
