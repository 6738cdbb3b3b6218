package locktest

import (
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func placing() cases {
	return cases{
		"a place that was asked to be kept is there again": placeKept,
		"others pass a place at which nobody waits":        placePassed,
		"a try may have a place kept as well":              placeOfTry,
		"a place that was not kept is at the end":          placeLost,
		"a later call has the place of an earlier":         placeTakenOver,
		"a call whose context ends leaves the queue":       placeLeft,
		"who leaves makes way for those behind":            placeWay,
		"a release gives a place up":                       placeReleased,
		"the lease_id of a waiter is nobody else's":        placeInUse,
		"a context that is over joins no queue":            placeNever,
	}
}

// inTime runs test with locks of its own until it has no error, for as long as it
// took longer than places are kept.
func (s *scene) inTime(test func(*scene) error) {
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

// steps waits at a place for a moment, and has it be kept.
func (s *scene) steps(a lock.Acquire) error {
	a.Wait, a.KeepPlace = brief, true
	_, err := s.acquire(a)
	if e := s.refused(err, lock.ErrHeld); e.KeptFor <= 0 || e.KeptFor > lock.PlaceRetention {
		return fmt.Errorf("the refusal is %+v, want it to say for how long the place is kept", e)
	}
	return nil
}

func placeKept(s *scene) {
	s.inTime(func(s *scene) error {
		first, second := s.granted(lock.Acquire{}), lock.Acquire{LeaseID: newID(), Holder: "second"}
		if err := s.steps(second); err != nil {
			return err
		}
		third := s.joins(lock.Acquire{Holder: "third"})
		w := s.joins(second)
		if q := s.queue(s.name).Waiters; len(q) != 2 || q[0].Holder != "second" || q[0].Place != 2 {
			return fmt.Errorf("the queue is %+v, want the second at its place 2", q)
		}
		s.must(s.release(first))
		s.must(s.release(w.has()))
		s.must(s.release(third.has()))
		s.proven(s.name, verify.Rules{})
		return nil
	})
}

func placePassed(s *scene) {
	s.inTime(func(s *scene) error {
		first, second := s.granted(lock.Acquire{}), lock.Acquire{LeaseID: newID(), Holder: "second"}
		if err := s.steps(second); err != nil {
			return err
		}
		third := s.joins(lock.Acquire{Holder: "third"})
		s.must(s.release(first))
		g := third.has()
		s.joins(lock.Acquire{Holder: "fourth"})
		w := s.joins(second)
		if q := s.queue(s.name).Waiters; len(q) != 2 || q[0].Holder != "second" {
			return fmt.Errorf("the queue is %+v, want the second before the fourth", q)
		}
		s.must(s.release(g))
		s.must(s.release(w.has()))
		return nil
	})
}

func placeOfTry(s *scene) {
	s.inTime(func(s *scene) error {
		first, second := s.granted(lock.Acquire{}), lock.Acquire{LeaseID: newID(), Holder: "second", KeepPlace: true}
		for range 2 {
			_, err := s.acquire(second)
			if e := s.refused(err, lock.ErrHeld); e.KeptFor <= 0 {
				return fmt.Errorf("the refusal is %+v, want it to say for how long the place is kept", e)
			}
		}
		if q := s.queue(s.name).Waiters; len(q) != 1 || q[0].Attached || q[0].Place != 2 {
			return fmt.Errorf("the queue is %+v, want a place at which nobody waits", q)
		}
		s.must(s.release(first))
		s.must(s.release(s.granted(second)))
		s.stand()
		return nil
	})
}

func placeLost(s *scene) {
	s.granted(lock.Acquire{})
	second := lock.Acquire{LeaseID: newID(), Holder: "second", Wait: brief}
	_, err := s.acquire(second)
	s.refused(err, lock.ErrHeld)
	s.joins(lock.Acquire{Holder: "third"})
	second.Wait = 0
	s.joins(second)
	s.stand("third", "second")
}

// placeTakenOver has the earlier call's wait end, which must not touch the place.
func placeTakenOver(s *scene) {
	s.inTime(func(s *scene) error {
		first := s.granted(lock.Acquire{})
		id := newID()
		earlier := s.calls(lock.Acquire{LeaseID: id, Holder: "second", Wait: 3 * brief, KeepPlace: true})
		s.eventually("the second has a place", func() bool { return len(s.waiters()) == 1 })
		s.joins(lock.Acquire{Holder: "third"})
		later := s.joins(lock.Acquire{LeaseID: id, Holder: "second"})
		earlier.answered()
		s.refused(earlier.err, lock.ErrHeld)
		var q []lock.WaiterInfo
		s.eventually("both wait", func() bool {
			q = s.queue(s.name).Waiters
			return len(q) == 2 && q[0].Attached && q[1].Attached
		})
		if q[0].Holder != "second" || q[0].Place != 2 {
			return fmt.Errorf("the queue is %+v, want the second at its place 2", q)
		}
		s.must(s.release(first))
		later.has()
		return nil
	})
}

func placeLeft(s *scene) {
	first := s.granted(lock.Acquire{})
	w := s.line(3)
	w[1].leaves()
	s.remain("waiter 1", "waiter 3")
	s.must(s.release(first))
	s.must(s.release(w[0].has()))
	s.must(s.release(w[2].has()))
	if left := s.proven(s.name, verify.Rules{})[4]; left.Kind != lock.Dequeued || left.Place != 3 || left.Reason == "" {
		s.Errorf("the leaving is told as %+v", left)
	}
}

func placeWay(s *scene) {
	s.granted(lock.Acquire{Mode: lock.Shared})
	writer := s.joins(lock.Acquire{Holder: "writer"})
	readers := []*call{
		s.joins(lock.Acquire{Holder: "reader 1", Mode: lock.Shared}), s.joins(lock.Acquire{Holder: "reader 2", Mode: lock.Shared}),
	}
	writer.leaves()
	for _, r := range readers {
		r.has()
	}
	s.held("first", "reader 1", "reader 2")
	s.proven(s.name, verify.Rules{})
}

func placeReleased(s *scene) {
	first := s.granted(lock.Acquire{})
	second := s.joins(lock.Acquire{Holder: "second", Wait: lock.MaxWait}) // and does not come back
	third := s.joins(lock.Acquire{Holder: "third"})
	s.must(s.locks.Release(s.ctx, lock.Release{Name: s.name, LeaseID: second.asked.LeaseID}))
	s.stand("third")
	s.must(s.release(first))
	s.held("third")
	g := third.has()
	second.hangUp()
	second.answered()
	if second.err == nil {
		s.Errorf("the call at a place that was given up has %+v", second.grant)
	}
	s.must(s.release(g))
	s.granted(lock.Acquire{Holder: "fourth"})
}

func placeInUse(s *scene) {
	s.granted(lock.Acquire{})
	w := s.joins(lock.Acquire{Holder: "second", Mode: lock.Permit, Capacity: 3})
	for _, a := range []lock.Acquire{
		{Holder: "third", Mode: lock.Permit, Capacity: 3},
		{Holder: "second", Mode: lock.Permit, Capacity: 4},
		{Holder: "second", Mode: lock.Shared},
		{Holder: "second"},
	} {
		a.LeaseID = w.asked.LeaseID
		_, err := s.acquire(a)
		s.refused(err, lock.ErrLeaseIDInUse)
		a.Wait = lock.MaxWait
		_, err = s.acquire(a)
		s.refused(err, lock.ErrLeaseIDInUse)
	}
	s.stand("second")
}

func placeNever(s *scene) {
	s.granted(lock.Acquire{})
	_, err := s.locks.Acquire(over(), lock.Acquire{Name: s.name, Holder: "second", TTL: alive, Wait: lock.MaxWait})
	if !errors.Is(err, lock.ErrUnavailable) {
		s.Errorf("the error is %v", err)
	}
	s.stand()
	s.recorded(s.name, 1)
}
