package guard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

var hourly = lock.Closing{For: time.Hour}

// once runs work that returns err once per hour, over the faulty connection.
func (s *fixture) once(o guard.Options, returns error) (guard.Turn, error) {
	return guard.Once(s.Context(), s.service, name, hourly, s.options(o), func(context.Context, *guard.Lease) error { return returns })
}

// wantTurn checks whether the work was run.
func (s *fixture) wantTurn(turn guard.Turn, err error, ran bool) {
	s.Helper()
	if s.must(err); turn.Ran != ran {
		s.Errorf("the turn is %+v", turn)
	}
}

func TestWorkIsDoneOncePerPeriod(t *testing.T) {
	withFixture(t, func(s *fixture) {
		began := time.Now()
		turn, err := s.once(guard.Options{Holder: "first"}, nil)
		s.wantTurn(turn, err, true)
		time.Sleep(10 * time.Minute)
		turn, err = s.once(guard.Options{}, nil)
		if s.wantTurn(turn, err, false); turn.DoneBy != "first" || !turn.DoneAt.Equal(began) || turn.Left != 50*time.Minute {
			s.Errorf("done before: %+v", turn)
		}
		time.Sleep(50 * time.Minute)
		turn, err = s.once(guard.Options{}, nil)
		s.wantTurn(turn, err, true)
		s.wantEvents(lock.Granted, lock.Released, lock.Granted, lock.Released)
	})
}

func TestWorkThatFailsIsDoneAgain(t *testing.T) {
	withFixture(t, func(s *fixture) {
		turn, err := s.once(guard.Options{}, errWork)
		if s.wantError(err, errWork); !turn.Ran {
			s.Errorf("the turn is %+v", turn)
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = guard.Once(s.Context(), s.service, name, hourly, guard.Options{}, func(context.Context, *guard.Lease) error { panic(errWork) })
		}()
		turn, err = s.once(guard.Options{}, nil)
		s.wantTurn(turn, err, true)
	})
}

// TestWorkWhoseLeaseWasLostIsDoneAgain although the work has not noticed it.
func TestWorkWhoseLeaseWasLostIsDoneAgain(t *testing.T) {
	withFixture(t, func(s *fixture) {
		_, err := guard.Once(s.Context(), s.service, name, hourly, guard.Options{}, func(context.Context, *guard.Lease) error {
			s.revokeAll(name)
			return nil
		})
		s.wantError(err, lock.ErrLeaseLost)
		turn, err := s.once(guard.Options{}, nil)
		s.wantTurn(turn, err, true)
	})
}

func TestWhoWaitsForAnotherTurnIsToldThatItIsDone(t *testing.T) {
	withFixture(t, func(s *fixture) {
		other := s.grantOther(lock.Acquire{TTL: time.Minute})
		_, err := s.once(guard.Options{}, nil)
		s.wantError(err, lock.ErrHeld)
		time.AfterFunc(25*time.Second, func() {
			s.must(s.locks.Release(s.Context(), lock.Release{Locks: []string{name}, LeaseID: other.ID, Closed: hourly}))
		})
		began := time.Now()
		turn, err := s.once(guard.Options{Wait: time.Minute}, nil)
		if s.wantTurn(turn, err, false); turn.DoneBy != "another client" || time.Since(began) != 25*time.Second {
			s.Errorf("told after %v: %+v", time.Since(began), turn)
		}
	})
}

func TestWhoWaitsTakesTheTurnAfterAFailure(t *testing.T) {
	withFixture(t, func(s *fixture) {
		other := s.grantOther(lock.Acquire{TTL: time.Minute})
		time.AfterFunc(25*time.Second, func() { s.releaseOther(other) })
		turn, err := s.once(guard.Options{Wait: time.Minute}, nil)
		s.wantTurn(turn, err, true)
	})
}

// TestAnUnansweredReleaseOfATurnIsAnError because the work is done again.
func TestAnUnansweredReleaseOfATurnIsAnError(t *testing.T) {
	withFixture(t, func(s *fixture) {
		turn, err := guard.Once(s.Context(), s.service, name, hourly, guard.Options{}, func(context.Context, *guard.Lease) error {
			s.service.setFault(fault{refuse: true})
			return nil
		})
		if s.wantError(err, lock.ErrUnavailable); !turn.Ran {
			s.Errorf("the turn is %+v", turn)
		}
	})
}

// TestAnInvalidPeriodIsRefusedBeforeTheWork and not by the release after it.
func TestAnInvalidPeriodIsRefusedBeforeTheWork(t *testing.T) {
	for text, per := range map[string]lock.Closing{
		"per has neither For nor Period":               {},
		"OncePer.For is":                               {For: lock.MaxClosed + time.Second},
		"OncePer.Period is invalid":                    {Period: "year"},
		"OncePer.Zone is unknown":                      {Period: lock.Day, Zone: "Europe/Bonn"},
		"OncePer.Zone is only valid with":              {For: time.Hour, Zone: "Europe/Berlin"},
		"OncePer is only valid for one lock":           hourly,
		"OncePer is only valid with mode exclusive":    hourly,
		"OncePer.For is -1000; give 0 to 2678400000":   {For: -time.Second},
		"OncePer.Period is invalid; use minute, hour,": {For: time.Hour, Period: "Day"},
	} {
		t.Run(text, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				work := func(context.Context, *guard.Lease) error { panic("the work was run") }
				var err error
				switch {
				case strings.Contains(text, "one lock"):
					err = guard.DoAll(s.Context(), s.service, []lock.Member{{Name: "a"}, {Name: "b"}}, guard.Options{OncePer: per}, work)
				case strings.Contains(text, "mode"):
					_, err = guard.Once(s.Context(), s.service, name, per, guard.Options{Mode: lock.Shared}, work)
				default:
					_, err = guard.Once(s.Context(), s.service, name, per, guard.Options{}, work)
				}
				if e := lockError(s, err); e.Code != lock.ErrInvalid || !strings.Contains(err.Error(), text) {
					s.Errorf("refused with %v", err)
				}
			})
		})
	}
}

// TestAFrozenLockIsWaitedFor over several calls of the wait, like one that is held.
func TestAFrozenLockIsWaitedFor(t *testing.T) {
	withFixture(t, func(s *fixture) {
		_, err := s.locks.Freeze(s.Context(), lock.FreezeRequest{Scope: name, Reason: "maintenance"})
		s.must(err)
		_, err = guard.Acquire(s.Context(), s.service, name, guard.Options{})
		s.wantError(err, lock.ErrFrozen)
		time.AfterFunc(25*time.Second, func() { s.must(s.locks.Thaw(s.Context(), lock.ThawRequest{Scope: name})) })
		began := time.Now()
		s.must(s.acquire(guard.Options{Wait: time.Minute}).Release(s.Context()))
		if took := time.Since(began); took < 25*time.Second || took > 26*time.Second {
			s.Errorf("granted after %v", took)
		}
	})
}

// TestWorkWithoutATurnWaitsUntilTheLockOpens over several calls of the wait.
func TestWorkWithoutATurnWaitsUntilTheLockOpens(t *testing.T) {
	withFixture(t, func(s *fixture) {
		other := s.grantOther(lock.Acquire{TTL: time.Minute})
		s.must(s.locks.Release(s.Context(), lock.Release{Locks: []string{name}, LeaseID: other.ID, Closed: lock.Closing{For: 25 * time.Second}}))
		_, err := guard.Acquire(s.Context(), s.service, name, guard.Options{})
		s.wantError(err, lock.ErrAlreadyDone)
		began := time.Now()
		s.must(s.acquire(guard.Options{Wait: time.Minute}).Release(s.Context()))
		if took := time.Since(began); took < 25*time.Second || took > 26*time.Second {
			s.Errorf("granted after %v", took)
		}
		s.must(s.acquire(guard.Options{}).Release(s.Context())) // the next grant has opened it
	})
}
