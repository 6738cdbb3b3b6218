package guard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

func refusal(s *scene, err error) *lock.Error {
	s.Helper()
	var e *lock.Error
	if !errors.As(err, &e) {
		s.Fatalf("%v is no refusal", err)
	}
	return e
}

func TestATryIsRefusedAtOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.released(s.granted(lock.Acquire{}))
		defer s.released(s.granted(lock.Acquire{TTL: time.Hour}))
		begun := time.Now()
		_, err := guard.Acquire(s.Context(), s.line, name, guard.Options{})
		s.is(err, lock.ErrHeld)
		if e := refusal(s, err); e.Holder != "somebody else" || !time.Now().Equal(begun) {
			s.Errorf("after %v: %+v", time.Since(begun), e)
		}
	})
}

func TestALongWaitIsManyCallsAtOnePlace(t *testing.T) {
	play(t, func(s *scene) {
		other := s.granted(lock.Acquire{TTL: time.Hour})
		var first, second *guard.Lease
		done := make(chan error, 2)
		wait := func(l **guard.Lease) {
			var err error
			*l, err = guard.Acquire(s.Context(), s.line, name, guard.Options{Wait: guard.Forever})
			done <- err
		}
		go wait(&first)
		synctest.Wait()
		go wait(&second)
		time.Sleep(10*time.Minute + time.Second) // not between two calls, when a place is passed over
		s.released(other)
		s.must(<-done)
		if first == nil || second != nil {
			s.Fatal("not the first has the lock")
		}
		if calls := len(s.line.made("acquire")); calls < 20 {
			s.Errorf("ten minutes were %d calls", calls)
		}
		if left := time.Until(first.Deadline()); left < ttl/2 || s.now().Waiters != 1 {
			s.Errorf("%v left, %d wait", left, s.now().Waiters)
		}
		s.must(first.Release(s.Context()))
		s.must(<-done)
		s.must(second.Release(s.Context()))
		s.happened(lock.Granted, lock.Queued, lock.Queued, lock.Released, lock.Granted, lock.Released, lock.Granted, lock.Released)
	})
}

func TestAWaitEndsWhenItIsOver(t *testing.T) {
	play(t, func(s *scene) {
		defer s.released(s.granted(lock.Acquire{TTL: time.Hour}))
		begun := time.Now()
		_, err := guard.Acquire(s.Context(), s.line, name, guard.Options{Wait: 2 * time.Minute})
		s.is(err, lock.ErrHeld)
		if took := time.Since(begun); took < 2*time.Minute-time.Millisecond || took > 2*time.Minute+time.Second || s.now().Waiters != 0 {
			s.Errorf("it waited for %v, and %d wait now", took, s.now().Waiters)
		}
	})
}

func TestAnAnswerThatIsLostCostsNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.line.fail(fault{deaf: true})
		time.AfterFunc(5*time.Second, func() { s.line.fail(fault{}) })
		l, err := guard.Acquire(s.Context(), s.line, name, guard.Options{Retry: time.Minute})
		s.must(err)
		s.must(l.Err())
		s.must(l.Release(s.Context()))
		s.happened(lock.Granted, lock.Released)
	})
}

func TestALeaseThatEndedUnheardIsNotTakenForOurs(t *testing.T) {
	play(t, func(s *scene) {
		s.line.fail(fault{deaf: true})
		time.AfterFunc(5*time.Second, func() { s.line.fail(fault{}) })
		l, err := guard.Acquire(s.Context(), s.line, name, guard.Options{TTL: time.Second, Retry: time.Minute})
		s.must(err)
		s.must(l.Release(s.Context()))
		s.happened(lock.Granted, lock.Expired, lock.Granted, lock.Released)
	})
}

func TestAGrantThatWasLongOnItsWayIsRenewedFirst(t *testing.T) {
	play(t, func(s *scene) {
		s.line.fail(fault{slow: 5 * time.Second})
		time.AfterFunc(time.Second, func() { s.line.fail(fault{}) })
		l, err := guard.Acquire(s.Context(), s.line, name, guard.Options{})
		s.must(err)
		if n := len(s.line.made("renew")); n != 1 {
			s.Errorf("%d renewals before anybody was told", n)
		}
		if left := time.Until(l.Deadline()); (left - ttl*9/10).Abs() > time.Millisecond {
			s.Errorf("there are %v left", left)
		}
		s.must(l.Release(s.Context()))
	})
}

func TestAServiceThatIsAwayIsTriedForAWhile(t *testing.T) {
	for what, retry := range map[string]time.Duration{"as usual": 0, "for long": time.Minute, "not at all": -1} {
		t.Run(what, func(t *testing.T) {
			play(t, func(s *scene) {
				s.line.fail(fault{refuses: true})
				begun := time.Now()
				told := 0
				_, err := guard.Acquire(s.Context(), s.line, name, guard.Options{Retry: retry, OnRetry: func(err error) {
					s.is(err, lock.ErrUnavailable)
					told++
				}})
				s.is(err, lock.ErrUnavailable)
				if sent := len(s.line.made("acquire")); told != sent-1 {
					s.Errorf("it was sent %d times, and %d failures were told of", sent, told)
				}
				want := map[time.Duration]time.Duration{0: guard.DefaultRetry, -1: 0}[retry]
				if want == 0 && retry > 0 {
					want = retry
				}
				if took := time.Since(begun); took < want || took > want+3*time.Second {
					s.Errorf("it was tried for %v, want %v", took, want)
				}
			})
		})
	}
}

func TestWhoIsCancelledLeavesNothingBehind(t *testing.T) {
	for what, f := range map[string]fault{"in the queue": {}, "while answers are lost": {deaf: true}} {
		t.Run(what, func(t *testing.T) {
			play(t, func(s *scene) {
				other := s.granted(lock.Acquire{TTL: time.Hour})
				s.line.fail(f)
				ctx, cancel := context.WithCancel(s.Context())
				time.AfterFunc(3*time.Second, func() { s.line.fail(fault{}); cancel() })
				_, err := guard.Acquire(ctx, s.line, name, guard.Options{Wait: guard.Forever})
				s.is(err, context.Canceled)
				s.released(other)
				if now := s.now(); now.State != lock.Free || now.Waiters != 0 {
					s.Errorf("the lock is %+v", now)
				}
			})
		})
	}
}

func TestATryWhoseAnswerNeverCameIsTakenBack(t *testing.T) {
	play(t, func(s *scene) {
		s.line.fail(fault{deaf: true})
		ctx, cancel := context.WithCancel(s.Context())
		time.AfterFunc(3*time.Second, func() { s.line.fail(fault{}); cancel() })
		_, err := guard.Acquire(ctx, s.line, name, guard.Options{})
		s.is(err, context.Canceled)
		s.happened(lock.Granted, lock.Released)
	})
}

func TestOptionsThatDoNotGoTogetherAreRefused(t *testing.T) {
	for what, o := range map[string]guard.Options{
		"a margin of more than a third": {TTL: 9 * time.Second, Margin: 4 * time.Second},
		"a negative margin":             {Margin: -1},
		"a TTL that is too short":       {TTL: time.Millisecond},
		"a TTL that is too long":        {TTL: 48 * time.Hour},
		"a negative wait":               {Wait: -1},
		"a capacity without permits":    {Capacity: 3},
		"no JSON":                       {Metadata: []byte("[")},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(s *scene) {
				_, err := guard.Acquire(s.Context(), s.line, name, o)
				s.is(err, lock.ErrInvalid)
				s.happened()
			})
		})
	}
}

func TestALeaseThatIsSoughtIsLeftToTheCaller(t *testing.T) {
	play(t, func(s *scene) {
		o := guard.Options{LeaseID: lock.LeaseID(uuid.New())}
		first, err := guard.AcquireUnmanaged(s.Context(), s.line, name, o)
		s.must(err)
		again, err := guard.AcquireUnmanaged(s.Context(), s.line, name, o)
		s.must(err)
		if first.Token != again.Token || !again.Replayed {
			s.Errorf("the same lease_id was granted %d, then %d", first.Token, again.Token)
		}
		time.Sleep(ttl)
		_, err = guard.AcquireUnmanaged(s.Context(), s.line, name, o)
		s.is(err, lock.ErrLeaseLost)
		s.happened(lock.Granted, lock.Expired)
	})
}

func TestTwoWhoWaitWithOneLeaseIDDoNotChaseEachOther(t *testing.T) {
	play(t, func(s *scene) {
		defer s.released(s.granted(lock.Acquire{TTL: time.Hour}))
		o := guard.Options{LeaseID: lock.LeaseID(uuid.New()), Holder: "both", Wait: 5 * time.Minute}
		ended := make(chan error, 2)
		wait := func() {
			_, err := guard.Acquire(s.Context(), s.line, name, o)
			ended <- err
		}
		go wait()
		synctest.Wait()
		go wait()
		s.is(<-ended, lock.ErrHeld) // the second has the place now
		s.is(<-ended, lock.ErrHeld)
		if calls := len(s.line.made("acquire")); calls > 20 {
			s.Errorf("five minutes were %d calls", calls)
		}
	})
}
