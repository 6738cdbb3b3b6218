package access

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/paddock-lock/paddock/lock"
)

// Limits are what each key may ask of one replica. The zero value limits nothing.
type Limits struct {
	// Rate is how many calls a second a key may make; zero: any number. Renew and
	// Release have a rate of their own, as high, so that who asks for too much does not
	// lose what it holds.
	Rate float64
	// Burst is how many calls may come at once after a time of silence; zero: as many as
	// Rate, and one at least.
	Burst int
	// Waiters is how many calls of a key may wait at once, in a queue or for something to
	// happen; zero: any number.
	Waiters int
}

// A usageMeter counts what one key asks for.
type usageMeter struct {
	limits  Limits
	calls   *rate.Limiter
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

// countCall lets one more call through, or refuses it with ErrRateLimited and when to come
// again. One asks at a time: a limiter that hears of instants in another order than they
// were counts some time twice.
func (m *usageMeter) countCall(k Key, keeps bool) error {
	limiter := m.calls
	if keeps {
		limiter = m.leaseCalls
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if limiter.AllowN(now, 1) {
		return nil
	}
	missing := (1 - limiter.TokensAt(now)) / float64(limiter.Limit())
	return &lock.Error{Code: lock.ErrRateLimited, RetryAfter: time.Duration(math.Ceil(missing * float64(time.Second))), Detail: fmt.Sprintf(
		"The API key %s makes more than %g calls a second. Slow down, and send the same call again after Retry-After.", k, m.limits.Rate)}
}

// startWaiting lets one more call wait, until the function that it returns is called, or refuses
// it with ErrTooManyWaiters.
func (m *usageMeter) startWaiting(k Key) (func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limits.Waiters > 0 && m.waiting >= m.limits.Waiters {
		return nil, &lock.Error{Code: lock.ErrTooManyWaiters, RetryAfter: time.Second, Detail: fmt.Sprintf(
			"%d calls of the API key %s wait here, as many as may. Send the same call again when others have been answered.", m.waiting, k)}
	}
	m.waiting++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waiting--
	}, nil
}
