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

// concurrently runs do n times at once and returns when all are done. do must not
// end the test.
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
		s.Fatalf("there are the leases %+v", holder)
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
		s.Errorf("%d answers say that they are the first", first)
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
		s.Errorf("%d writes landed, want 1", landed)
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
		s.Errorf("20 writes gave %d versions, and at last %+v", len(values), f)
	}
}

// A criticalSection is what a lock guards: whoever is inside counts, in a way that loses
// counts unless it is alone.
type criticalSection struct {
	name          string
	inside, count atomic.Int64
	token         atomic.Int64
}

func (r *criticalSection) enter(t lock.Token) error {
	if n := r.inside.Add(1); n != 1 {
		return fmt.Errorf("%d are inside %s", n, r.name)
	}
	before := r.count.Load()
	runtime.Gosched()
	r.count.Store(before + 1)
	if last := lock.Token(r.token.Swap(int64(t))); last >= t {
		return fmt.Errorf("token %d came into %s after %d", t, r.name, last)
	}
	r.inside.Add(-1)
	return nil
}

func raceExclusion(s *fixture) {
	const workers, visits = 12, 8
	rooms := make([]criticalSection, 3)
	for i := range rooms {
		rooms[i].name = fmt.Sprintf("%s:%d", s.name, i)
	}
	ctx, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	concurrently(workers, func(i int) {
		for v := range visits {
			if err := s.enterWhenGranted(ctx, &rooms[(i+v)%len(rooms)]); err != nil {
				stop(err)
			}
		}
	})
	s.must(context.Cause(ctx))
	for i := range rooms {
		if got := rooms[i].count.Load(); got != workers*visits/int64(len(rooms)) {
			s.Errorf("%d visits of %s were counted, want %d", got, rooms[i].name, workers*visits/len(rooms))
		}
		s.expectNoGaps(s.events(rooms[i].name, 2*workers*visits/len(rooms)))
	}
}

// enterWhenGranted goes into the room as soon as its lock is granted.
func (s *fixture) enterWhenGranted(ctx context.Context, r *criticalSection) error {
	for ctx.Err() == nil {
		g, err := s.acquire(lock.Acquire{Name: r.name})
		switch {
		case err == nil:
			return errors.Join(r.enter(g.Token), s.release(g))
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
