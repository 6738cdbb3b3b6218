package access

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/paddock-lock/paddock/lock"
)

// The limits of Attempts where they are not given.
const (
	DefaultAttempts      = 10
	DefaultAttemptsInAll = 10_000
)

// Attempts counts failed attempts to show a key, by the address they come from. An
// IPv6 address counts with its /64, which one customer commonly has whole. It is safe
// for concurrent use.
type Attempts struct {
	perMinute int
	maxAddresses      int

	mu     sync.Mutex
	known  map[netip.Prefix]*list.Element // of a visitor
	byRecency *list.List                     // those who failed last come first
}

type addressFailures struct {
	from  netip.Prefix
	fails *rate.Limiter
}

// NewAttempts returns Attempts that allow so many failures at once, and as many a minute from
// then on; it remembers so many addresses at most, and forgets those first that failed
// longest ago. Zero stands for UsualAttempts and UsualAttemptsFrom.
func NewAttempts(perMinute, from int) *Attempts {
	if perMinute <= 0 {
		perMinute = DefaultAttempts
	}
	if from <= 0 {
		from = DefaultAttemptsInAll
	}
	return &Attempts{perMinute: perMinute, maxAddresses: from, known: map[netip.Prefix]*list.Element{}, byRecency: list.New()}
}

// Failed counts one more failure, and returns ErrRateLimited if there were too many
// before it.
func (a *Attempts) Failed(ip netip.Addr) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.failuresFrom(network(ip)); !v.fails.Allow() {
		return a.errTooMany(v)
	}
	return nil
}

// failuresFrom returns who comes from there, as the latest. The caller holds mu.
func (a *Attempts) failuresFrom(from netip.Prefix) *addressFailures {
	if e, known := a.known[from]; known {
		a.byRecency.MoveToFront(e)
		return e.Value.(*addressFailures)
	}
	if a.byRecency.Len() >= a.maxAddresses {
		oldest := a.byRecency.Back()
		delete(a.known, a.byRecency.Remove(oldest).(*addressFailures).from)
	}
	v := &addressFailures{from: from, fails: rate.NewLimiter(rate.Every(time.Minute/time.Duration(a.perMinute)), a.perMinute)}
	a.known[from] = a.byRecency.PushFront(v)
	return v
}

func (a *Attempts) errTooMany(v *addressFailures) error {
	missing := 1 - v.fails.Tokens()
	return &lock.Error{Code: lock.ErrRateLimited, RetryAfter: time.Duration(missing * float64(time.Minute) / float64(a.perMinute)),
		Detail: "Too many API keys that are none came from your address. Mend the key, and try again after Retry-After."}
}

// network returns what counts as one address.
func network(ip netip.Addr) netip.Prefix {
	bits := 64
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 32
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // ip is no address
	}
	return p
}
