package locktest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func cancellationCases() cases {
	all := cases{}
	for what, numbers := range map[string][]int{"a call for a lock": {0}, "a call for a set": {0, 1, 2}} {
		all[what+" that is cancelled at a release leaves the locks free"] = cancelledAtRelease(numbers)
		all[what+" that is cancelled at a release leaves the locks to the next"] = cancelledBeforeNext(numbers)
		all[what+" whose wait ends at a release is granted all or nothing"] = timesOutAtRelease(numbers)
		all[what+" that is cancelled at random does not block others"] = cancelledAtRandom(numbers)
	}
	return all
}

// A releaseRace runs an action around a release: just before it, just after it, or at a random instant during it.
type releaseRace struct {
	s     *fixture
	round int
	took  time.Duration
}

func (c *releaseRace) release(g lock.Grant, do func()) {
	c.s.Helper()
	c.round++
	switch c.round % 4 {
	case 0:
		do()
	case 1:
		defer do()
	default:
		defer time.AfterFunc(rand.N(2*c.took+time.Microsecond), do).Stop()
	}
	start := time.Now()
	c.s.must(c.s.release(g))
	c.took = (3*c.took + time.Since(start)) / 4
}

// wasCancelled reports whether the error is that of a cancelled call.
func wasCancelled(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome)
}

// cancelAndRelease cancels the call, waits for its end, and releases what it was granted, or its place.
func (c *waitingCall) cancelAndRelease() {
	c.s.Helper()
	c.cancel()
	c.wait()
	switch {
	case c.err == nil:
		c.s.must(c.s.release(c.grant))
	case !wasCancelled(c.err):
		c.s.Fatalf("%s was cancelled and got %v", c.request.Holder, c.err)
	default:
		c.leave()
	}
}

// expectQuiet waits until nothing waits for the locks, and ends the test unless their histories keep the rules, by
// which waiters of the holder may be passed.
func (s *fixture) expectQuiet(numbers []int, passed string) {
	s.Helper()
	rules := verify.Rules{Away: func(e lock.Event) bool { return e.Holder == passed }}
	if len(numbers) > 1 {
		rules = ofSets
	}
	for _, n := range numbers {
		s.eventually("the queue is empty", func() bool { return len(s.queue(s.other(n)).Waiters) == 0 })
		s.verifyHistory(s.other(n), rules)
	}
}

// reversed returns the numbers from the last on.
func reversed(numbers []int) []int {
	numbers = slices.Clone(numbers)
	slices.Reverse(numbers)
	return numbers
}

func cancelledAtRelease(numbers []int) func(*fixture) {
	return func(s *fixture) {
		c := &releaseRace{s: s}
		for i := range soak.Rounds(16, 60) {
			g := s.hold(i%len(numbers), "holder")
			w := s.enqueue(lock.Acquire{Locks: s.set(numbers...), Holder: "waiter", Wait: lock.MaxWait})
			c.release(g, w.cancel)
			w.cancelAndRelease()
			// A lease of the cancelled call would outlive this wait.
			next := s.startAcquire(lock.Acquire{Locks: s.set(reversed(numbers)...), Holder: "next", Wait: lock.MaxWait})
			s.must(s.release(next.mustBeWoken()))
		}
		s.expectQuiet(numbers, "waiter")
	}
}

// cancelledBeforeNext: of a set, the next call waits for the first two locks, and the cancelled one for those after the
// first.
func cancelledBeforeNext(numbers []int) func(*fixture) {
	return func(s *fixture) {
		c := &releaseRace{s: s}
		passed, served := numbers, numbers
		if len(numbers) > 1 {
			passed, served = numbers[1:], numbers[:2]
		}
		g := s.mustAcquireSet("first", served...)
		for range soak.Rounds(16, 60) {
			w := s.enqueue(lock.Acquire{Locks: s.set(passed...), Holder: "waiter", Wait: lock.MaxWait})
			next := s.enqueue(lock.Acquire{Locks: s.set(served...), Holder: "next", Wait: lock.MaxWait})
			c.release(g, w.cancel)
			w.cancelAndRelease()
			g = next.mustBeWoken()
		}
		s.must(s.release(g))
		s.expectQuiet(numbers, "waiter")
	}
}

func timesOutAtRelease(numbers []int) func(*fixture) {
	return func(s *fixture) {
		for i := range soak.Rounds(6, 15) {
			g := s.hold(i%len(numbers), "holder")
			w := s.startAcquire(lock.Acquire{Locks: s.set(numbers...), Holder: "waiter", Wait: shortTTL})
			ended := time.NewTimer(time.Until(w.began.Add(shortTTL - time.Millisecond + rand.N(3*time.Millisecond))))
			defer ended.Stop()
			<-ended.C
			s.must(s.release(g))
			if w.wait(); w.err == nil {
				s.must(s.release(w.grant))
			} else {
				s.expectError(w.err, lock.ErrHeld)
			}
			s.must(s.release(s.mustAcquireSet("next", reversed(numbers)...)))
		}
		for _, n := range numbers {
			s.verifyHistory(s.other(n), ofSets) // a waiter is skipped between the end of its wait and its Leave, too
		}
	}
}

// cancelledAtRandom cancels calls for up to two of the locks at random instants.
func cancelledAtRandom(numbers []int) func(*fixture) {
	return func(s *fixture) {
		concurrently(6, func(i int) {
			for range 10 {
				some := rand.Perm(len(numbers))[:min(2, len(numbers))]
				w := s.startAcquire(lock.Acquire{Locks: s.set(some...), Holder: "fickle", Wait: lock.MaxWait})
				end := time.AfterFunc(rand.N(10*time.Millisecond), w.cancel)
				<-w.done
				end.Stop()
				if w.err == nil {
					w.err = s.release(w.grant)
				} else {
					w.leave()
				}
				if w.err != nil && !wasCancelled(w.err) {
					s.Errorf("caller %d: %v", i, w.err)
				}
			}
		})
		last := s.startAcquire(lock.Acquire{Locks: s.set(numbers...), Holder: "the last", Wait: lock.MaxWait})
		s.must(s.release(last.mustBeWoken()))
		s.expectQuiet(numbers, "fickle")
	}
}
