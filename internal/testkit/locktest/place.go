package locktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func placeCases() cases {
	return cases{
		"a kept place is found again":                         ofOneAndOfTwo(placeKept),
		"a later call takes over the place of an earlier one": ofOneAndOfTwo(placeTakenOver),
		"a place outlives the connection of its call":         ofOneAndOfTwo(placeOfCut),
		"a release gives up a place":                          ofOneAndOfTwo(placeReleased),
	}
}

// ofOneAndOfTwo returns a test of a call for the lock s.other(2), which is held, and then of one for a set with it. The
// set's other lock, s.other(1), is free.
func ofOneAndOfTwo(test func(s *fixture, numbers []int)) func(*fixture) {
	return func(s *fixture) {
		for _, numbers := range [][]int{{2}, {1, 2}} {
			of := *s
			of.name = fmt.Sprintf("%s:%d", s.name, len(numbers))
			test(&of, numbers)
		}
	}
}

// places returns the places of the first waiters of the locks, which must have the holder "second".
func (s *fixture) places(numbers ...int) (places []int64, attached bool) {
	s.Helper()
	attached = true
	for _, n := range numbers {
		q := s.queue(s.other(n)).Waiters
		if len(q) == 0 || q[0].Holder != "second" {
			s.Fatalf("the queue of lock %d is %+v, want the second first", n, q)
		}
		places, attached = append(places, q[0].Place), attached && q[0].Attached
	}
	return places, attached
}

// retryWithinRetention runs the test, and repeats it with other locks if it failed after more than PlaceRetention.
func (s *fixture) retryWithinRetention(test func(*fixture) error) {
	s.Helper()
	for i := 0; ; i++ {
		try := *s
		try.name = fmt.Sprintf("%s:%d", s.name, i)
		start := time.Now()
		err := test(&try)
		switch {
		case err == nil:
			return
		case time.Since(start) < lock.PlaceRetention:
			s.Fatal(err)
		}
	}
}

func placeKept(s *fixture, numbers []int) {
	s.retryWithinRetention(func(s *fixture) error {
		first := s.hold(2, "first")
		second := lock.Acquire{Locks: s.set(numbers...), LeaseID: newID(), Holder: "second", Wait: shortTTL, KeepPlace: true}
		e := s.expectError(errOf(s.acquire(second)), lock.ErrHeld)
		if e.KeptFor <= 0 || e.KeptFor > lock.PlaceRetention {
			return fmt.Errorf("the refusal is %+v, want a positive KeptFor", e)
		}
		third := s.enqueue(lock.Acquire{Locks: lock.One(s.other(2)), Holder: "third"})
		kept, _ := s.places(numbers...)
		q := s.queue(s.other(2)).Waiters
		if w := q[0]; w.Attached || w.BlockedBy != lock.BlockedByDisconnect || w.KeptFor <= 0 || w.KeptFor > lock.PlaceRetention {
			return fmt.Errorf("the detached waiter is shown as %+v", w)
		}
		if w := q[1]; w.Position != 2 || w.Ahead != 0 || w.BlockedBy != lock.BlockedByHolders || !w.Attached {
			return fmt.Errorf("the waiter behind a detached one is shown as %+v", w)
		}
		second.Wait, second.KeepPlace = 0, false
		w := s.enqueue(second)
		if again, attached := s.places(numbers...); !attached || !slices.Equal(again, kept) {
			return fmt.Errorf("the places were %v, and are %v", kept, again)
		}
		s.must(s.release(first))
		s.must(s.release(w.mustBeGranted()))
		s.must(s.release(third.mustBeGranted()))
		return nil
	})
}

// placeTakenOver checks that the end of the earlier call's wait does not affect the place.
func placeTakenOver(s *fixture, numbers []int) {
	s.retryWithinRetention(func(s *fixture) error {
		first := s.hold(2, "first")
		second := lock.Acquire{Locks: s.set(numbers...), LeaseID: newID(), Holder: "second", Wait: 3 * shortTTL, KeepPlace: true}
		earlier := s.startAcquire(second)
		s.eventually("the second has a place", func() bool { return len(s.queue(s.other(2)).Waiters) == 1 })
		before, _ := s.places(numbers...)
		s.enqueue(lock.Acquire{Locks: lock.One(s.other(2)), Holder: "third"})
		second.Wait = 0
		later := s.enqueue(second)
		s.expectError(earlier.refusal(), lock.ErrHeld)
		s.eventually("the later call waits", func() bool { _, attached := s.places(numbers...); return attached })
		if after, _ := s.places(numbers...); !slices.Equal(after, before) {
			return fmt.Errorf("the places were %v, and are %v", before, after)
		}
		s.must(s.release(first))
		later.mustBeGranted()
		return nil
	})
}

func placeOfCut(s *fixture, numbers []int) {
	first := s.hold(2, "first")
	second := s.enqueue(lock.Acquire{Locks: s.set(numbers...), Holder: "second"})
	third := s.enqueue(lock.Acquire{Locks: lock.One(s.other(2)), Holder: "third"})
	before, _ := s.places(numbers...)
	for range 2 {
		second.cutOff()
		if after, attached := s.places(numbers...); attached || !slices.Equal(after, before) {
			s.Fatalf("the places were %v, and are %v, attached: %t", before, after, attached)
		}
		if kept := s.queue(s.other(2)).Waiters[0].KeptFor; kept <= lock.PlaceRetention {
			s.Fatalf("the place is kept for %v, want the rest of the wait", kept)
		}
		second = s.enqueue(second.request)
		if after, _ := s.places(numbers...); !slices.Equal(after, before) {
			s.Fatalf("the places were %v, and are %v", before, after)
		}
	}
	s.must(s.release(first))
	s.must(s.release(second.mustBeGranted()))
	s.must(s.release(third.mustBeGranted()))
}

func placeReleased(s *fixture, numbers []int) {
	first := s.hold(2, "first")
	second := s.enqueue(lock.Acquire{Locks: s.set(numbers...), Holder: "second", Wait: lock.MaxWait}) // without a retry
	for range 2 {
		s.must(s.locks().Release(s.ctx, lock.Release{Locks: s.others(numbers...), LeaseID: second.request.LeaseID}))
	}
	for n := range 3 {
		if q := s.queue(s.other(n)).Waiters; len(q) != 0 {
			s.Errorf("the queue of lock %d is %+v", n, q)
		}
	}
	s.must(s.release(first))
	second.cancel()
	if second.wait(); second.err == nil {
		s.Errorf("the call whose place was given up was granted %+v", second.grant)
	}
	s.mustAcquireSet("next", 1, 2)
}
