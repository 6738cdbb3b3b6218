package guard_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	name = "jobs:nightly"
	ttl  = 30 * time.Second
)

// A fixture is a service, and the line over which a guard reaches it.
type fixture struct {
	*testing.T
	locks   lock.Service // as others reach it
	service *faultyService
	states  stateLog
}

// withFixture runs a test on a clock of its own, which stands still while anybody works.
func withFixture(t *testing.T, test func(*fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := memlock.New().Replica(1)
		test(&fixture{T: t, locks: locks, service: &faultyService{Service: locks}})
	})
}

// stateLog are those that OnState was told of.
type stateLog struct {
	mu   sync.Mutex
	all  []guard.State
	errs []error
}

func (s *stateLog) add(state guard.State, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.errs = append(s.all, state), append(s.errs, err)
}

// options fills in who is told of states.
func (s *fixture) options(o guard.Options) guard.Options {
	o.OnState = s.states.add
	return o
}

// acquire returns a lease, got over the line.
func (s *fixture) acquire(o guard.Options) *guard.Lease {
	s.Helper()
	l, err := guard.Acquire(s.Context(), s.service, name, s.options(o))
	s.must(err)
	s.Cleanup(func() {
		s.service.setFault(fault{})
		if err := l.Release(s.Context()); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
			s.Error(err)
		}
	})
	return l
}

// grantOther has the service grant the lock to somebody else.
func (s *fixture) grantOther(a lock.Acquire) lock.Grant {
	s.Helper()
	a.Name, a.LeaseID, a.Holder = name, lock.LeaseID(uuid.New()), "somebody else"
	g, err := s.locks.Acquire(s.Context(), a)
	s.must(err)
	return g
}

func (s *fixture) releaseOther(g lock.Grant) {
	s.Helper()
	s.must(s.locks.Release(s.Context(), lock.Release{Name: name, LeaseID: g.ID}))
}

// lockNow returns the lock as the service sees it.
func (s *fixture) lockNow() lock.Lock {
	s.Helper()
	l, err := s.locks.Lock(context.WithoutCancel(s.Context()), name)
	s.must(err)
	return l
}

// wantEvents compares the events of the lock with those that there should be.
func (s *fixture) wantEvents(want ...lock.Kind) {
	s.Helper()
	page, err := s.locks.Events(context.WithoutCancel(s.Context()), lock.EventQuery{Name: name, Limit: lock.MaxLimit})
	s.must(err)
	var got []lock.Kind
	for _, e := range page.Items {
		got = append(got, e.Kind)
	}
	if !slices.Equal(got, want) {
		s.Errorf("what happened is %v, want %v", got, want)
	}
}

// wantStates compares the states that were told with those that there should be.
func (s *fixture) wantStates(want ...guard.State) {
	s.Helper()
	synctest.Wait()
	s.states.mu.Lock()
	defer s.states.mu.Unlock()
	if !slices.Equal(s.states.all, want) {
		s.Errorf("the states were %v, want %v", s.states.all, want)
	}
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// wantError ends the test unless err is what it should be.
func (s *fixture) wantError(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("the error is %v, want %v", err, want)
	}
}
