package lock

import (
	"cmp"
	"fmt"
	"time"
)

// The widest bounds of durations. Those of the TTL and the grace can be narrowed with Bounds.
const (
	MinTTL   = 100 * time.Millisecond
	MaxTTL   = 24 * time.Hour
	MaxGrace = time.Minute
	MaxHold  = 366 * 24 * time.Hour
	// DefaultTTL is the TTL of an Acquire that gives none.
	DefaultTTL = 30 * time.Second
	// MaxWait is the longest wait of one call. It is short because load balancers close idle connections after a
	// minute.
	MaxWait = 50 * time.Second
)

// Timeouts of waiting.
const (
	// PlaceRetention is how long the place of a detached waiter is kept at least, and after a whole wait with KeepPlace.
	PlaceRetention = 10 * time.Second
	// ReplicaTTL is how long a replica counts as alive after its last heartbeat.
	ReplicaTTL = 2 * time.Second
	// ClaimTimeout is how long a grant to a waiter of another replica stays unclaimed before it is withdrawn. The TTL
	// starts when it is claimed.
	ClaimTimeout = 2 * time.Second
)

// Bounds of a lock.
const (
	// MaxHolders is the maximum number of leases of a lock.
	MaxHolders = 1000
	// DefaultMaxWaiters is the maximum number of waiters of a lock, unless the Bounds say otherwise. The place of a
	// detached waiter counts for PlaceRetention.
	DefaultMaxWaiters = 1000
	// DefaultMaxSessionLeases is the maximum number of leases and places of a session, unless the Bounds say
	// otherwise.
	DefaultMaxSessionLeases = 100_000
)

// Bounds of text and metadata.
const (
	// MaxNameLength is the maximum length of a lock's name and of a fenced key, in bytes.
	MaxNameLength = 200
	// MaxHolderLength is the maximum length of a holder, in characters.
	MaxHolderLength = 200
	// MaxReasonLength is the maximum length of the reason of a revocation, in characters.
	MaxReasonLength = 500
	// MaxWhereLength is the maximum length of the Where of a ReportStale, in characters. The longest key of a fenced
	// value, with the words before it, is shorter.
	MaxWhereLength = 250
	// MaxMetadataSize is the maximum size of a lease's metadata, in bytes of JSON.
	MaxMetadataSize = 4096
)

// Bounds are the limits of a deployment. The zero value allows the widest.
type Bounds struct {
	MinTTL     time.Duration // zero: the constant MinTTL
	MaxTTL     time.Duration // zero: the constant MaxTTL
	DefaultTTL time.Duration // zero: the constant DefaultTTL, or the nearest allowed value
	MaxGrace   time.Duration // zero: the constant MaxGrace; negative: no grace allowed
	MaxWaiters int           // of one lock; zero: DefaultMaxWaiters
	// MaxSessionLeases limits the leases and places of a session. Leases that are granted at the same time may
	// exceed it. Zero: DefaultMaxSessionLeases.
	MaxSessionLeases int
}

// Resolve returns b with its zero fields filled in, or an error that names the invalid limit.
func (b Bounds) Resolve() (Bounds, error) {
	b.MinTTL = cmp.Or(b.MinTTL, MinTTL)
	b.MaxTTL = cmp.Or(b.MaxTTL, MaxTTL)
	b.DefaultTTL = cmp.Or(b.DefaultTTL, min(max(DefaultTTL, b.MinTTL), b.MaxTTL))
	b.MaxGrace = max(cmp.Or(b.MaxGrace, MaxGrace), 0)
	b.MaxWaiters = cmp.Or(b.MaxWaiters, DefaultMaxWaiters)
	b.MaxSessionLeases = cmp.Or(b.MaxSessionLeases, DefaultMaxSessionLeases)
	switch {
	case b.MinTTL < MinTTL:
		return b, fmt.Errorf("the minimum TTL, %v, is below %v", b.MinTTL, MinTTL)
	case b.MaxTTL > MaxTTL:
		return b, fmt.Errorf("the maximum TTL, %v, is above %v", b.MaxTTL, MaxTTL)
	case b.MaxGrace > MaxGrace:
		return b, fmt.Errorf("the maximum grace, %v, is above %v", b.MaxGrace, MaxGrace)
	case b.MaxWaiters < 0:
		return b, fmt.Errorf("the maximum number of waiters of a lock, %d, is negative", b.MaxWaiters)
	case b.MaxSessionLeases < 0:
		return b, fmt.Errorf("the maximum number of leases of a session, %d, is negative", b.MaxSessionLeases)
	case b.DefaultTTL < b.MinTTL || b.DefaultTTL > b.MaxTTL:
		return b, fmt.Errorf("the default TTL, %v, is not between the minimum, %v, and the maximum, %v",
			b.DefaultTTL, b.MinTTL, b.MaxTTL)
	}
	return b, nil
}
