package locktest

import (
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func placeCases() cases {
	return cases{
		"a kept place is found again":                                placeKept,
		"other waiters pass a detached waiter":                       placePassed,
		"a call that does not wait can keep a place":                 placeOfTry,
		"a place that was not kept is lost":                          placeLost,
		"a later call takes over the place of an earlier one":        placeTakenOver,
		"a waiter that gives up its place leaves the queue":          placeLeft,
		"a place outlives the connection of its call":                placeOfCut,
		"a disconnected waiter is passed over at its place":          placeOfCutPassed,
		"the place of a disconnected waiter can be given up":         placeOfCutReleased,
		"a waiter that leaves unblocks those behind":                 placeWay,
		"a release gives up a place":                                 placeReleased,
		"the lease_id of a waiter cannot be used by another request": placeInUse,
		"a cancelled context joins no queue":                         placeNever,
	}
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

// waitKeepingPlace waits for a moment and keeps the place.
func (s *fixture) waitKeepingPlace(a lock.Acquire) error {
	a.Wait, a.KeepPlace = shortTTL, true
	_, err := s.acquire(a)
	if e := s.expectError(err, lock.ErrHeld); e.KeptFor <= 0 || e.KeptFor > lock.PlaceRetention {
		return fmt.Errorf("the refusal is %+v, want a positive KeptFor", e)
	}
	return nil
}

func placeKept(s *fixture) {
	s.retryWithinRetention(func(s *fixture) error {
		first, second := s.mustAcquire(lock.Acquire{}), lock.Acquire{LeaseID: newID(), Holder: "second"}
		if err := s.waitKeepingPlace(second); err != nil {
			return err
		}
		third := s.enqueue(lock.Acquire{Holder: "third"})
		w := s.enqueue(second)
		if q := s.queue(s.name).Waiters; len(q) != 2 || q[0].Holder != "second" || q[0].Place != 2 {
			return fmt.Errorf("the queue is %+v, want the second at its place 2", q)
		}
		s.must(s.release(first))
		s.must(s.release(w.mustBeGranted()))
		s.must(s.release(third.mustBeGranted()))
		s.verifyHistory(s.name, verify.Rules{})
		return nil
	})
}

func placePassed(s *fixture) {
	s.retryWithinRetention(func(s *fixture) error {
		first, second := s.mustAcquire(lock.Acquire{}), lock.Acquire{LeaseID: newID(), Holder: "second"}
		if err := s.waitKeepingPlace(second); err != nil {
			return err
		}
		third := s.enqueue(lock.Acquire{Holder: "third"})
		s.must(s.release(first))
		g := third.mustBeGranted()
		s.enqueue(lock.Acquire{Holder: "fourth"})
		w := s.enqueue(second)
		if q := s.queue(s.name).Waiters; len(q) != 2 || q[0].Holder != "second" {
			return fmt.Errorf("the queue is %+v, want the second before the fourth", q)
		}
		s.must(s.release(g))
		s.must(s.release(w.mustBeGranted()))
		return nil
	})
}

func placeOfTry(s *fixture) {
	s.retryWithinRetention(func(s *fixture) error {
		first, second := s.mustAcquire(
			lock.Acquire{},
		), lock.Acquire{
			LeaseID:   newID(),
			Holder:    "second",
			KeepPlace: true,
		}
		for range 2 {
			_, err := s.acquire(second)
			if e := s.expectError(err, lock.ErrHeld); e.KeptFor <= 0 {
				return fmt.Errorf("the refusal is %+v, want a positive KeptFor", e)
			}
		}
		if q := s.queue(s.name).Waiters; len(q) != 1 || q[0].Attached || q[0].Place != 2 {
			return fmt.Errorf("the queue is %+v, want a detached waiter", q)
		}
		s.must(s.release(first))
		s.must(s.release(s.mustAcquire(second)))
		s.expectQueue()
		return nil
	})
}

func placeLost(s *fixture) {
	s.mustAcquire(lock.Acquire{})
	second := lock.Acquire{LeaseID: newID(), Holder: "second", Wait: shortTTL}
	_, err := s.acquire(second)
	s.expectError(err, lock.ErrHeld)
	s.enqueue(lock.Acquire{Holder: "third"})
	second.Wait = 0
	s.enqueue(second)
	s.expectQueue("third", "second")
}

// placeTakenOver checks that the end of the earlier call's wait does not affect the place.
func placeTakenOver(s *fixture) {
	s.retryWithinRetention(func(s *fixture) error {
		first := s.mustAcquire(lock.Acquire{})
		id := newID()
		earlier := s.startAcquire(lock.Acquire{LeaseID: id, Holder: "second", Wait: 3 * shortTTL, KeepPlace: true})
		s.eventually("the second has a place", func() bool { return len(s.waiters()) == 1 })
		s.enqueue(lock.Acquire{Holder: "third"})
		later := s.enqueue(lock.Acquire{LeaseID: id, Holder: "second"})
		earlier.wait()
		s.expectError(earlier.err, lock.ErrHeld)
		var q []lock.WaiterInfo
		s.eventually("both wait", func() bool {
			q = s.queue(s.name).Waiters
			return len(q) == 2 && q[0].Attached && q[1].Attached
		})
		if q[0].Holder != "second" || q[0].Place != 2 {
			return fmt.Errorf("the queue is %+v, want the second at its place 2", q)
		}
		s.must(s.release(first))
		later.mustBeGranted()
		return nil
	})
}

func placeLeft(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueueN(3)
	w[1].cancelAndWait()
	s.awaitQueue("waiter 1", "waiter 3")
	s.must(s.release(first))
	s.must(s.release(w[0].mustBeGranted()))
	s.must(s.release(w[2].mustBeGranted()))
	if left := s.verifyHistory(s.name, verify.Rules{Away: called("waiter 2")})[4]; left.Kind != lock.Dequeued || left.Place != 3 ||
		left.Reason == "" {
		s.Errorf("leaving has the event %+v", left)
	}
}

func placeWay(s *fixture) {
	s.mustAcquire(lock.Acquire{Mode: lock.Shared})
	writer := s.enqueue(lock.Acquire{Holder: "writer"})
	readers := []*waitingCall{
		s.enqueue(
			lock.Acquire{Holder: "reader 1", Mode: lock.Shared},
		), s.enqueue(lock.Acquire{Holder: "reader 2", Mode: lock.Shared}),
	}
	writer.cancelAndWait()
	for _, r := range readers {
		r.mustBeGranted()
	}
	s.expectHolders("first", "reader 1", "reader 2")
	s.verifyHistory(s.name, verify.Rules{Away: called("writer")})
}

func placeReleased(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	second := s.enqueue(lock.Acquire{Holder: "second", Wait: lock.MaxWait}) // without a retry
	third := s.enqueue(lock.Acquire{Holder: "third"})
	s.must(s.locks.Release(s.ctx, lock.Release{Name: s.name, LeaseID: second.request.LeaseID}))
	s.expectQueue("third")
	s.must(s.release(first))
	s.expectHolders("third")
	g := third.mustBeGranted()
	second.cancel()
	second.wait()
	if second.err == nil {
		s.Errorf("the call whose place was given up was granted %+v", second.grant)
	}
	s.must(s.release(g))
	s.mustAcquire(lock.Acquire{Holder: "fourth"})
}

func placeOfCut(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	second := s.enqueue(lock.Acquire{Holder: "second"})
	third := s.enqueue(lock.Acquire{Holder: "third"})
	for range 3 {
		second.cutOff()
		if q := s.queue(s.name).Waiters; len(q) != 2 || q[0].Holder != "second" || q[0].KeptFor <= lock.PlaceRetention {
			s.Fatalf("the queue is %+v, want the second to be kept for the rest of its wait", q)
		}
		second = s.enqueue(second.request)
		if q := s.queue(s.name).Waiters; len(q) != 2 || q[0].Holder != "second" || q[0].Place != 2 {
			s.Fatalf("the queue is %+v, want the second at its place 2", q)
		}
	}
	s.must(s.release(first))
	s.must(s.release(second.mustBeGranted()))
	s.must(s.release(third.mustBeGranted()))
	s.verifyHistory(s.name, verify.Rules{Away: called("second")})
}

func placeOfCutPassed(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	second := s.enqueue(lock.Acquire{Holder: "second"})
	third := s.enqueue(lock.Acquire{Holder: "third"})
	second.cutOff()
	s.must(s.release(first))
	g := third.mustBeGranted()
	fourth := s.enqueue(lock.Acquire{Holder: "fourth"})
	second = s.enqueue(second.request)
	s.expectQueue("second", "fourth")
	s.must(s.release(g))
	s.must(s.release(second.mustBeGranted()))
	s.must(s.release(fourth.mustBeGranted()))
}

func placeOfCutReleased(s *fixture) {
	s.mustAcquire(lock.Acquire{})
	second := s.enqueue(lock.Acquire{Holder: "second"})
	s.enqueue(lock.Acquire{Holder: "third"})
	second.cutOff()
	s.must(s.locks.Release(s.ctx, lock.Release{Name: s.name, LeaseID: second.request.LeaseID}))
	s.expectQueue("third")
}

func placeInUse(s *fixture) {
	s.mustAcquire(lock.Acquire{})
	w := s.enqueue(lock.Acquire{Holder: "second", Mode: lock.Permit, Capacity: 3})
	for _, a := range []lock.Acquire{
		{Holder: "third", Mode: lock.Permit, Capacity: 3},
		{Holder: "second", Mode: lock.Permit, Capacity: 4},
		{Holder: "second", Mode: lock.Shared},
		{Holder: "second"},
	} {
		a.LeaseID = w.request.LeaseID
		_, err := s.acquire(a)
		s.expectError(err, lock.ErrLeaseIDInUse)
		a.Wait = lock.MaxWait
		_, err = s.acquire(a)
		s.expectError(err, lock.ErrLeaseIDInUse)
	}
	s.expectQueue("second")
}

func placeNever(s *fixture) {
	s.mustAcquire(lock.Acquire{})
	_, err := s.locks.Acquire(
		cancelledContext(),
		lock.Acquire{Name: s.name, Holder: "second", TTL: longTTL, Wait: lock.MaxWait},
	)
	if !errors.Is(err, lock.ErrUnavailable) {
		s.Errorf("the error is %v", err)
	}
	s.expectQueue()
	s.events(s.name, 1)
}
