package access

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/paddock-lock/paddock/lock"
)

// Limits are per key and per replica. The zero value limits nothing.
type Limits struct {
	// Rate is the maximum number of calls per second; zero: no limit. Renew and Release have a separate limit of the
	// same size, so that a client that makes too many other calls does not lose its leases.
	Rate float64
	// Burst is the maximum number of calls at once after a pause; zero: Rate, but at least one.
	Burst int
	// Waiters is the maximum number of calls that wait at once, for a lock or for events; zero: no limit.
	Waiters int
}

// A usageMeter counts the calls of one key.
type usageMeter struct {
	limits     Limits
	calls      *rate.Limiter
	leaseCalls *rate.Limiter // of Renew and Release

	mu      sync.Mutex
	waiting int
}

func newUsageMeter(l Limits) *usageMeter {
	limit, burst := rate.Limit(l.Rate), l.Burst
	if l.Rate <= 0 {
		limit = rate.Inf
	}
	if burst <= 0 {
		burst = max(int(l.Rate), 1)
	}
	return &usageMeter{limits: l, calls: rate.NewLimiter(limit, burst), leaseCalls: rate.NewLimiter(limit, burst)}
}

// countCall counts one call, or refuses it with ErrRateLimited and a RetryAfter. It holds the mutex because a
// limiter that gets times out of order counts some time twice.
func (m *usageMeter) countCall(k Key, keepsLease bool) error {
	limiter := m.calls
	if keepsLease {
		limiter = m.leaseCalls
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if limiter.AllowN(now, 1) {
		return nil
	}
	missing := (1 - limiter.TokensAt(now)) / float64(limiter.Limit())
	return &lock.Error{Code: lock.ErrRateLimited, RetryAfter: time.Duration(math.Ceil(missing * float64(time.Second))),
		Detail: fmt.Sprintf("The API key %s makes more than %g calls per second. "+
			"Slow down, and repeat the call after Retry-After.", k, m.limits.Rate)}
}

// startWaiting counts one waiting call until the returned function is called, or refuses it with ErrTooManyWaiters.
func (m *usageMeter) startWaiting(k Key) (stop func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limits.Waiters > 0 && m.waiting >= m.limits.Waiters {
		return nil, &lock.Error{Code: lock.ErrTooManyWaiters, RetryAfter: time.Second,
			Detail: fmt.Sprintf("The API key %s has %d waiting calls on this replica, which is the limit. "+
				"Repeat the call when one of them has ended.", k, m.waiting)}
	}
	m.waiting++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waiting--
	}, nil
}
