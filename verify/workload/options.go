package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// What a run is unless Options say otherwise.
const (
	DefaultClients       = 32
	DefaultLocks         = 16
	DefaultTTL           = time.Second
	DefaultTurnsPerName  = 500
	DefaultRetryFor      = 15 * time.Second
	DefaultAnswerTimeout = 5 * time.Second
)

// A Replica is one way to the service.
type Replica struct {
	Via   string // what to call it
	Locks lock.Service
	// Stream opens a stream of events; nil where there are none. See StreamOf.
	Stream func(context.Context, lock.EventQuery) (Stream, error)
}

// Options of a run. It needs services and a prefix; the zero value is good for the
// rest, but goes on until its context ends.
type Options struct {
	Services []Replica
	// Prefix begins all names, those of locks and those of what is written, and the
	// text of each holder. Every run needs another.
	Prefix string
	// Clients is how many there are, zero: 32.
	Clients int
	// Locks is how many there are at a time, zero: 16.
	Locks int
	// Operations is how many calls to make, about; zero: as many as come. For is how
	// long to go on; zero: no bound.
	Operations int
	For        time.Duration
	// Seed is what the intentions of the clients are drawn from.
	Seed uint64
	// TTL is that of leases, give or take a half. Zero: a second.
	TTL time.Duration
	// NoGrace is for a service that allows none.
	NoGrace bool
	// NeverCancel has clients wait until they are served: none goes away, or keeps a place
	// at which no call waits, so that nobody may be passed over.
	NeverCancel bool
	// AbandonLostWaits has clients wait as the orderly do, and never come back to a wait whose answer was
	// lost, as clients do that end together with their replica. They revoke nothing, which would
	// take the places of such clients away together with grants that nobody fetched.
	AbandonLostWaits bool
	// TurnsPerName is after how many a lock's name is given up for a new one; zero: 500.
	TurnsPerName int
	// RetryFor is for how long a call is sent again while nobody knows what became of
	// it; zero: 15 s.
	RetryFor time.Duration
	// AnswerTimeout is how long a call may take, besides its wait, before its answer is given
	// up; zero: 5 s.
	AnswerTimeout time.Duration
	// Subscribers adds subscribers to the clients: a stream and a poller for each service,
	// and blocking reads.
	Subscribers bool
	// Lulls, if not nil, begins a lull with each value that it has: for 400 ms all clients
	// do nothing but try to acquire a lock that is held.
	Lulls <-chan time.Time
}

// MaxTTL is the greatest TTL of Options.
const MaxTTL = lock.MaxTTL / 2

// maxPrefix leaves room for what follows a prefix in names.
const maxPrefix = lock.MaxNameLength - 50

func (o Options) resolve() (Options, error) {
	o.Clients, o.Locks = cmp.Or(o.Clients, DefaultClients), cmp.Or(o.Locks, DefaultLocks)
	o.TTL, o.TurnsPerName = cmp.Or(o.TTL, DefaultTTL), cmp.Or(o.TurnsPerName, DefaultTurnsPerName)
	o.RetryFor, o.AnswerTimeout = cmp.Or(o.RetryFor, DefaultRetryFor), cmp.Or(o.AnswerTimeout, DefaultAnswerTimeout)
	switch {
	case len(o.Services) == 0:
		return o, errors.New("load: there is no service")
	case lock.CheckName(o.Prefix) != nil || len(o.Prefix) > maxPrefix:
		return o, fmt.Errorf("load: the prefix %q cannot begin names; give 1 to %d of the characters that those may have", o.Prefix, maxPrefix)
	case min(o.Clients, o.Locks, o.TurnsPerName) < 1 || o.Operations < 0:
		return o, errors.New("load: there must be at least one client, one lock and one turn, and no less than no operations")
	case o.TTL < lock.MinTTL || o.TTL > MaxTTL:
		return o, fmt.Errorf("load: the TTL is %v; give %v to %v", o.TTL, lock.MinTTL, MaxTTL)
	case min(o.For, o.RetryFor, o.AnswerTimeout) < 0:
		return o, errors.New("load: no time can be below zero")
	}
	return o, nil
}
