package access

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/paddock-lock/paddock/lock"
)

// The default limits of Attempts.
const (
	DefaultFailuresPerMinute = 10
	DefaultMaxAddresses      = 10_000
)

// Attempts limits failed authentication attempts per address. All addresses of an IPv6 /64 count as one, because one
// customer commonly has a whole /64. It is safe for concurrent use.
type Attempts struct {
	perMinute    int
	maxAddresses int

	mu        sync.Mutex
	byAddress map[netip.Prefix]*list.Element // of *addressFailures
	byRecency *list.List                     // the latest failure first
}

type addressFailures struct {
	from    netip.Prefix
	limiter *rate.Limiter
}

// NewAttempts returns Attempts that allow perMinute failures at once, and perMinute in each later minute. It remembers
// at most maxAddresses addresses, and drops the one that failed longest ago. Zero values mean DefaultFailuresPerMinute
// and DefaultMaxAddresses.
func NewAttempts(perMinute, maxAddresses int) *Attempts {
	if perMinute <= 0 {
		perMinute = DefaultFailuresPerMinute
	}
	if maxAddresses <= 0 {
		maxAddresses = DefaultMaxAddresses
	}
	return &Attempts{
		perMinute: perMinute, maxAddresses: maxAddresses,
		byAddress: map[netip.Prefix]*list.Element{}, byRecency: list.New(),
	}
}

// CountFailure counts a failure. It returns ErrRateLimited if there were too many before.
func (a *Attempts) CountFailure(ip netip.Addr) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.failuresFrom(network(ip)); !f.limiter.Allow() {
		return a.errTooMany(f)
	}
	return nil
}

// failuresFrom returns the address's failures and marks them as the most recent. The caller holds mu.
func (a *Attempts) failuresFrom(from netip.Prefix) *addressFailures {
	if e, known := a.byAddress[from]; known {
		a.byRecency.MoveToFront(e)
		return e.Value.(*addressFailures)
	}
	if a.byRecency.Len() >= a.maxAddresses {
		oldest := a.byRecency.Back()
		delete(a.byAddress, a.byRecency.Remove(oldest).(*addressFailures).from)
	}
	limiter := rate.NewLimiter(rate.Every(time.Minute/time.Duration(a.perMinute)), a.perMinute)
	f := &addressFailures{from: from, limiter: limiter}
	a.byAddress[from] = a.byRecency.PushFront(f)
	return f
}

func (a *Attempts) errTooMany(f *addressFailures) error {
	missing := 1 - f.limiter.Tokens()
	return &lock.Error{Code: lock.ErrRateLimited,
		RetryAfter: time.Duration(missing * float64(time.Minute) / float64(a.perMinute)),
		Detail:     "Too many failed API key attempts from your address. Fix the key and retry after Retry-After."}
}

// network returns the network of ip that counts as one address: an IPv4 address or an IPv6 /64.
func network(ip netip.Addr) netip.Prefix {
	bits := 64
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 32
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // ip is invalid
	}
	return p
}
