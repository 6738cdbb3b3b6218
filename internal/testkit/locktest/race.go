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
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func raceCases() cases {
	return cases{
		"of 50 contenders exactly one is granted the lock":   raceContenders,
		"of 20 copies of one acquire one is the first grant": raceReplays,
		"20 copies of one release all succeed":               raceReleases,
		"of 20 writes at version 0 exactly one succeeds":     raceVersions,
		"20 writes with one token all succeed":               raceWrites,
		"at most one holder is in the critical section":      raceExclusion,
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

func raceContenders(s *fixture) {
	const n = 50
	grants, errs := make([]lock.Grant, n), make([]error, n)
	concurrently(n, func(i int) {
		grants[i], errs[i] = s.acquire(lock.Acquire{Holder: fmt.Sprintf("contender %d", i)})
	})
	holder, refused := s.get(s.name).Leases, 0
	if len(holder) != 1 {
		s.Fatalf("the leases are %+v", holder)
	}
	for i, err := range errs {
		if err == nil {
			if grants[i].Token != holder[0].Token {
				s.Errorf("contender %d was granted token %d, the lock has %d", i, grants[i].Token, holder[0].Token)
			}
			continue
		}
		refused++
		if e := s.expectError(err, lock.ErrHeld); e.Holder != holder[0].Holder {
			s.Errorf("a refusal names %q, the holder is %q", e.Holder, holder[0].Holder)
		}
	}
	if refused != n-1 {
		s.Errorf("%d were refused, want %d", refused, n-1)
	}
	s.events(s.name, 1)
}

func raceReplays(s *fixture) {
	const n = 20
	a := lock.Acquire{LeaseID: newID()}
	grants, errs := make([]lock.Grant, n), make([]error, n)
	concurrently(n, func(i int) { grants[i], errs[i] = s.acquire(a) })
	first := 0
	for i, err := range errs {
		s.must(err)
		if !grants[i].Replayed {
			first++
		}
		if grants[i].Token != grants[0].Token {
			s.Errorf("one acquire has the tokens %d and %d", grants[0].Token, grants[i].Token)
		}
	}
	if first != 1 {
		s.Errorf("%d answers are the first grant", first)
	}
	s.events(s.name, 1)
}

func raceReleases(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	errs := make([]error, 20)
	concurrently(len(errs), func(i int) { errs[i] = s.release(g) })
	s.must(errors.Join(errs...))
	s.events(s.name, 2)
}

func raceVersions(s *fixture) {
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

func raceWrites(s *fixture) {
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

// A criticalSection is guarded by a lock. Each holder increments count with a race that loses counts unless the lock
// excludes others.
type criticalSection struct {
	name          string
	inside, count atomic.Int64
	token         atomic.Int64
}

func (c *criticalSection) enter(t lock.Token) error {
	if n := c.inside.Add(1); n != 1 {
		return fmt.Errorf("%d holders are inside %s", n, c.name)
	}
	before := c.count.Load()
	runtime.Gosched()
	c.count.Store(before + 1)
	if last := lock.Token(c.token.Swap(int64(t))); last >= t {
		return fmt.Errorf("token %d entered %s after %d", t, c.name, last)
	}
	c.inside.Add(-1)
	return nil
}

func raceExclusion(s *fixture) {
	const workers, visits = 12, 8
	sections := make([]criticalSection, 3)
	for i := range sections {
		sections[i].name = fmt.Sprintf("%s:%d", s.name, i)
	}
	ctx, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	concurrently(workers, func(i int) {
		for v := range visits {
			if err := s.enterWhenGranted(ctx, &sections[(i+v)%len(sections)]); err != nil {
				stop(err)
			}
		}
	})
	s.must(context.Cause(ctx))
	for i := range sections {
		if got := sections[i].count.Load(); got != workers*visits/int64(len(sections)) {
			s.Errorf("%d visits of %s were counted, want %d", got, sections[i].name, workers*visits/len(sections))
		}
		s.expectNoGaps(s.events(sections[i].name, 2*workers*visits/len(sections)))
	}
}

// enterWhenGranted acquires the lock by polling and enters the critical section.
func (s *fixture) enterWhenGranted(ctx context.Context, c *criticalSection) error {
	for ctx.Err() == nil {
		g, err := s.acquire(lock.Acquire{Name: c.name})
		switch {
		case err == nil:
			return errors.Join(c.enter(g.Token), s.release(g))
		case !errors.Is(err, lock.ErrHeld):
			return err
		}
		select {
		case <-time.After(rand.N(10 * time.Millisecond)):
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}
