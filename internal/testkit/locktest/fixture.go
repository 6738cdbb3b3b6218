package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// longTTL is the TTL of leases that must not end during a test.
	longTTL = 10 * time.Minute
	// shortTTL is the TTL of leases that must end during a test.
	shortTTL = lock.MinTTL
	// mediumTTL is of sessions and waits that are to end. On a busy machine it takes seconds to queue up behind them.
	mediumTTL = 50 * shortTTL
	// tolerance is the accepted error of instants: durations travel in whole milliseconds, and clocks are adjusted.
	tolerance = 50 * time.Millisecond
)

// A fixture is one test with the service and a lock of its own.
type fixture struct {
	*testing.T
	replicas []paddock.Service
	ctx      context.Context // ends shortly before the test run is over
	name     string          // of the lock, and prefix of other names in the test: all are in one group
}

func newFixture(t *testing.T, ctx context.Context, replicas []paddock.Service) *fixture {
	return &fixture{T: t, replicas: replicas, ctx: ctx, name: "locktest-" + uuid.NewString() + ":own"}
}

// locks returns the service for one call: a random replica, as a load balancer would choose.
func (s *fixture) locks() paddock.Service { return s.replicas[rand.IntN(len(s.replicas))] }

// acquire acquires with the defaults of complete.
func (s *fixture) acquire(a lock.Acquire) (lock.Grant, error) {
	return s.locks().Acquire(s.ctx, s.complete(a))
}

// complete fills in the defaults: the fixture's lock alone, the holder "first", longTTL unless there
// is a session, and a new LeaseID.
func (s *fixture) complete(a lock.Acquire) lock.Acquire {
	a.Holder = cmp.Or(a.Holder, "first")
	if a.Locks == nil {
		a.Locks = lock.One(s.name)
	}
	if a.SessionID == (lock.SessionID{}) {
		a.TTL = cmp.Or(a.TTL, longTTL)
	}
	if a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID = newID()
	}
	return a
}

// mustAcquire acquires, and ends the test unless the lock is granted.
func (s *fixture) mustAcquire(a lock.Acquire) lock.Grant {
	s.Helper()
	g, err := s.acquire(a)
	s.must(err)
	return g
}

// renew renews the leases.
func (s *fixture) renew(g lock.Grant, ttl time.Duration) (lock.Grant, error) {
	return s.locks().Renew(s.ctx, lock.Renew{Locks: g.Requested(), LeaseID: g.ID, TTL: ttl})
}

// release releases the leases.
func (s *fixture) release(g lock.Grant) error {
	return s.locks().Release(s.ctx, lock.Release{Locks: g.Requested(), LeaseID: g.ID})
}

// as returns the fixture's lock in the mode.
func (s *fixture) as(m lock.Mode) []lock.Member { return []lock.Member{{Name: s.name, Mode: m}} }

// permit returns one of n permits of the fixture's lock.
func (s *fixture) permit(n int) []lock.Member {
	return []lock.Member{{Name: s.name, Mode: lock.Permit, Capacity: n}}
}

// namesOf returns the locks of a grant.
func namesOf(g lock.Grant) (names []string) {
	for _, l := range g.Leases {
		names = append(names, l.Name)
	}
	return names
}

// acquireAndRelease acquires and releases.
func (s *fixture) acquireAndRelease(a lock.Acquire) lock.Grant {
	s.Helper()
	g := s.mustAcquire(a)
	s.must(s.release(g))
	return g
}

// acquireAndExpire acquires and waits until the lock is free again.
func (s *fixture) acquireAndExpire(a lock.Acquire) lock.Grant {
	s.Helper()
	a.TTL = shortTTL
	g := s.mustAcquire(a)
	s.awaitState(g.Name, lock.Free)
	return g
}

// other returns the name of another lock of the test.
func (s *fixture) other(n int) string { return fmt.Sprintf("%s:%d", s.name, n) }

// pass lets a microsecond pass, the precision of instants: what happens in one instant has no order of time.
func (s *fixture) pass() { time.Sleep(time.Microsecond) }

// get returns the lock of that name.
func (s *fixture) get(name string) lock.Lock {
	s.Helper()
	l, err := s.locks().Lock(s.ctx, name)
	s.must(err)
	return l
}

// awaitState waits until the lock is in the state.
func (s *fixture) awaitState(name string, p lock.State) lock.Lock {
	s.Helper()
	var l lock.Lock
	s.eventually("the lock is "+string(p), func() bool {
		l = s.get(name)
		return l.State == p
	})
	return l
}

// eventually repeats so until it returns true, or the test run ends.
func (s *fixture) eventually(what string, so func() bool) {
	s.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-s.ctx.Done():
			s.Fatalf("the test run ended before: %s", what)
		}
	}
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Facts are the fields of a lock.Error. The type is no error, so that a test may ignore it.
type facts lock.Error

// expectError ends the test unless err is a refusal with that code, and returns its facts.
func (s *fixture) expectError(err error, code lock.Code) *facts {
	s.Helper()
	var e *lock.Error
	if !errors.Is(err, code) || !errors.As(err, &e) {
		s.Fatalf("the error is %v, want %s", err, code)
	}
	if e.Code != code || e.Detail == "" {
		s.Fatalf("the error is %#v, want the code %s and a detail", e, code)
	}
	return (*facts)(e)
}

// expectLost ends the test unless err is ErrLeaseLost with that kind of end, zero for an unknown lease.
func (s *fixture) expectLost(err error, how lock.Kind) *facts {
	s.Helper()
	e := s.expectError(err, lock.ErrLeaseLost)
	if e.Ended != how {
		s.Fatalf("the lease ended by %q, want %q: %v", e.Ended, how, err)
	}
	if e.EndedAt.IsZero() != (how == 0) {
		s.Errorf("the lease ended at %v, want an instant if and only if its end is known", e.EndedAt)
	}
	return e
}

// errOf returns the error of a call.
func errOf[T any](_ T, err error) error { return err }

// inBackground starts the call, and returns a function that waits for its result. It ends the test if the call fails.
func inBackground[T any](s *fixture, call func() (T, error)) (await func() T) {
	var result T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err = call()
	}()
	return func() T {
		s.Helper()
		select {
		case <-done:
		case <-s.ctx.Done():
			s.Fatal("a call never ended")
		}
		s.must(err)
		return result
	}
}

// isNear reports whether two instants of the database's clock are equal within the precision of the wire.
func isNear(a, b time.Time) bool { return a.Sub(b).Abs() <= time.Millisecond }

func newID() lock.LeaseID { return lock.LeaseID(uuid.New()) }
