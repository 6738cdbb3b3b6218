package locktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

func raceCases() cases {
	return cases{
		"of 50 contenders for a lock exactly one is granted it": raceOfContenders(50, []int{0}),
		"of 20 contenders for a set exactly one is granted it":  raceOfContenders(20, []int{0, 1, 2}, []int{2, 1, 0}),
		"of 20 copies of one acquire one is the first grant":    raceOfCopies(0),
		"of 20 copies of one acquire of a set too":              raceOfCopies(0, 1),
		"of 20 writes at version 0 exactly one succeeds":        raceOfVersions,
		"20 writes with one token all succeed":                  raceOfWrites,
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
			grants[i], errs[i] = s.acquire(lock.Acquire{Locks: s.set(sets[i%len(sets)]...), Holder: fmt.Sprint(i)})
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
		a := lock.Acquire{Locks: s.set(numbers...), LeaseID: newID()}
		grants, errs := make([]lock.Grant, n), make([]error, n)
		concurrently(n, func(i int) { grants[i], errs[i] = s.acquire(a) })
		first := 0
		for i, err := range errs {
			s.must(err)
			if !grants[i].Replayed {
				first++
			}
			if grants[i].Token != grants[0].Token || len(grants[i].Leases) != len(grants[0].Leases) {
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
	f, err := s.locks().ReadFenced(s.ctx, s.name)
	s.must(err)
	if f.Version != 20 || len(values) != 20 || string(values[20]) != string(f.Value) {
		s.Errorf("20 writes gave %d versions, and the last is %+v", len(values), f)
	}
}
