package locktest

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

func setWaitCases() cases {
	return cases{
		"a waiting set holds nothing":                                          setHoldsNothing,
		"a waiting set is granted when its last lock is released":              setGrantedAt(untilRelease),
		"a waiting set is granted when its last lock expires":                  setGrantedAt(untilExpiry),
		"a waiting set is granted when the grace of its last lock ends":        setGrantedAt(untilGrace),
		"a waiting set is granted when its last lock is revoked":               setGrantedAt(untilRevoked),
		"a waiting set is granted when the grace of a revocation ends":         setGrantedAt(untilRevokedGrace),
		"a waiting set is granted when the session of its last lock is closed": setGrantedAt(untilSessionClosed),
		"a waiting set is granted when the session of its last lock expires":   setGrantedAt(untilSessionExpiry),
		"a waiting set is granted when another set is released":                setGrantedAt(untilSetRelease),
		"a set is granted when the one before it leaves":                       setGrantedAfter(leaves),
		"a set is granted when the wait of the one before it ends":             setGrantedAfter(timesOut),
		"a set is granted when the place of the one before it is released":     setGrantedAfter(placeIsReleased),
		"a set is granted when the session of the one before it is closed":     setGrantedAfter(itsSessionCloses),
		"a set is granted when the session of the one before it expires":       setGrantedAfter(itsSessionExpires),
		"a set of readers is granted when the writer before it has no session": setGrantedAfterWriter,
		"a set that times out is refused and leaves no place":                  setTimesOut,
		"a waiting set is granted free locks at once":                          setFree,
		"a kept place of a set is found again at each lock":                    setPlaceKept,
		"a later call for a set takes over the places of an earlier one":       setTakenOver,
		"a try for a set can keep its places":                                  setPlaceOfTry,
		"a set that gives up its places leaves each queue":                     setLeaves,
		"the places of a set outlive the connection of its call":               setOfCut,
		"a release gives up the places of a set":                               setPlaceReleased,
	}
}

func setHoldsNothing(s *fixture) {
	held := s.hold(2, "holder")
	set := s.enqueue(lock.Acquire{Set: s.set(1, 2, 3), Holder: "set"})
	s.expectHeld(map[int]string{1: "", 2: "holder", 3: ""})
	_, err := s.acquire(lock.Acquire{Name: s.other(1), Holder: "not waiting"})
	if e := s.expectError(err, lock.ErrHeld); e.Holder != "" || e.Ahead != 1 {
		s.Errorf("a try at a free lock of the set is refused with %+v", e)
	}
	late := s.enqueue(lock.Acquire{Name: s.other(3), Holder: "late"})
	s.must(s.release(held))
	g := set.mustBeGranted()
	s.expectSet(g, s.others(1, 2, 3))
	if g.Replayed || g.Token <= held.Token {
		s.Errorf("after token %d the set is %+v", held.Token, g.Lease)
	}
	if q := s.queue(s.other(1)).Waiters; len(q) != 0 {
		s.Errorf("after its grant the set waits as %+v", q)
	}
	s.must(s.release(g))
	if next := late.mustBeGranted(); next.Token <= g.Token {
		s.Errorf("token %d was granted after %d", next.Token, g.Token)
	}
}

// setGrantedAt returns a test of a set whose last lock is held by a lease that begin acquires and end ends. Nothing
// else wakes the set, and it does not call again.
func setGrantedAt(begin func(s *fixture, n int) (end func())) func(*fixture) {
	return func(s *fixture) {
		concurrently(3, func(last int) {
			of := *s
			of.name = fmt.Sprintf("%s:%d", s.name, last)
			end := begin(&of, last)
			released := of.mustAcquire(lock.Acquire{Name: of.other((last + 1) % 3), Holder: "another"})
			w := of.startAcquire(lock.Acquire{Set: of.set(0, 1, 2), Holder: "set", Wait: lock.MaxWait})
			of.must(of.release(released))
			end()
			of.expectSet(w.mustBeWoken(), of.others(0, 1, 2))
			of.expectHeld(map[int]string{0: "set", 1: "set", 2: "set"})
		})
	}
}

func untilRelease(s *fixture, n int) func() {
	g := s.hold(n, "holder")
	return func() {
		s.eventually("the set waits", func() bool { return s.waits(s.other(n), "set") })
		s.must(s.release(g))
	}
}

func untilExpiry(s *fixture, n int) func() {
	s.mustAcquire(lock.Acquire{Name: s.other(n), TTL: 5 * shortTTL})
	return func() {}
}

func untilGrace(s *fixture, n int) func() {
	s.mustAcquire(lock.Acquire{Name: s.other(n), TTL: shortTTL, Grace: 4 * shortTTL})
	return func() {}
}

func untilRevoked(s *fixture, n int) func() {
	g := s.mustAcquire(lock.Acquire{Name: s.other(n), Grace: lock.MaxGrace})
	return func() {
		s.eventually("the set waits", func() bool { return s.waits(s.other(n), "set") })
		_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: g.Name, Token: g.Token, Reason: testReason, SkipGrace: true})
		s.must(err)
	}
}

func untilRevokedGrace(s *fixture, n int) func() {
	g := s.mustAcquire(lock.Acquire{Name: s.other(n), Grace: 3 * shortTTL})
	return func() {
		s.eventually("the set waits", func() bool { return s.waits(s.other(n), "set") })
		_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: g.Name, Token: g.Token, Reason: testReason})
		s.must(err)
	}
}

func untilSessionClosed(s *fixture, n int) func() {
	session := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	s.mustAcquire(lock.Acquire{Name: s.other(n), SessionID: session.ID})
	return func() {
		s.eventually("the set waits", func() bool { return s.waits(s.other(n), "set") })
		s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: session.ID}))
	}
}

func untilSessionExpiry(s *fixture, n int) func() {
	session := s.openSession(lock.OpenSession{TTL: mediumTTL})
	s.mustAcquire(lock.Acquire{Name: s.other(n), SessionID: session.ID})
	return func() {}
}

func untilSetRelease(s *fixture, n int) func() {
	g := s.mustAcquireSet("holder", 5, n, 4)
	return func() {
		s.eventually("the set waits", func() bool { return s.waits(s.other(n), "set") })
		s.must(s.release(g))
	}
}

// setGrantedAfter returns a test of a set that waits at a free lock behind another set, until that ends its wait.
func setGrantedAfter(end func(s *fixture, before lock.Acquire, start func(lock.Acquire) *waitingCall)) func(*fixture) {
	return func(s *fixture) {
		s.hold(2, "holder")
		var next *waitingCall
		end(s, lock.Acquire{Set: s.set(1, 2), Holder: "before", LeaseID: newID()}, func(before lock.Acquire) *waitingCall {
			w := s.enqueue(before)
			next = s.enqueue(lock.Acquire{Set: s.set(3, 1), Holder: "next", Wait: lock.MaxWait})
			return w
		})
		s.expectSet(next.mustBeWoken(), s.others(1, 3))
		s.expectHeld(map[int]string{1: "next", 2: "holder", 3: "next"})
		if q := s.queue(s.other(2)).Waiters; len(q) != 0 {
			s.Errorf("the set before it waits as %+v", q)
		}
	}
}

func leaves(_ *fixture, before lock.Acquire, start func(lock.Acquire) *waitingCall) {
	start(before).cancelAndWait()
}

func timesOut(s *fixture, before lock.Acquire, start func(lock.Acquire) *waitingCall) {
	before.Wait = mediumTTL
	s.expectError(start(before).refusal(), lock.ErrHeld)
}

func placeIsReleased(s *fixture, before lock.Acquire, start func(lock.Acquire) *waitingCall) {
	before.Wait = lock.MaxWait // without a retry, which would take another place
	start(before)
	s.must(s.locks.Release(s.ctx, lock.Release{Set: s.others(1, 2), LeaseID: before.LeaseID}))
}

func itsSessionCloses(s *fixture, before lock.Acquire, start func(lock.Acquire) *waitingCall) {
	before.SessionID = s.openSession(lock.OpenSession{Holder: "before"}).ID
	w := start(before)
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: before.SessionID}))
	s.expectSessionLost(w.refusal(), lock.Released)
}

func itsSessionExpires(s *fixture, before lock.Acquire, start func(lock.Acquire) *waitingCall) {
	before.SessionID = s.openSession(lock.OpenSession{Holder: "before", TTL: mediumTTL}).ID
	s.expectSessionLost(start(before).refusal(), lock.Expired)
}

// setGrantedAfterWriter: the end of the writer's session frees no lock, and makes way for the set of readers.
func setGrantedAfterWriter(s *fixture) {
	s.mustAcquire(lock.Acquire{Name: s.other(1), Mode: lock.Shared})
	session := lock.SessionID(uuid.New())
	s.openSession(lock.OpenSession{ID: session, Holder: "writer", TTL: mediumTTL})
	writer := s.enqueue(lock.Acquire{Name: s.other(1), Holder: "writer", SessionID: session})
	set := s.set(1, 2)
	set[0].Mode = lock.Shared
	w := s.enqueue(lock.Acquire{Set: set, Holder: "set", Wait: lock.MaxWait})
	s.expectSessionLost(writer.refusal(), lock.Expired)
	w.mustBeWoken()
	s.expectHeld(map[int]string{1: "first set", 2: "set"})
}

func setTimesOut(s *fixture) {
	s.hold(2, "holder")
	s.enqueue(lock.Acquire{Name: s.other(2), Holder: "waiter"})
	_, err := s.acquire(lock.Acquire{Set: s.set(1, 2, 3), Holder: "set", Wait: shortTTL})
	e := s.expectError(err, lock.ErrHeld)
	if len(e.Blocked) != 1 || e.Blocked[0].Name != s.other(2) || e.Blocked[0].Holder != "holder" || e.Blocked[0].Ahead != 1 || e.KeptFor != 0 {
		s.Errorf("the refusal is %+v", e)
	}
	for n, waiters := range map[int]int{1: 0, 2: 1, 3: 0} {
		if q := s.queue(s.other(n)).Waiters; len(q) != waiters {
			s.Errorf("the queue of lock %d is %+v", n, q)
		}
	}
	events := s.events(s.other(1), 2)
	if queued, left := events[0], events[1]; queued.Kind != lock.Queued || left.Kind != lock.Dequeued || left.Place != queued.Place {
		s.Errorf("joining and leaving have the events %+v", events)
	}
	s.mustAcquireSet("next", 1, 3)
}

func setFree(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Set: s.set(1, 2), Wait: lock.MaxWait})
	s.expectSet(g, s.others(1, 2))
	s.events(s.other(1), 1)
	s.events(s.other(2), 1)
}

// places returns the places of the only waiters of the locks.
func (s *fixture) places(numbers ...int) (places []int64, attached bool) {
	s.Helper()
	attached = true
	for _, n := range numbers {
		q := s.queue(s.other(n)).Waiters
		if len(q) != 1 {
			s.Fatalf("the queue of lock %d is %+v, want one waiter", n, q)
		}
		places, attached = append(places, q[0].Place), attached && q[0].Attached
	}
	return places, attached
}

func setPlaceKept(s *fixture) {
	s.retryWithinRetention(func(s *fixture) error {
		held := s.hold(2, "holder")
		set := lock.Acquire{Set: s.set(1, 2), LeaseID: newID(), Holder: "set"}
		if err := s.waitKeepingPlace(set); err != nil {
			return err
		}
		kept, attached := s.places(1, 2)
		if attached {
			return fmt.Errorf("a call waits at the places %v", kept)
		}
		s.must(s.release(s.hold(1, "passes"))) // no call waits there
		after := s.enqueue(lock.Acquire{Name: s.other(2), Holder: "after"})
		w := s.enqueue(set)
		for i, n := range []int{1, 2} {
			if q := s.queue(s.other(n)).Waiters; len(q) != n || q[0].Holder != "set" || q[0].Place != kept[i] {
				return fmt.Errorf("the queue of lock %d is %+v, want the set at its place %d", n, q, kept[i])
			}
		}
		s.must(s.release(held))
		s.must(s.release(w.mustBeGranted()))
		s.must(s.release(after.mustBeGranted()))
		return nil
	})
}

func setTakenOver(s *fixture) {
	s.retryWithinRetention(func(s *fixture) error {
		held := s.hold(2, "holder")
		set := lock.Acquire{Set: s.set(1, 2), LeaseID: newID(), Holder: "set", Wait: 3 * shortTTL, KeepPlace: true}
		earlier := s.startAcquire(set)
		s.eventually("the set has its places", func() bool { return len(s.queue(s.other(2)).Waiters) == 1 })
		before, _ := s.places(1, 2)
		set.Set = s.set(2, 1)
		set.Wait = 0
		later := s.enqueue(set)
		s.expectError(earlier.refusal(), lock.ErrHeld)
		s.eventually("the later call waits", func() bool { _, attached := s.places(1, 2); return attached })
		if after, _ := s.places(1, 2); !slices.Equal(after, before) {
			return fmt.Errorf("the places were %v, and are %v", before, after)
		}
		s.must(s.release(held))
		s.expectSet(later.mustBeGranted(), s.others(1, 2))
		return nil
	})
}

func setPlaceOfTry(s *fixture) {
	s.retryWithinRetention(func(s *fixture) error {
		held := s.hold(2, "holder")
		set := lock.Acquire{Set: s.set(1, 2), LeaseID: newID(), Holder: "set", KeepPlace: true}
		var before []int64
		for range 2 {
			_, err := s.acquire(set)
			if e := s.expectError(err, lock.ErrHeld); e.KeptFor <= 0 || len(e.Blocked) != 1 {
				return fmt.Errorf("the refusal is %+v", e)
			}
			places, attached := s.places(1, 2)
			if attached || before != nil && !slices.Equal(before, places) {
				return fmt.Errorf("the places were %v, and are %v, attached: %t", before, places, attached)
			}
			before = places
		}
		s.must(s.release(held))
		s.expectSet(s.mustAcquire(set), s.others(1, 2))
		for n := range 3 {
			if q := s.queue(s.other(n)).Waiters; len(q) != 0 {
				return fmt.Errorf("the queue of lock %d is %+v", n, q)
			}
		}
		return nil
	})
}

func setOfCut(s *fixture) {
	held := s.hold(2, "holder")
	w := s.enqueue(lock.Acquire{Set: s.set(1, 2), Holder: "set"})
	before, _ := s.places(1, 2)
	w.cutOff()
	s.must(s.release(s.hold(1, "passes"))) // no call waits there
	if after, attached := s.places(1, 2); attached || !slices.Equal(after, before) {
		s.Fatalf("the places were %v, and are %v, attached: %t", before, after, attached)
	}
	w = s.enqueue(w.request)
	if after, _ := s.places(1, 2); !slices.Equal(after, before) {
		s.Fatalf("the places were %v, and are %v", before, after)
	}
	s.must(s.release(held))
	s.expectSet(w.mustBeGranted(), s.others(1, 2))
}

func setLeaves(s *fixture) {
	s.hold(2, "holder")
	w := s.enqueue(lock.Acquire{Set: s.set(1, 2, 3), Holder: "set", Wait: lock.MaxWait})
	behind := s.enqueue(lock.Acquire{Name: s.other(3), Holder: "behind", Wait: lock.MaxWait})
	w.cancelAndWait()
	behind.mustBeWoken()
	for n := range 4 {
		s.eventually("the set has left", func() bool { return len(s.queue(s.other(n)).Waiters) == 0 })
	}
	s.expectHeld(map[int]string{1: "", 2: "holder", 3: "behind"})
}

func setPlaceReleased(s *fixture) {
	held := s.hold(2, "holder")
	w := s.enqueue(lock.Acquire{Set: s.set(1, 2), Holder: "set", Wait: lock.MaxWait})
	release := lock.Release{Set: s.others(2, 1), LeaseID: w.request.LeaseID}
	s.must(s.locks.Release(s.ctx, release))
	s.must(s.locks.Release(s.ctx, release))
	for n := range 3 {
		if q := s.queue(s.other(n)).Waiters; len(q) != 0 {
			s.Errorf("the queue of lock %d is %+v", n, q)
		}
	}
	s.must(s.release(held))
	w.cancel()
	if w.wait(); w.err == nil {
		s.Errorf("the call whose places were given up was granted %+v", w.grant)
	}
	s.mustAcquireSet("next", 1, 2)
}
