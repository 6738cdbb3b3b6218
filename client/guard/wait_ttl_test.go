package guard_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// longestDeadGrant is how long a lock may be held for a waiter that was stopped.
const longestDeadGrant = 5 * time.Second

// A recorder records acquires and renewals. While frozen is not nil, the caller of an acquire is stopped: its grant
// comes when frozen is closed.
type recorder struct {
	paddock.Service
	mu       sync.Mutex
	acquires []lock.Acquire
	renewals []lock.Renew
	frozen   chan struct{}
}

func (r *recorder) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	r.mu.Lock()
	r.acquires = append(r.acquires, a)
	r.mu.Unlock()
	g, err := r.Service.Acquire(ctx, a)
	if err == nil && r.frozen != nil {
		<-r.frozen
	}
	return g, err
}

func (r *recorder) Renew(ctx context.Context, n lock.Renew) (lock.Grant, error) {
	r.mu.Lock()
	r.renewals = append(r.renewals, n)
	r.mu.Unlock()
	return r.Service.Renew(ctx, n)
}

// members are the locks of leases that the tests wait for.
var members = map[string][]lock.Member{
	"of one lock": {{Name: name}},
	"of a set":    {{Name: name}, {Name: "rates", Mode: lock.Shared}},
	"of a permit": {{Name: name, Mode: lock.Permit, Capacity: 1}},
}

func TestALockGrantedToAStoppedWaiterIsFreeWithinSeconds(t *testing.T) {
	for what, members := range members {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				other := s.grantOther(lock.Acquire{Locks: members[:1]})
				stopped := &recorder{Service: s.locks, frozen: make(chan struct{})}
				ctx, cancel := context.WithCancel(s.Context())
				over := make(chan error, 1)
				go func() {
					_, err := guard.AcquireAll(ctx, stopped, members, guard.Options{TTL: time.Hour, Wait: time.Minute})
					over <- err
				}()
				synctest.Wait()
				s.releaseOther(other)
				begun := time.Now()
				next, err := guard.AcquireAll(s.Context(), s.locks, members, guard.Options{Wait: 10 * time.Minute})
				s.must(err)
				if took := time.Since(begun); took > longestDeadGrant {
					s.Errorf("the lock was held for a stopped waiter for %v", took)
				}
				s.must(next.Release(s.Context()))
				cancel()
				close(stopped.frozen)
				s.wantError(<-over, context.Canceled)
			})
		})
	}
}

func TestALeaseThatWasWaitedForIsRenewedToItsWholeTTL(t *testing.T) {
	for what, members := range members {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				other := s.grantOther(lock.Acquire{Locks: members[:1]})
				calls := &recorder{Service: s.locks}
				time.AfterFunc(time.Second, func() { s.releaseOther(other) })
				l, err := guard.AcquireAll(s.Context(), calls, members, guard.Options{TTL: time.Hour, Wait: time.Minute})
				s.must(err)
				if n := len(calls.renewals); n != 1 || calls.renewals[0].TTL != time.Hour {
					s.Fatalf("the renewals before Acquire returned are %+v", calls.renewals)
				}
				if left := time.Until(l.Deadline()); left < time.Hour-guard.MaxDefaultMargin {
					s.Errorf("%v are left", left)
				}
				s.must(l.Release(s.Context()))
			})
		})
	}
}

func TestAFreeLockCostsOneCallAlsoWithAWait(t *testing.T) {
	withFixture(t, func(s *fixture) {
		calls := &recorder{Service: s.locks}
		l, err := guard.Acquire(s.Context(), calls, name, guard.Options{TTL: time.Hour, Wait: time.Minute})
		s.must(err)
		if len(calls.acquires) != 1 || calls.acquires[0].TTL != time.Hour || len(calls.renewals) != 0 {
			s.Errorf("the calls are %+v, %+v", calls.acquires, calls.renewals)
		}
		s.must(l.Release(s.Context()))
	})
}

func TestAnUnmanagedLeaseThatWasWaitedForHasItsWholeTTL(t *testing.T) {
	withFixture(t, func(s *fixture) {
		other := s.grantOther(lock.Acquire{})
		time.AfterFunc(time.Second, func() { s.releaseOther(other) })
		o := guard.Options{TTL: time.Hour, Wait: time.Minute, LeaseID: lock.LeaseID(uuid.New())}
		g, err := guard.AcquireUnmanaged(s.Context(), s.locks, name, o)
		s.must(err)
		if left := time.Until(g.Until); g.TTL != time.Hour || left < time.Hour {
			s.Errorf("the TTL is %v, %v are left", g.TTL, left)
		}
	})
}

// A longTTLService refuses TTLs of less than a minute, as a service with --min-ttl does.
type longTTLService struct{ paddock.Service }

func (l longTTLService) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if a.TTL < time.Minute {
		return lock.Grant{}, lock.Invalid("ttl_ms", "is too short")
	}
	return l.Service.Acquire(ctx, a)
}

func TestAServiceThatRefusesShortTTLsIsAskedForTheWhole(t *testing.T) {
	withFixture(t, func(s *fixture) {
		other := s.grantOther(lock.Acquire{TTL: time.Hour})
		time.AfterFunc(time.Second, func() { s.releaseOther(other) })
		l, err := guard.Acquire(s.Context(), longTTLService{s.locks}, name, guard.Options{TTL: time.Hour, Wait: 2 * time.Minute})
		s.must(err)
		s.must(l.Release(s.Context()))
	})
}
