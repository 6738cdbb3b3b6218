package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func setRaceCases() cases {
	return cases{
		"of 20 contenders for a set exactly one is granted it":                setContenders,
		"of 20 copies of one acquire of a set one is the first grant":         setCopies,
		"two contenders with opposite orders pass a set back and forth":       setPassed,
		"16 contenders draw sets of 6 locks, and all are served":              setContention,
		"a set cancelled at a release leaves its locks free":                  setCancelledAtRelease,
		"a set cancelled at a release leaves its locks to the next":           setCancelledWithNext,
		"a set whose wait ends at a release is granted or refused as a whole": setTimesOutAtRelease,
		"sets cancelled at random do not block others":                        setCancelledAtRandom,
		"a set is never seen in part":                                         setNeverInPart,
	}
}

func setContenders(s *fixture) {
	const n = 20
	grants, errs := make([]lock.Grant, n), make([]error, n)
	concurrently(n, func(i int) {
		numbers := [][]int{{1, 2, 3}, {3, 2, 1}}[i%2]
		grants[i], errs[i] = s.acquire(lock.Acquire{Set: s.set(numbers...), Holder: fmt.Sprint(i)})
	})
	granted := 0
	for i, err := range errs {
		if err == nil {
			granted++
			s.expectHeld(map[int]string{1: fmt.Sprint(i), 2: fmt.Sprint(i), 3: fmt.Sprint(i)})
			continue
		}
		s.expectError(err, lock.ErrHeld)
	}
	if granted != 1 {
		s.Errorf("%d were granted the set", granted)
	}
	for i := range 3 {
		s.events(s.other(i+1), 1)
	}
}

func setCopies(s *fixture) {
	const n = 20
	a := lock.Acquire{Set: s.set(1, 2), LeaseID: newID()}
	grants, errs := make([]lock.Grant, n), make([]error, n)
	concurrently(n, func(i int) { grants[i], errs[i] = s.acquire(a) })
	first := 0
	for i, err := range errs {
		s.must(err)
		if !grants[i].Replayed {
			first++
		}
		if grants[i].Token != grants[0].Token || len(grants[i].Members) != 2 {
			s.Errorf("one acquire has the grants %+v and %+v", grants[0], grants[i])
		}
	}
	if first != 1 {
		s.Errorf("%d answers are the first grant", first)
	}
	concurrently(n, func(i int) { errs[i] = s.release(grants[i]) })
	s.must(errors.Join(errs...))
	s.events(s.other(1), 2)
	s.events(s.other(2), 2)
}

// A lockUse counts the holders of one lock, and has the newest of their tokens.
type lockUse struct {
	inside atomic.Int64
	token  atomic.Int64
}

// visit enters all locks of the grant, and leaves them.
func visit(locks map[string]*lockUse, g lock.Grant) error {
	for _, l := range g.Members {
		at := locks[l.Name]
		if n := at.inside.Add(1); n != 1 {
			return fmt.Errorf("%d hold %s", n, l.Name)
		}
		if last := at.token.Swap(int64(l.Token)); last >= int64(l.Token) {
			return fmt.Errorf("token %d of %s was granted after %d", l.Token, l.Name, last)
		}
	}
	runtime.Gosched()
	for _, l := range g.Members {
		locks[l.Name].inside.Add(-1)
	}
	return nil
}

// uses returns one for each of the locks s.other(n) for n up to count.
func (s *fixture) uses(count int) map[string]*lockUse {
	locks := map[string]*lockUse{}
	for n := range count {
		locks[s.other(n)] = &lockUse{}
	}
	return locks
}

// verifySets ends the test unless the histories of the locks keep the rules. At a free lock, the first waiter may wait
// for other locks of its set.
func (s *fixture) verifySets(count int) {
	s.Helper()
	for n := range count {
		s.verifyHistory(s.other(n), verify.Rules{AllowOvertaking: true})
	}
}

// setPassed provokes lost wake-ups: no later request repairs one.
func setPassed(s *fixture) {
	locks := s.uses(2)
	s.runWorkers(2, func(ctx context.Context, i int) error {
		for range soak.Rounds(40, 200) {
			a := s.complete(lock.Acquire{Set: s.set(i, 1-i), Holder: fmt.Sprint("contender ", i), Wait: lock.MaxWait})
			g, err := s.locks.Acquire(ctx, a)
			if err != nil {
				return fmt.Errorf("contender %d: %w", i, err)
			}
			if err := errors.Join(visit(locks, g), s.release(g)); err != nil {
				return err
			}
		}
		return nil
	})
	s.verifySets(2)
}

func setContention(s *fixture) {
	const workers, rounds, count = 16, 20, 6
	locks := s.uses(count)
	s.runWorkers(workers, func(ctx context.Context, i int) error {
		for range rounds {
			a := lock.Acquire{Set: s.set(rand.Perm(count)[:2+rand.IntN(2)]...), Holder: fmt.Sprint("contender ", i)}
			g, err := s.acquirePatiently(ctx, s.complete(a))
			if err != nil {
				return err
			}
			if err := errors.Join(visit(locks, g), s.release(g)); err != nil {
				return err
			}
		}
		return nil
	})
	for name, have := range s.heldBy() {
		if have != "[]" {
			s.Errorf("%s is held by %s", name, have)
		}
	}
	s.verifySets(count)
}

func setCancelledAtRelease(s *fixture) {
	c := &releaseRace{s: s}
	for i := range soak.Rounds(20, 60) {
		g := s.hold(i%3, "holder")
		w := s.enqueue(lock.Acquire{Set: s.set(0, 1, 2), Holder: "set", Wait: lock.MaxWait})
		c.release(g, w.cancel)
		w.cancelAndRelease()
		// A lease of the cancelled call would outlive this wait.
		next := s.startAcquire(lock.Acquire{Set: s.set(2, 1, 0), Holder: "next", Wait: lock.MaxWait})
		s.must(s.release(next.mustBeWoken()))
	}
	for n := range 3 {
		s.eventually("the queue is empty", func() bool { return len(s.queue(s.other(n)).Waiters) == 0 })
	}
	s.verifySets(3)
}

func setCancelledWithNext(s *fixture) {
	c := &releaseRace{s: s}
	g := s.mustAcquireSet("first", 0, 1)
	for range soak.Rounds(20, 60) {
		w := s.enqueue(lock.Acquire{Set: s.set(1, 2), Holder: "set", Wait: lock.MaxWait})
		next := s.enqueue(lock.Acquire{Set: s.set(0, 1), Holder: "next", Wait: lock.MaxWait})
		c.release(g, w.cancel)
		w.cancelAndRelease()
		g = next.mustBeWoken()
	}
	s.must(s.release(g))
	for n := range 3 {
		s.eventually("the queue is empty", func() bool { return len(s.queue(s.other(n)).Waiters) == 0 })
	}
	s.verifySets(3)
}

func setTimesOutAtRelease(s *fixture) {
	for i := range soak.Rounds(6, 15) {
		g := s.hold(i%2, "holder")
		w := s.startAcquire(lock.Acquire{Set: s.set(0, 1), Holder: "set", Wait: shortTTL})
		ended := time.NewTimer(time.Until(w.began.Add(shortTTL - time.Millisecond + rand.N(3*time.Millisecond))))
		defer ended.Stop()
		<-ended.C
		s.must(s.release(g))
		w.wait()
		if w.err == nil {
			s.must(s.release(w.grant))
		} else {
			s.expectError(w.err, lock.ErrHeld)
		}
		s.must(s.release(s.mustAcquireSet("next", 1, 0)))
	}
	s.verifySets(2)
}

// setCancelledAtRandom cancels waiting sets at random instants.
func setCancelledAtRandom(s *fixture) {
	const count = 4
	concurrently(6, func(i int) {
		for range 10 {
			w := s.startAcquire(lock.Acquire{Set: s.set(rand.Perm(count)[:2]...), Holder: "fickle", Wait: lock.MaxWait})
			end := time.AfterFunc(rand.N(10*time.Millisecond), w.cancel)
			<-w.done
			end.Stop()
			if w.err == nil {
				w.err = s.release(w.grant)
			} else {
				w.leave()
			}
			if w.err != nil && !errors.Is(w.err, lock.ErrUnavailable) && !errors.Is(w.err, lock.ErrUnknownOutcome) {
				s.Errorf("caller %d: %v", i, w.err)
			}
		}
	})
	last := s.startAcquire(lock.Acquire{Set: s.set(0, 1, 2, 3), Holder: "the last", Wait: lock.MaxWait})
	s.must(s.release(last.mustBeWoken()))
	for n := range count {
		s.eventually("the queue is empty", func() bool { return len(s.queue(s.other(n)).Waiters) == 0 })
	}
	s.verifySets(count)
}

// setNeverInPart reads while a set is granted, waits and is released: all of its locks in one read.
func setNeverInPart(s *fixture) {
	var done atomic.Bool
	s.runWorkers(3, func(ctx context.Context, i int) error {
		if i == 0 {
			defer done.Store(true)
		}
		for range 20 {
			if i == 2 {
				return s.expectWhole(&done)
			}
			a := s.complete(lock.Acquire{Set: s.set(1, 2, 3), Holder: fmt.Sprint("set ", i)})
			g, err := s.acquirePatiently(ctx, a)
			if err != nil {
				return err
			}
			if err := s.release(g); err != nil {
				return err
			}
		}
		return nil
	})
}

// expectWhole reads until done, and returns an error if the locks have different holders.
func (s *fixture) expectWhole(done *atomic.Bool) error {
	for !done.Load() {
		page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name + ":"})
		if err != nil {
			return err
		}
		held := map[lock.Token]int{}
		for _, l := range page.Items {
			for _, h := range l.Leases {
				held[h.Token]++
			}
		}
		for token, n := range held {
			if n != 3 {
				return fmt.Errorf("the set with token %d is held at %d of 3 locks: %+v", token, n, page.Items)
			}
		}
	}
	return nil
}
