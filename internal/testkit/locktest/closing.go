package locktest

import (
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func closingCases() cases {
	return cases{
		"work that is done is not done again":                     closedOnce,
		"a lock opens again":                                      closedOpens,
		"a period of the wall clock closes a lock":                closedPeriod,
		"waiters for work that is done are told at once":          closedTellsWaiters,
		"a waiter takes the work over from a holder that is gone": closedTakenOver,
		"an operator opens a closed lock":                         closedOpened,
	}
}

// close releases the lease and closes its lock.
func (s *fixture) close(g lock.Grant, c lock.Closing) error {
	return s.locks().Release(s.ctx, lock.Release{Locks: g.Requested(), LeaseID: g.ID, Closed: c})
}

func closedOnce(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.must(s.close(g, lock.Closing{For: time.Hour}))
	s.must(s.close(g, lock.Closing{For: 2 * time.Hour})) // repeated, it changes nothing
	e := s.expectError(errOf(s.acquire(lock.Acquire{Holder: "second"})), lock.ErrAlreadyDone)
	if e.Holder != "first" || e.DoneAt.IsZero() || e.RetryAfter <= 50*time.Minute || e.RetryAfter > time.Hour {
		s.Errorf("refused with %+v", e)
	}
	l := s.get(s.name)
	if l.State != lock.Free || l.Closed == nil || l.Closed.Holder != "first" || !isNear(l.Closed.Until, g.AcquiredAt.Add(time.Hour)) || !isNear(l.Closed.At, e.DoneAt) {
		s.Errorf("the lock is %+v, closed %+v", l, l.Closed)
	}
	released := s.eventOf(lock.Released)
	if !isNear(released.Until, l.Closed.Until) {
		s.Errorf("the event is %+v", released)
	}
}

// eventOf returns the only event of the kind of the fixture's lock.
func (s *fixture) eventOf(k lock.Kind) lock.Event {
	s.Helper()
	return (&reader{s, paddock.EventQuery{Names: []string{s.name}, Kinds: []lock.Kind{k}}}).want(1)[0]
}

func closedOpens(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.must(s.close(g, lock.Closing{For: mediumTTL}))
	second := s.startAcquire(lock.Acquire{Holder: "second"}).mustBeGranted()
	if second.AcquiredAt.Before(g.AcquiredAt.Add(mediumTTL)) {
		s.Errorf("granted %v after the lease that closed the lock for %v", second.AcquiredAt.Sub(g.AcquiredAt), mediumTTL)
	}
}

func closedPeriod(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.must(s.close(g, lock.Closing{Period: lock.Month, Zone: "Europe/Berlin"}))
	berlin, err := time.LoadLocation("Europe/Berlin")
	s.must(err)
	year, month, _ := g.AcquiredAt.In(berlin).Date()
	if l, want := s.get(s.name), time.Date(year, month+1, 1, 0, 0, 0, 0, berlin); l.Closed == nil || !l.Closed.Until.Equal(want) {
		s.Errorf("closed %+v, want until %v", l.Closed, want)
	}
}

func closedTellsWaiters(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	once := s.startAcquire(lock.Acquire{Holder: "once", Once: true, Wait: lock.MaxWait})
	s.awaitQueue("once")
	s.must(s.close(g, lock.Closing{For: time.Hour}))
	s.expectError(once.refusal(), lock.ErrAlreadyDone)
	if l := s.get(s.name); l.Waiters != 0 {
		s.Errorf("%d wait still", l.Waiters)
	}
	s.expectError(errOf(s.acquire(lock.Acquire{Once: true, Wait: lock.MaxWait})), lock.ErrAlreadyDone)
}

func closedTakenOver(s *fixture) {
	s.mustAcquire(lock.Acquire{TTL: shortTTL})
	next := s.startAcquire(lock.Acquire{Holder: "next", Once: true, Wait: lock.MaxWait}).mustBeGranted()
	s.must(s.close(next, lock.Closing{For: time.Hour}))
	s.expectError(errOf(s.acquire(lock.Acquire{})), lock.ErrAlreadyDone)
}

func closedOpened(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.must(s.close(g, lock.Closing{For: time.Hour}))
	waiter := s.startAcquire(lock.Acquire{Holder: "waiter"})
	s.awaitQueue("waiter")
	s.expectError(errOf(s.locks().Revoke(s.ctx, lock.Revoke{Name: s.name, Token: g.Token + 1, Reason: "again"})), lock.ErrTokenMismatch)
	l, err := s.locks().Revoke(s.ctx, lock.Revoke{Name: s.name, Token: g.Token, Reason: "again"})
	s.must(err)
	if l.Closed != nil {
		s.Errorf("the lock is still closed: %+v", l.Closed)
	}
	waiter.mustBeGranted()
	if e := s.eventOf(lock.Opened); e.Reason != "again" || e.Token != g.Token || e.Holder != "first" {
		s.Errorf("the event is %+v", e)
	}
}
