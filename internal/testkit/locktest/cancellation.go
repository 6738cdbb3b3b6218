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

func cancellationRaceCases() cases {
	return cases{
		"a call cancelled at the release leaves the lock free":               cancelAtRelease,
		"a call cancelled at the release leaves the lock to the next waiter": cancelWithNextWaiter,
		"a wait that ends at the release is granted or refused, never both":  timeoutAtRelease,
		"calls cancelled at random do not block others":                      cancelAtRandom,
	}
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

// called returns a function that reports whether the waiter of an event has one of the holders.
func called(holders ...string) func(lock.Event) bool {
	return func(e lock.Event) bool { return slices.Contains(holders, e.Holder) }
}

// cancelAndRelease cancels the call, waits for its end, and releases the lock if it was granted, or the place.
func (c *waitingCall) cancelAndRelease() {
	c.s.Helper()
	c.cancel()
	c.wait()
	switch {
	case c.err == nil:
		c.s.must(c.s.release(c.grant))
	case !errors.Is(c.err, lock.ErrUnavailable) && !errors.Is(c.err, lock.ErrUnknownOutcome):
		c.s.Fatalf("%s was cancelled and got %v", c.request.Holder, c.err)
	default:
		c.leave()
	}
}

func cancelAtRelease(s *fixture) {
	c := &releaseRace{s: s}
	for range soak.Rounds(16, 40) {
		g := s.mustAcquire(lock.Acquire{})
		w := s.enqueue(lock.Acquire{Holder: "waiter", Wait: lock.MaxWait})
		c.release(g, w.cancel)
		w.cancelAndRelease()
		// A lease of the cancelled call would outlive this wait.
		next := s.startAcquire(lock.Acquire{Holder: "next", Wait: lock.MaxWait})
		s.must(s.release(next.mustBeGranted()))
	}
	s.awaitQueue()
	s.verifyHistory(s.name, verify.Rules{Away: called("waiter")})
}

func cancelWithNextWaiter(s *fixture) {
	c := &releaseRace{s: s}
	g := s.mustAcquire(lock.Acquire{})
	for range soak.Rounds(16, 40) {
		w := s.enqueue(lock.Acquire{Holder: "waiter", Wait: lock.MaxWait})
		next := s.enqueue(lock.Acquire{Holder: "next", Wait: lock.MaxWait})
		c.release(g, w.cancel)
		w.cancelAndRelease()
		g = next.mustBeGranted()
	}
	s.must(s.release(g))
	s.awaitQueue()
	s.verifyHistory(s.name, verify.Rules{Away: called("waiter")})
}

func timeoutAtRelease(s *fixture) {
	for range soak.Rounds(6, 15) {
		g := s.mustAcquire(lock.Acquire{})
		w := s.startAcquire(lock.Acquire{Holder: "waiter", Wait: shortTTL})
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
		s.must(s.release(s.mustAcquire(lock.Acquire{})))
		s.expectQueue()
	}
	s.verifyHistory(
		s.name,
		verify.Rules{AllowOvertaking: true},
	) // a waiter is skipped between the end of its wait and its Leave
}

// cancelAtRandom cancels waiting calls at random instants.
func cancelAtRandom(s *fixture) {
	concurrently(6, func(i int) {
		for range 10 {
			w := s.startAcquire(lock.Acquire{Holder: "fickle", Wait: lock.MaxWait})
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
	s.must(s.release(s.startAcquire(lock.Acquire{Holder: "the last", Wait: lock.MaxWait}).mustBeGranted()))
	s.awaitQueue()
	s.verifyHistory(s.name, verify.Rules{Away: called("fickle")})
}
