package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

func TestALeaseIsRenewedUntilItIsReleased(t *testing.T) {
	withFixture(t, func(s *fixture) {
		l := s.acquire(guard.Options{})
		time.Sleep(24 * time.Hour)
		s.must(l.Err())
		if now := s.lockNow(); now.State != lock.Held || now.Token != l.Token() || l.State() != guard.Held {
			s.Errorf("after a day the lock is %+v, the lease %v", now, l.State())
		}
		s.must(l.Release(s.Context()))
		s.wantEvents(lock.Granted, lock.Released)
		s.wantStates(guard.Released)
	})
}

func TestRenewalsAreAtMostAThirdOfTheTTLApart(t *testing.T) {
	withFixture(t, func(s *fixture) {
		last := time.Now()
		s.acquire(guard.Options{})
		time.Sleep(time.Hour)
		gaps := map[time.Duration]bool{}
		for _, at := range s.service.sentAt("renew") {
			gap := at.Sub(last)
			if gap > ttl/3 || gap < ttl*8/30-ttl/60 {
				s.Errorf("a renewal came %v after the previous one", gap)
			}
			gaps[gap], last = true, at
		}
		if len(gaps) < 4 {
			s.Errorf("%d different intervals in an hour: is there jitter?", len(gaps))
		}
	})
}

func TestManyLeasesAreRenewedAtFewInstants(t *testing.T) {
	withFixture(t, func(s *fixture) {
		const leases, span = 200, 10 * time.Minute
		for range leases {
			s.acquire(guard.Options{Mode: lock.Shared})
			time.Sleep(rand.N(time.Second))
		}
		began := time.Now()
		time.Sleep(span)
		renewals, instants := 0, map[time.Time]bool{}
		for _, at := range s.service.sentAt("renew") {
			if at.After(began) {
				renewals++
				instants[at] = true
			}
		}
		if least := int(leases * span / (ttl / 3)); renewals < least || len(instants) > int(span/(ttl/60))+1 {
			s.Errorf("%d renewals at %d instants, want %d at least", renewals, len(instants), least)
		}
	})
}

func TestWorkStopsBeforeTheLeaseEndsInAnOutage(t *testing.T) {
	for what, f := range map[string]fault{
		"requests are lost":       {blackHole: true},
		"answers are lost":        {loseAnswer: true},
		"connections are refused": {refuse: true},
		"answers are late":        {delay: time.Hour},
	} {
		t.Run(what, func(t *testing.T) {
			for try := range 25 {
				t.Run(fmt.Sprint(try), func(t *testing.T) {
					withFixture(t, func(s *fixture) { checkStopsInTime(s, f) })
				})
			}
		})
	}
}

// checkStopsInTime starts the fault at a random time between two renewals.
func checkStopsInTime(s *fixture, f fault) {
	l := s.acquire(guard.Options{})
	ctx, cancel := l.Context(s.Context())
	defer cancel()
	time.Sleep(rand.N(2 * ttl))
	s.service.setFault(f)
	broken := time.Now()
	<-ctx.Done()
	if now := s.lockNow(); now.State != lock.Held {
		s.Errorf("the work was stopped when the lock was %v", now.State)
	}
	if lasted := time.Since(broken); lasted < ttl/2 {
		s.Errorf("the work was stopped after %v of outage, too soon", lasted)
	}
	s.wantError(context.Cause(ctx), lock.ErrLeaseLost)
	s.wantError(l.Err(), lock.ErrLeaseLost)
	if f.refuse {
		s.wantStates(guard.AtRisk, guard.Lost)
	}
}

func TestAnOutageIsNotALoss(t *testing.T) {
	for what, f := range map[string]fault{
		"requests are lost":       {blackHole: true},
		"answers are lost":        {loseAnswer: true},
		"connections are refused": {refuse: true},
	} {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				l := s.acquire(guard.Options{})
				for range 10 {
					time.Sleep(ttl + rand.N(ttl)) // anywhere between two renewals
					s.service.setFault(f)
					time.Sleep(ttl / 2)
					s.service.setFault(fault{})
					time.Sleep(ttl)
					s.must(l.Err())
					if l.State() != guard.Held {
						s.Errorf("after the outage the lease is %v", l.State())
					}
				}
				s.must(l.Release(s.Context()))
				s.wantEvents(lock.Granted, lock.Released)
			})
		})
	}
}

func TestStateChangesAreReportedInOrder(t *testing.T) {
	withFixture(t, func(s *fixture) {
		l := s.acquire(guard.Options{})
		s.service.setFault(fault{refuse: true})
		time.Sleep(ttl / 2)
		s.wantStates(guard.AtRisk)
		s.wantError(s.states.errs[0], lock.ErrUnavailable)
		s.service.setFault(fault{})
		time.Sleep(ttl)
		s.wantStates(guard.AtRisk, guard.Held)
		s.must(l.Release(s.Context()))
		s.wantStates(guard.AtRisk, guard.Held, guard.Released)
		s.must(s.states.errs[2])
		s.wantError(l.Err(), guard.ErrReleased)
	})
}

func TestARevokedLeaseIsLostAtTheNextRenewal(t *testing.T) {
	withFixture(t, func(s *fixture) {
		l := s.acquire(guard.Options{})
		_, err := s.locks.Revoke(s.Context(), lock.Revoke{Name: name, Token: l.Token(), Reason: "db-3 is being replaced"})
		s.must(err)
		revoked := time.Now()
		<-l.Done()
		if took := time.Since(revoked); took > ttl/3 {
			s.Errorf("the loss was detected after %v", took)
		}
		s.wantError(l.Err(), lock.ErrLeaseLost)
		s.wantStates(guard.Lost)
		if e := lockError(s, l.Err()); e.Ended != lock.Revoked || e.Reason != "db-3 is being replaced" {
			s.Errorf("the error is %+v", e)
		}
		s.wantError(l.Release(s.Context()), lock.ErrLeaseLost)
	})
}

// TestALeaseWithLittleLeftIsRenewedInTime: the answers to the acquire leave a tenth of a second until the deadline.
func TestALeaseWithLittleLeftIsRenewedInTime(t *testing.T) {
	const ttl, margin, late = 6 * time.Second, 2 * time.Second, 3900 * time.Millisecond
	withFixture(t, func(s *fixture) {
		s.service.setFault(fault{delay: late})
		l := s.acquire(guard.Options{TTL: ttl, Margin: margin})
		s.service.setFault(fault{})
		time.Sleep(ttl)
		s.must(l.Err())
		s.must(l.Release(s.Context()))
	})
}

func TestALeaseIsLostAtItsMaxHold(t *testing.T) {
	withFixture(t, func(s *fixture) {
		l := s.acquire(guard.Options{MaxHold: time.Minute})
		begun := time.Now()
		<-l.Done()
		if held := time.Since(begun); held > time.Minute || held < time.Minute-ttl/3 {
			s.Errorf("the lease was held for %v", held)
		}
		s.wantError(l.Err(), lock.ErrLeaseLost)
	})
}

func TestALossTellsTheLastErrorOfTheRenewals(t *testing.T) {
	withFixture(t, func(s *fixture) {
		l := s.acquire(guard.Options{})
		s.service.setFault(fault{refuse: true})
		time.AfterFunc(20*time.Second, func() { s.service.setFault(fault{blackHole: true}) })
		<-l.Done()
		if err := l.Err(); !errors.Is(err, lock.ErrLeaseLost) || !strings.Contains(err.Error(), "unknown_outcome: Lost.") {
			s.Errorf("the loss is %v", err)
		}
	})
}
