package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

func TestRateOfAKeyIsLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSpy()
		locks := access.Guard(s, access.Limits{Rate: 2, Burst: 5})
		ctx, other := withKey(t, access.Admin), access.WithKey(t.Context(), access.Key{ID: "b2", Name: "other", Role: access.Read})
		look := func(ctx context.Context) error { return errOf(locks.Lock(ctx, "x")) }
		for range 5 {
			s.allowed(t, "Lock", look(ctx))
		}
		err := look(ctx)
		s.refused(t, "the sixth", err, lock.ErrRateLimited, "2 calls per second", `"ci" (a1)`)
		var e *lock.Error
		if !errors.As(err, &e) || e.RetryAfter != time.Second/2 {
			t.Errorf("retry after %v, want half a second", e.RetryAfter)
		}
		s.allowed(t, "Lock", look(other))
		s.allowed(t, "Lock", look(access.Continued(ctx)))
		time.Sleep(e.RetryAfter)
		s.allowed(t, "Lock", look(ctx))
		s.refused(t, "the next", look(ctx), lock.ErrRateLimited)
	})
}

// TestConcurrentCallsCountTowardsTheRate computes the limit from the time that the test took.
func TestConcurrentCallsCountTowardsTheRate(t *testing.T) {
	t.Parallel()
	const rate, burst = 100_000, 100
	locks := access.Guard(quietService{}, access.Limits{Rate: rate, Burst: burst})
	ctx := withKey(t, access.Read)
	var let, late atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range 200 {
		wg.Go(func() {
			for range 1000 {
				err := errOf(locks.Lock(ctx, "x"))
				var e *lock.Error
				switch {
				case err == nil:
					let.Add(1)
				case !errors.As(err, &e) || e.Code != lock.ErrRateLimited || e.RetryAfter <= 0:
					t.Error(err)
				case e.RetryAfter > time.Second/rate:
					late.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if most := burst + int64(rate*time.Since(began).Seconds()) + 1; let.Load() < burst || let.Load() > most || late.Load() > 0 {
		t.Errorf("%d calls were allowed, want at most %d; %d had a Retry-After that is too long", let.Load(), most, late.Load())
	}
}

// A quietService is a Service that answers Lock and records nothing.
type quietService struct{ paddock.Service }

func (quietService) Lock(context.Context, string) (lock.Lock, error) { return lock.Lock{}, nil }

func TestRefusedCallsCountTowardsTheRate(t *testing.T) {
	t.Parallel()
	s := newSpy()
	locks := access.Guard(s, access.Limits{Rate: 0.001})
	ctx := withKey(t, access.Read, "billing")
	s.refused(t, "the first", errOf(locks.Lock(ctx, "other")), lock.ErrNameNotAllowed)
	s.refused(t, "the second", errOf(locks.Lock(ctx, "billing")), lock.ErrRateLimited)
}

func TestRateLimitedClientCanStillRenew(t *testing.T) {
	t.Parallel()
	s := newSpy()
	locks := access.Guard(s, access.Limits{Rate: 0.001, Burst: 2})
	ctx := withKey(t, access.Lock)
	for range 2 {
		s.allowed(t, "Acquire", errOf(locks.Acquire(ctx, lock.Acquire{Locks: lock.One("x")})))
	}
	s.refused(t, "a third", errOf(locks.Acquire(ctx, lock.Acquire{Locks: lock.One("x")})), lock.ErrRateLimited)
	s.allowed(t, "Renew", errOf(locks.Renew(ctx, lock.Renew{Locks: []string{"x"}})))
	s.allowed(t, "Release", locks.Release(ctx, lock.Release{Locks: []string{"x"}}))
	s.refused(t, "a third renew or release", errOf(locks.Renew(ctx, lock.Renew{Locks: []string{"x"}})), lock.ErrRateLimited)
}

func TestWaitingCallsOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	for name, m := range methods {
		if m.wait == nil {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			s := newSpy()
			locks := access.Guard(s, access.Limits{Waiters: 3})
			ctx := withKey(t, access.Admin)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := m.wait(ctx, locks, "x"); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			for range 3 {
				<-s.asked
			}
			s.refused(t, name, m.wait(ctx, locks, "x"), lock.ErrTooManyWaiters, "3 waiting calls", `"ci" (a1)`)
			s.allowed(t, name, m.call(ctx, locks, "x"))
			other := access.WithKey(t.Context(), access.Key{ID: "b2", Name: "other", Role: access.Admin})
			s.allowed(t, name, m.wait(other, locks, "x"))
			wg.Wait()
			s.allowed(t, name, m.wait(ctx, locks, "x"))
		})
	}
}

func TestFailuresPerAddressAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := access.NewAttempts(0, 0)
		here, there := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		for i := range access.DefaultFailuresPerMinute {
			if err := errors.Join(a.Allow(here), a.CountFailure(here)); err != nil {
				t.Fatalf("the failure %d: %v", i+1, err)
			}
		}
		for _, err := range []error{a.CountFailure(here), a.Allow(here), a.Allow(netip.MustParseAddr("::ffff:192.0.2.1"))} {
			var e *lock.Error
			if !errors.As(err, &e) || e.Code != lock.ErrRateLimited || e.RetryAfter <= 0 || e.RetryAfter > 6*time.Second {
				t.Errorf("one more: %v", err)
			}
		}
		if err := errors.Join(a.Allow(there), a.CountFailure(there)); err != nil {
			t.Errorf("from elsewhere: %v", err)
		}
		time.Sleep(6 * time.Second)
		if err := errors.Join(a.Allow(here), a.CountFailure(here)); err != nil {
			t.Errorf("after six seconds: %v", err)
		}
	})
}

func TestAddressesOfOneNetworkCountAsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := access.NewAttempts(2, 0)
		for i := range 3 {
			err := a.CountFailure(netip.MustParseAddr(fmt.Sprintf("2001:db8::%x%%eth0", i)))
			if limited := errors.Is(err, lock.ErrRateLimited); limited != (i == 2) {
				t.Errorf("address %d: %v", i, err)
			}
		}
		if err := a.CountFailure(netip.MustParseAddr("2001:db8:0:1::1")); err != nil {
			t.Errorf("the next customer: %v", err)
		}
		none := netip.Addr{}
		if err := errors.Join(a.CountFailure(none), a.CountFailure(none)); err != nil || a.CountFailure(none) == nil {
			t.Errorf("an invalid address is limited: %v", err)
		}
	})
}

func TestOldestAddressIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := access.NewAttempts(1, 2)
		addr := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, i}) }
		for i := range byte(100) {
			if err := a.CountFailure(addr(i)); err != nil {
				t.Fatal(err)
			}
		}
		if a.Allow(addr(97)) != nil || a.Allow(addr(98)) == nil || a.Allow(addr(99)) == nil {
			t.Error("the two latest of a hundred addresses are not remembered")
		}
	})
}
