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

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/testmain"
	"github.com/paddock-lock/paddock/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testmain.M{M: m}) }

const (
	name = "jobs:nightly"
	ttl  = 30 * time.Second
)

// A fixture is a service, and a faulty connection to it for the guard under test.
type fixture struct {
	*testing.T
	locks   paddock.Service // without faults, for other clients
	service *faultyService
	states  stateLog
}

// withFixture runs a test with a fixture in a synctest bubble.
func withFixture(t *testing.T, test func(*fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := memlock.New().Replica(1)
		test(&fixture{T: t, locks: locks, service: &faultyService{Service: locks}})
	})
}

// A stateLog records the calls of OnState.
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

// options sets OnState.
func (s *fixture) options(o guard.Options) guard.Options {
	o.OnState = s.states.add
	return o
}

// acquire acquires a lease over the faulty connection.
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

// grantOther grants the lock to another client.
func (s *fixture) grantOther(a lock.Acquire) lock.Grant {
	s.Helper()
	if a.LeaseID, a.Holder = lock.LeaseID(uuid.New()), "another client"; a.Locks == nil {
		a.Locks = lock.One(name)
	}
	g, err := s.locks.Acquire(s.Context(), a)
	s.must(err)
	return g
}

func (s *fixture) releaseOther(g lock.Grant) {
	s.Helper()
	s.must(s.locks.Release(s.Context(), lock.Release{Locks: []string{name}, LeaseID: g.ID}))
}

// lockNow returns the lock's current state.
func (s *fixture) lockNow() lock.Lock {
	s.Helper()
	l, err := s.locks.Lock(context.WithoutCancel(s.Context()), name)
	s.must(err)
	return l
}

// wantEvents checks the events of the lock.
func (s *fixture) wantEvents(want ...lock.Kind) {
	s.Helper()
	page, err := s.locks.Events(context.WithoutCancel(s.Context()), paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit})
	s.must(err)
	var got []lock.Kind
	for _, e := range page.Items {
		got = append(got, e.Kind)
	}
	if !slices.Equal(got, want) {
		s.Errorf("the events are %v, want %v", got, want)
	}
}

// wantStates checks the states that were passed to OnState.
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

// wantError stops the test unless err is want.
func (s *fixture) wantError(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("the error is %v, want %v", err, want)
	}
}
