package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// TestALostLeaseThatStaysIsNotReleased although its process is there again: the work was stopped half-way.
func TestALostLeaseThatStaysIsNotReleased(t *testing.T) {
	do := func(s *fixture, o guard.Options, work func(context.Context, *guard.Lease) error) error {
		return guard.Do(s.Context(), s.service, name, o, work)
	}
	for what, run := range map[string]func(*fixture, guard.Options, func(context.Context, *guard.Lease) error) error{
		"by Do": do,
		"by Once": func(s *fixture, o guard.Options, work func(context.Context, *guard.Lease) error) error {
			_, err := guard.Once(s.Context(), s.service, name, hourly, o, work)
			return err
		},
		"by its Release": func(s *fixture, o guard.Options, work func(context.Context, *guard.Lease) error) error {
			l, err := guard.Acquire(s.Context(), s.service, name, o)
			s.must(err)
			_ = work(s.Context(), l)
			return l.Release(s.Context())
		},
		"of several locks": func(s *fixture, o guard.Options, work func(context.Context, *guard.Lease) error) error {
			return guard.DoAll(s.Context(), s.service, []lock.Member{{Name: name}, {Name: "jobs:weekly"}}, o, work)
		},
	} {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				err := run(s, guard.Options{Stays: true, Grace: time.Second}, func(_ context.Context, l *guard.Lease) error {
					s.service.setFault(fault{refuse: true})
					<-l.Done()
					time.Sleep(ttl)
					s.service.setFault(fault{})
					return nil
				})
				if s.wantError(err, lock.ErrLeaseLost); !strings.Contains(err.Error(), "an operator has looked at the work") {
					s.Errorf("the loss says %v", err)
				}
				if l := s.lockNow(); l.State != lock.Suspect {
					s.Errorf("the lock is %s", l.State)
				}
				s.wantEvents(lock.Granted, lock.Suspected)
				s.revokeAll(name)
				s.must(do(s, guard.Options{}, func(context.Context, *guard.Lease) error { return nil }))
			})
		})
	}
}

// TestALeaseThatStaysIsReleasedWhenTheWorkHasEndedInTime also if it has failed.
func TestALeaseThatStaysIsReleasedWhenTheWorkHasEndedInTime(t *testing.T) {
	withFixture(t, func(s *fixture) {
		for _, want := range []error{nil, errWork} {
			err := guard.Do(s.Context(), s.service, name, guard.Options{Stays: true}, func(context.Context, *guard.Lease) error { return want })
			if !errors.Is(err, want) {
				s.Errorf("the error is %v, want %v", err, want)
			}
		}
		s.wantEvents(lock.Granted, lock.Released, lock.Granted, lock.Released)
	})
}

// TestASuspectLockIsWaitedForOnlyIfAsked, and is granted when an operator has revoked the lease.
func TestASuspectLockIsWaitedForOnlyIfAsked(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.grantOther(lock.Acquire{TTL: time.Minute, Stays: true})
		time.Sleep(time.Hour)
		began := time.Now()
		_, err := guard.Acquire(s.Context(), s.service, name, guard.Options{})
		if took := time.Since(began); took != 0 {
			s.Errorf("refused after %v", took)
		}
		if s.wantError(err, lock.ErrHeld); !lockError(s, err).Suspect || !strings.Contains(err.Error(), `"another client" holds the lock and has not renewed it in time, so it is suspect`) {
			s.Errorf("the refusal says %v", err)
		}
		time.AfterFunc(time.Hour, func() { s.revokeAll(name) })
		began = time.Now()
		s.must(s.acquire(guard.Options{Wait: guard.Forever}).Release(s.Context()))
		if took := time.Since(began); took < time.Hour || took > time.Hour+time.Second {
			s.Errorf("granted after %v", took)
		}
	})
}

// TestTheNextProcessGoesOnWithASuspectLease that it finds in the file: the lock is held again, under the same token.
func TestTheNextProcessGoesOnWithASuspectLease(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g, file, err := s.before(lock.Acquire{TTL: time.Minute, Stays: true})
		s.must(err)
		time.Sleep(time.Hour)
		if l := s.lockNow(); l.State != lock.Suspect {
			s.Errorf("the lock is %s", l.State)
		}
		next := s.acquire(guard.Options{LeaseIDFile: file, Stays: true})
		if l := s.lockNow(); l.State != lock.Held || next.Token() != g.Token || next.Err() != nil {
			s.Errorf("the lock is %s, and the token %d, was %d", l.State, next.Token(), g.Token)
		}
	})
}
