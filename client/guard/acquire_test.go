package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

func lockError(s *fixture, err error) *lock.Error {
	s.Helper()
	var e *lock.Error
	if !errors.As(err, &e) {
		s.Fatalf("%v is not a *lock.Error", err)
	}
	return e
}

func TestATryIsRefusedImmediately(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.releaseOther(s.grantOther(lock.Acquire{}))
		defer s.releaseOther(s.grantOther(lock.Acquire{TTL: time.Hour}))
		begun := time.Now()
		_, err := guard.Acquire(s.Context(), s.service, name, guard.Options{})
		s.wantError(err, lock.ErrHeld)
		if e := lockError(s, err); e.Holder != "another client" || !time.Now().Equal(begun) {
			s.Errorf("after %v: %+v", time.Since(begun), e)
		}
	})
}

func TestALongWaitIsManyCallsWithOneQueuePlace(t *testing.T) {
	withFixture(t, func(s *fixture) {
		other := s.grantOther(lock.Acquire{TTL: time.Hour})
		var first, second *guard.Lease
		done := make(chan error, 2)
		wait := func(l **guard.Lease) {
			var err error
			*l, err = guard.Acquire(s.Context(), s.service, name, guard.Options{Wait: guard.Forever})
			done <- err
		}
		go wait(&first)
		synctest.Wait()
		go wait(&second)
		time.Sleep(10*time.Minute + time.Second) // not between two calls, where a place is skipped
		s.releaseOther(other)
		s.must(<-done)
		if first == nil || second != nil {
			s.Fatal("the first waiter does not have the lock")
		}
		if calls := len(s.service.sentAt("acquire")); calls < 20 {
			s.Errorf("a wait of ten minutes took %d calls", calls)
		}
		if left := time.Until(first.Deadline()); left < ttl/2 || s.lockNow().Waiters != 1 {
			s.Errorf("%v left, %d waiters", left, s.lockNow().Waiters)
		}
		s.must(first.Release(s.Context()))
		s.must(<-done)
		s.must(second.Release(s.Context()))
		s.wantEvents(lock.Granted, lock.Queued, lock.Queued, lock.Released, lock.Granted, lock.Released, lock.Granted, lock.Released)
	})
}

func TestAWaitEndsAfterOptionsWait(t *testing.T) {
	withFixture(t, func(s *fixture) {
		defer s.releaseOther(s.grantOther(lock.Acquire{TTL: time.Hour}))
		begun := time.Now()
		_, err := guard.Acquire(s.Context(), s.service, name, guard.Options{Wait: 2 * time.Minute})
		s.wantError(err, lock.ErrHeld)
		if took := time.Since(begun); took < 2*time.Minute-time.Millisecond || took > 2*time.Minute+time.Second || s.lockNow().Waiters != 0 {
			s.Errorf("it waited for %v; %d waiters are left", took, s.lockNow().Waiters)
		}
	})
}

func TestALostAnswerIsRetriedUnderTheSameLeaseID(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.service.setFault(fault{loseAnswer: true})
		time.AfterFunc(5*time.Second, func() { s.service.setFault(fault{}) })
		l, err := guard.Acquire(s.Context(), s.service, name, guard.Options{Retry: time.Minute})
		s.must(err)
		s.must(l.Err())
		s.must(l.Release(s.Context()))
		s.wantEvents(lock.Granted, lock.Released)
	})
}

func TestALeaseThatExpiredUnseenIsAcquiredAgain(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.service.setFault(fault{loseAnswer: true})
		time.AfterFunc(5*time.Second, func() { s.service.setFault(fault{}) })
		l, err := guard.Acquire(s.Context(), s.service, name, guard.Options{TTL: time.Second, Retry: time.Minute})
		s.must(err)
		s.must(l.Release(s.Context()))
		s.wantEvents(lock.Granted, lock.Expired, lock.Granted, lock.Released)
	})
}

func TestALateGrantIsRenewedBeforeAcquireReturns(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.service.setFault(fault{delay: 5 * time.Second})
		time.AfterFunc(time.Second, func() { s.service.setFault(fault{}) })
		l, err := guard.Acquire(s.Context(), s.service, name, guard.Options{})
		s.must(err)
		if n := len(s.service.sentAt("renew")); n != 1 {
			s.Errorf("%d renewals before Acquire returned, want 1", n)
		}
		if left := time.Until(l.Deadline()); (left - ttl*9/10).Abs() > time.Millisecond {
			s.Errorf("the deadline is in %v", left)
		}
		s.must(l.Release(s.Context()))
	})
}

func TestAnUnavailableServiceIsRetriedForTheRetryTime(t *testing.T) {
	for what, retry := range map[string]time.Duration{"by default": 0, "for a minute": time.Minute, "not at all": -1} {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				s.service.setFault(fault{refuse: true})
				begun := time.Now()
				retries := 0
				_, err := guard.Acquire(s.Context(), s.service, name, guard.Options{Retry: retry, OnRetry: func(err error) {
					s.wantError(err, lock.ErrUnavailable)
					retries++
				}})
				s.wantError(err, lock.ErrUnavailable)
				if sent := len(s.service.sentAt("acquire")); retries != sent-1 {
					s.Errorf("the acquire was sent %d times with %d calls of OnRetry", sent, retries)
				}
				want := map[time.Duration]time.Duration{0: guard.DefaultRetry, -1: 0}[retry]
				if want == 0 && retry > 0 {
					want = retry
				}
				if took := time.Since(begun); took < want || took > want+3*time.Second {
					s.Errorf("it was retried for %v, want %v", took, want)
				}
			})
		})
	}
}

func TestACanceledAcquireLeavesNothingBehind(t *testing.T) {
	for what, f := range map[string]fault{"in the queue": {}, "while answers are lost": {loseAnswer: true}} {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				other := s.grantOther(lock.Acquire{TTL: time.Hour})
				s.service.setFault(f)
				ctx, cancel := context.WithCancel(s.Context())
				time.AfterFunc(3*time.Second, func() { s.service.setFault(fault{}); cancel() })
				_, err := guard.Acquire(ctx, s.service, name, guard.Options{Wait: guard.Forever})
				s.wantError(err, context.Canceled)
				s.releaseOther(other)
				if now := s.lockNow(); now.State != lock.Free || now.Waiters != 0 {
					s.Errorf("the lock is %+v", now)
				}
			})
		})
	}
}

func TestAnUnansweredTryIsReleased(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.service.setFault(fault{loseAnswer: true})
		ctx, cancel := context.WithCancel(s.Context())
		time.AfterFunc(3*time.Second, func() { s.service.setFault(fault{}); cancel() })
		_, err := guard.Acquire(ctx, s.service, name, guard.Options{})
		s.wantError(err, context.Canceled)
		s.wantEvents(lock.Granted, lock.Released)
	})
}

// TestAnErrorNamesTheOption: also if the service refuses what the guard allows.
func TestAnErrorNamesTheOption(t *testing.T) {
	for want, o := range map[string]guard.Options{
		"TTL is 50ms; use 100ms to 24h0m0s":   {TTL: 50 * time.Millisecond},
		"Margin is 20s; ":                     {TTL: ttl, Margin: 20 * time.Second},
		"MaxHold is 1s; ":                     {TTL: ttl, MaxHold: time.Second},
		"Grace is 120000; give 0 to 60000":    {TTL: ttl, Grace: 2 * time.Minute},
		"Holder has 201 characters":           {Holder: strings.Repeat("x", 201)},
		"Capacity ":                           {Mode: lock.Permit, Capacity: 5000},
		"SessionID is of a session that this": {SessionID: lock.SessionID{1}},
	} {
		t.Run(want, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				_, err := guard.Acquire(s.Context(), s.service, name, o)
				if e := lockError(s, err); e.Code != lock.ErrInvalid || !strings.HasPrefix(e.Detail, want) {
					s.Errorf("the error is %v, want it to begin with %q", err, want)
				}
				if o.TTL == 0 || o.SessionID != (lock.SessionID{}) || o.MaxHold != 0 {
					return
				}
				_, err = guard.OpenSession(s.Context(), s.service, guard.SessionOptions{TTL: o.TTL, Grace: o.Grace, Margin: o.Margin})
				if e := lockError(s, err); e.Code != lock.ErrInvalid || !strings.HasPrefix(e.Detail, want) {
					s.Errorf("the error of the session is %v, want it to begin with %q", err, want)
				}
			})
		})
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for what, o := range map[string]guard.Options{
		"a margin of more than a third": {TTL: 9 * time.Second, Margin: 4 * time.Second},
		"a negative margin":             {Margin: -1},
		"a TTL that is too short":       {TTL: time.Millisecond},
		"a TTL that is too long":        {TTL: 48 * time.Hour},
		"a negative wait":               {Wait: -1},
		"a capacity without permits":    {Capacity: 3},
		"metadata that is not JSON":     {Metadata: []byte("[")},
	} {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				_, err := guard.Acquire(s.Context(), s.service, name, o)
				s.wantError(err, lock.ErrInvalid)
				s.wantEvents()
			})
		})
	}
}

func TestAnUnmanagedLeaseIsNotRenewed(t *testing.T) {
	withFixture(t, func(s *fixture) {
		o := guard.Options{LeaseID: lock.LeaseID(uuid.New())}
		first, err := guard.AcquireUnmanaged(s.Context(), s.service, name, o)
		s.must(err)
		again, err := guard.AcquireUnmanaged(s.Context(), s.service, name, o)
		s.must(err)
		if first.Token != again.Token || !again.Replayed {
			s.Errorf("the same lease_id was granted %d, then %d", first.Token, again.Token)
		}
		time.Sleep(ttl)
		_, err = guard.AcquireUnmanaged(s.Context(), s.service, name, o)
		s.wantError(err, lock.ErrLeaseLost)
		s.wantEvents(lock.Granted, lock.Expired)
	})
}

func TestTwoWaitersWithOneLeaseIDDoNotReplaceEachOtherForever(t *testing.T) {
	withFixture(t, func(s *fixture) {
		defer s.releaseOther(s.grantOther(lock.Acquire{TTL: time.Hour}))
		o := guard.Options{LeaseID: lock.LeaseID(uuid.New()), Holder: "both", Wait: 5 * time.Minute}
		ended := make(chan error, 2)
		wait := func() {
			_, err := guard.Acquire(s.Context(), s.service, name, o)
			ended <- err
		}
		go wait()
		synctest.Wait()
		go wait()
		s.wantError(<-ended, lock.ErrHeld) // the second caller has the place now
		s.wantError(<-ended, lock.ErrHeld)
		if calls := len(s.service.sentAt("acquire")); calls > 40 {
			s.Errorf("a wait of five minutes took %d calls", calls)
		}
	})
}

// A refusingService refuses the first acquires with the code.
type refusingService struct {
	paddock.Service
	code  lock.Code
	first int
	sent  int
}

func (l *refusingService) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if l.sent++; l.sent <= l.first {
		return lock.Grant{}, &lock.Error{Code: l.code, RetryAfter: 500 * time.Millisecond}
	}
	return l.Service.Acquire(ctx, a)
}

func TestARateLimitedAcquireIsRetried(t *testing.T) {
	withFixture(t, func(s *fixture) {
		begun := time.Now()
		limited := &refusingService{Service: s.locks, code: lock.ErrRateLimited, first: 3}
		l, err := guard.Acquire(s.Context(), limited, name, guard.Options{})
		s.must(err)
		if took := time.Since(begun); took < 1500*time.Millisecond || limited.sent != 4 {
			s.Errorf("the lock was acquired after %v and %d calls", took, limited.sent)
		}
		s.must(l.Release(s.Context()))
	})
}

func TestAnAuthorizationErrorIsNotRetried(t *testing.T) {
	for _, code := range []lock.Code{lock.ErrKeyMissing, lock.ErrKeyInvalid, lock.ErrKeyExpired, lock.ErrRoleMissing, lock.ErrNameNotAllowed} {
		t.Run(string(code), func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				refused := &refusingService{Service: s.locks, code: code, first: 1}
				_, err := guard.Acquire(s.Context(), refused, name, guard.Options{Wait: time.Minute})
				s.wantError(err, code)
				if refused.sent != 1 {
					s.Errorf("the acquire was sent %d times", refused.sent)
				}
			})
		})
	}
}

// A cutService cuts the connection of each call that waits after two seconds.
type cutService struct {
	paddock.Service
	away []time.Duration // how long no call waited after each cut
	cut  time.Time
}

func (s *cutService) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if a.Wait == 0 {
		return s.Service.Acquire(ctx, a)
	}
	if !s.cut.IsZero() {
		s.away = append(s.away, time.Since(s.cut))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	g, err := s.Service.Acquire(ctx, a)
	if s.cut = time.Now(); err != nil {
		err = &lock.Error{Code: lock.ErrUnknownOutcome, Cause: err}
	}
	return g, err
}

// TestAWaiterReturnsAtOnceAfterEachCut: a waiter is skipped until it returns, so its pauses do not grow from cut to
// cut.
func TestAWaiterReturnsAtOnceAfterEachCut(t *testing.T) {
	withFixture(t, func(s *fixture) {
		other := s.grantOther(lock.Acquire{TTL: time.Hour})
		time.AfterFunc(time.Minute+time.Second, func() { s.releaseOther(other) })
		cut := &cutService{Service: s.service}
		l, err := guard.Acquire(s.Context(), cut, name, guard.Options{Wait: guard.Forever})
		s.must(err)
		s.must(l.Release(s.Context()))
		if len(cut.away) < 20 {
			t.Errorf("there were only %d cuts", len(cut.away))
		}
		for _, away := range cut.away {
			if away > 200*time.Millisecond {
				t.Errorf("away for %v after a cut", away)
			}
		}
	})
}
