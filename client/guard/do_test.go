package guard_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

var errWork = errors.New("the work has failed")

// do is guard.Do over the faulty connection.
func (s *fixture) do(ctx context.Context, work func(context.Context, *guard.Lease) error) error {
	return guard.Do(ctx, s.service, name, s.options(guard.Options{}), work)
}

func TestWorkRunsWithTheTokenAndTheLock(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.must(s.do(s.Context(), func(ctx context.Context, l *guard.Lease) error {
			token, ok := lock.TokenFrom(ctx)
			if now := s.lockNow(); !ok || token != l.Token() || now.Token != token || now.State != lock.Held || l.Name() != name {
				s.Errorf("the work has the token %d, the lock is %+v", token, now)
			}
			return ctx.Err()
		}))
		s.wantEvents(lock.Granted, lock.Released)
	})
}

func TestDoReturnsTheErrorOfTheWorkAndReleasesTheLock(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.wantError(s.do(s.Context(), func(context.Context, *guard.Lease) error { return errWork }), errWork)
		s.wantEvents(lock.Granted, lock.Released)
	})
}

func TestAPanicReleasesTheLock(t *testing.T) {
	withFixture(t, func(s *fixture) {
		defer func() {
			if got, ok := recover().(error); !ok || !errors.Is(got, errWork) {
				s.Errorf("recovered %v", got)
			}
			s.wantEvents(lock.Granted, lock.Released)
		}()
		s.must(s.do(s.Context(), func(context.Context, *guard.Lease) error { panic(errWork) }))
	})
}

func TestCanceledWorkReleasesTheLock(t *testing.T) {
	withFixture(t, func(s *fixture) {
		ctx, cancel := context.WithCancel(s.Context())
		time.AfterFunc(time.Minute, cancel)
		s.wantError(s.do(ctx, func(ctx context.Context, _ *guard.Lease) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}), context.Canceled)
		s.wantEvents(lock.Granted, lock.Released)
		s.wantStates(guard.Released)
	})
}

func TestWorkUnderALostLeaseIsReportedAsLost(t *testing.T) {
	for what, returns := range map[string]error{"work that succeeds": nil, "work that fails": errWork} {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				err := s.do(s.Context(), func(ctx context.Context, _ *guard.Lease) error {
					s.service.setFault(fault{refuse: true})
					<-ctx.Done()
					s.service.setFault(fault{})
					s.wantError(context.Cause(ctx), lock.ErrLeaseLost)
					return returns
				})
				s.wantError(err, lock.ErrLeaseLost)
				if returns != nil {
					s.wantError(err, returns)
				}
				s.wantEvents(lock.Granted, lock.Released)
			})
		})
	}
}

func TestALossDetectedAtReleaseIsReported(t *testing.T) {
	withFixture(t, func(s *fixture) {
		err := s.do(s.Context(), func(ctx context.Context, l *guard.Lease) error {
			_, err := s.locks.Revoke(ctx, lock.Revoke{Name: name, Token: l.Token(), Reason: "maintenance"})
			return err
		})
		if e := lockError(s, err); e.Code != lock.ErrLeaseLost || e.Ended != lock.Revoked {
			s.Errorf("the error is %v", err)
		}
	})
}

func TestAnUnansweredReleaseIsNotAnErrorOfDo(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.must(s.do(s.Context(), func(context.Context, *guard.Lease) error {
			s.service.setFault(fault{refuse: true})
			return nil
		}))
		s.wantStates(guard.Released)
		s.wantError(s.states.errs[0], lock.ErrUnavailable)
		time.Sleep(ttl)
		s.wantEvents(lock.Granted, lock.Expired)
	})
}

func TestAReleaseIsRetried(t *testing.T) {
	for what, f := range map[string]fault{"when connections are refused": {refuse: true}, "when its answer is lost": {loseAnswer: true}} {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				l := s.acquire(guard.Options{})
				s.service.setFault(f)
				time.AfterFunc(time.Second, func() { s.service.setFault(fault{}) })
				s.must(l.Release(s.Context()))
				s.must(l.Release(s.Context()))
				s.wantError(l.Err(), guard.ErrReleased)
				s.wantEvents(lock.Granted, lock.Released)
			})
		})
	}
}

func TestTheContextOfTheWorkEndsWithTheLease(t *testing.T) {
	withFixture(t, func(s *fixture) {
		l := s.acquire(guard.Options{})
		ctx, cancel := l.Context(s.Context())
		child, cancelChild := context.WithTimeout(ctx, time.Hour)
		defer cancelChild()
		s.must(l.Release(s.Context()))
		for _, c := range []context.Context{ctx, child} {
			<-c.Done()
			s.wantError(context.Cause(c), guard.ErrReleased)
			s.wantError(c.Err(), context.Canceled)
		}
		cancel()
		s.wantError(context.Cause(ctx), guard.ErrReleased)
	})
}

// TestAPauseIsDetectedBeforeTimersFire simulates a pause by a suspension: the clock has advanced, but
// no timer has fired.
func TestAPauseIsDetectedBeforeTimersFire(t *testing.T) {
	checks := map[string]func(*guard.Lease, context.Context) bool{
		"by the lease":           func(l *guard.Lease, _ context.Context) bool { return l.Err() != nil },
		"by the lease's state":   func(l *guard.Lease, _ context.Context) bool { return l.State() == guard.Lost },
		"by the context's error": func(_ *guard.Lease, ctx context.Context) bool { return ctx.Err() != nil },
		"by the context's channel": func(_ *guard.Lease, ctx context.Context) bool {
			select {
			case <-ctx.Done():
				return true
			default:
				return false
			}
		},
	}
	for what, isOver := range checks {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				var suspended atomic.Int64
				l, err := guard.AcquireSuspended(s.Context(), s.service, []lock.Member{{Name: name}}, guard.Options{}, func() time.Duration { return time.Duration(suspended.Load()) })
				s.must(err)
				ctx, cancel := l.Context(s.Context())
				defer cancel()
				if synctest.Wait(); isOver(l, ctx) {
					s.Error("the lease has ended before the pause")
				}
				suspended.Store(int64(ttl - ttl/10))
				if !isOver(l, ctx) {
					s.Error("the pause was not detected")
				}
				s.wantError(l.Err(), lock.ErrLeaseLost)
				s.must(l.Release(s.Context()))
			})
		})
	}
}

func TestASuspensionIsDetectedByTheTimer(t *testing.T) {
	withFixture(t, func(s *fixture) {
		var suspended atomic.Int64
		l, err := guard.AcquireSuspended(s.Context(), s.service, []lock.Member{{Name: name}}, guard.Options{}, func() time.Duration { return time.Duration(suspended.Load()) })
		s.must(err)
		synctest.Wait()
		suspended.Store(int64(ttl))
		resumed := time.Now()
		<-l.Done()
		if took := time.Since(resumed); took > time.Second {
			s.Errorf("detection took %v", took)
		}
		s.must(l.Release(s.Context()))
	})
}

func TestAShortSuspensionMakesTheRenewalDue(t *testing.T) {
	withFixture(t, func(s *fixture) {
		var suspended atomic.Int64
		l, err := guard.AcquireSuspended(s.Context(), s.service, []lock.Member{{Name: name}}, guard.Options{}, func() time.Duration { return time.Duration(suspended.Load()) })
		s.must(err)
		synctest.Wait()
		suspended.Store(int64(ttl / 2))
		time.Sleep(2 * time.Second)
		s.must(l.Err())
		if n := len(s.service.sentAt("renew")); n != 1 {
			s.Errorf("%d renewals", n)
		}
		s.must(l.Release(s.Context()))
	})
}

// TestTheGraceOfARevokedLeaseCountsSuspensions from when the renewal was sent that found the revocation.
func TestTheGraceOfARevokedLeaseCountsSuspensions(t *testing.T) {
	withFixture(t, func(s *fixture) {
		var suspended atomic.Int64
		l, err := guard.AcquireSuspended(s.Context(), s.service, []lock.Member{{Name: name}}, guard.Options{Grace: 20 * time.Second},
			func() time.Duration { return time.Duration(suspended.Load()) })
		s.must(err)
		s.revokeAll(name)
		s.service.setFault(fault{delay: time.Second})
		for len(s.service.sentAt("renew")) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		suspended.Store(int64(3 * time.Second)) // while the answer is on its way
		<-l.Done()
		e := lockError(s, l.Err())
		if ends := time.Now().Add(e.GraceLeft - 3*time.Second); e.GraceLeft == 0 || !l.GraceEnds().Equal(ends) {
			s.Errorf("%v of the grace was left, and it ends in %v", e.GraceLeft, time.Until(l.GraceEnds()))
		}
		ends := l.GraceEnds()
		time.Sleep(time.Second)
		suspended.Add(int64(time.Second))
		if moved := l.GraceEnds().Sub(ends); moved != -time.Second {
			s.Errorf("a second of suspension moved the end by %v", moved)
		}
		s.wantError(l.Release(s.Context()), lock.ErrLeaseLost)
	})
}
