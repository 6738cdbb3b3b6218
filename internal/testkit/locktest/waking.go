package locktest

import (
	"fmt"

	"github.com/paddock-lock/paddock/lock"
)

// wakingCases are what grants a waiting call its lock, or the last lock of its set. The call does not ask again, and
// nothing else wakes it. The end of a session does so, too, in the cases of sessions.
func wakingCases() cases {
	return cases{
		"the release of its lock":                   wokenAt(untilRelease),
		"the release of a set":                      wokenAt(untilSetRelease),
		"the end of a lease":                        wokenAt(untilExpiry),
		"the end of a grace":                        wokenAt(untilGrace),
		"a revocation that skips the grace":         wokenAt(untilRevoked),
		"the end of the grace of a revoked lease":   wokenAt(untilRevokedGrace),
		"the leaving of the call before it":         wokenAfter(leaves),
		"the end of the wait of the call before it": wokenAfter(timesOut),
		"the release of the place before it":        wokenAfter(placeIsReleased),
		"the end of the session of a writer":        wokenAfterWriter,
	}
}

// wokenAt returns a test of a call that waits for a lock with a lease that begin acquires and end ends: for that lock
// alone, and for sets of which it is the first, the second or the last.
func wokenAt(begin func(s *fixture, n int) (end func())) func(*fixture) {
	return func(s *fixture) {
		concurrently(4, func(variant int) {
			of, n, set := *s, variant%3, []int{0, 1, 2}
			of.name = fmt.Sprintf("%s:%d", s.name, variant)
			end := begin(&of, n)
			if variant == 3 {
				set = []int{n}
			}
			var others []lock.Grant
			for _, i := range set {
				if i == (n+1)%3 {
					others = append(others, of.hold(i, "another"))
				}
			}
			w := of.startAcquire(lock.Acquire{Locks: of.set(set...), Holder: "waiter", Wait: lock.MaxWait})
			for _, g := range others {
				of.must(of.release(g))
			}
			end()
			w.mustBeWoken()
			for _, i := range set {
				of.expectHeld(map[int]string{i: "waiter"})
			}
		})
	}
}

// whenWaiting returns a function that calls do once the call of the test waits.
func (s *fixture) whenWaiting(n int, do func() error) func() {
	return func() {
		s.eventually("the call waits", func() bool { return s.waits(s.other(n), "waiter") })
		s.must(do())
	}
}

func untilRelease(s *fixture, n int) func() {
	g := s.hold(n, "holder")
	return s.whenWaiting(n, func() error { return s.release(g) })
}

func untilSetRelease(s *fixture, n int) func() {
	g := s.mustAcquireSet("holder", 5, n, 4)
	return s.whenWaiting(n, func() error { return s.release(g) })
}

func untilExpiry(s *fixture, n int) func() {
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(n)), TTL: 5 * shortTTL})
	return func() {}
}

func untilGrace(s *fixture, n int) func() {
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(n)), TTL: shortTTL, Grace: 4 * shortTTL})
	return func() {}
}

func untilRevoked(s *fixture, n int) func() {
	g := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(n)), Grace: lock.MaxGrace})
	return s.whenWaiting(n, func() error {
		return errOf(s.locks().Revoke(s.ctx, lock.Revoke{Name: g.Name, Token: g.Token, Reason: testReason, SkipGrace: true}))
	})
}

func untilRevokedGrace(s *fixture, n int) func() {
	g := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(n)), Grace: 3 * shortTTL})
	return s.whenWaiting(n, func() error {
		return errOf(s.locks().Revoke(s.ctx, lock.Revoke{Name: g.Name, Token: g.Token, Reason: testReason}))
	})
}

// wokenAfter returns a test of a set that waits at a free lock behind another set, until that ends its wait.
func wokenAfter(end func(s *fixture, before lock.Acquire, start func(lock.Acquire) *waitingCall)) func(*fixture) {
	return func(s *fixture) {
		s.hold(2, "holder")
		var next *waitingCall
		end(s, lock.Acquire{Locks: s.set(1, 2), Holder: "before", LeaseID: newID()}, func(before lock.Acquire) *waitingCall {
			w := s.enqueue(before)
			next = s.enqueue(lock.Acquire{Locks: s.set(3, 1), Holder: "next", Wait: lock.MaxWait})
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
	s.must(s.locks().Release(s.ctx, lock.Release{Locks: s.others(1, 2), LeaseID: before.LeaseID}))
}

// wokenAfterWriter: the end of the writer's session frees no lock, and makes way for a set of readers.
func wokenAfterWriter(s *fixture) {
	s.mustAcquire(lock.Acquire{Locks: []lock.Member{{Name: s.other(1), Mode: lock.Shared}}})
	session := s.openSession(lock.OpenSession{Holder: "writer", TTL: mediumTTL})
	writer := s.enqueue(lock.Acquire{Locks: lock.One(s.other(1)), Holder: "writer", SessionID: session.ID})
	set := s.set(1, 2)
	set[0].Mode = lock.Shared
	w := s.enqueue(lock.Acquire{Locks: set, Holder: "set", Wait: lock.MaxWait})
	s.expectSessionLost(writer.refusal(), lock.Expired)
	w.mustBeWoken()
	s.expectHeld(map[int]string{1: "first set", 2: "set"})
}
