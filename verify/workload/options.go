package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// Defaults of Options.
const (
	DefaultClients       = 32
	DefaultLocks         = 16
	DefaultTTL           = time.Second
	DefaultTurnsPerName  = 500
	DefaultOpposite      = 50
	DefaultRetryFor      = 15 * time.Second
	DefaultAnswerTimeout = 5 * time.Second
)

// A Replica is one address of the service.
type Replica struct {
	Via   string // name in the record
	Locks paddock.Service
	// Stream opens a stream of events; nil if streams are not available. See StreamOf.
	Stream func(context.Context, paddock.EventQuery) (Stream, error)
}

// Options of a run. Services and Prefix are required. The zero value is good for the rest, but such a
// run goes on until its context ends.
type Options struct {
	Services []Replica
	// Prefix begins the names of all locks and fenced keys, and each holder's text. Each run needs its own.
	Prefix string
	// Clients is the number of concurrent clients; zero: 32.
	Clients int
	// Locks is the number of locks in use at a time; zero: 16.
	Locks int
	// Operations is the approximate number of calls, For the length of the run; zero: unlimited.
	Operations int
	For        time.Duration
	// Seed determines the plans of the clients.
	Seed uint64
	// TTL is the mean TTL of leases; each is 50 % to 150 % of it. Zero: one second.
	TTL time.Duration
	// NoGrace requests no grace, for a service that does not allow any.
	NoGrace bool
	// NeverCancel lets clients wait until they are granted the lock: none cancels a wait or keeps a place
	// without a call, so no waiter may be overtaken.
	NeverCancel bool
	// AbandonLostWaits is NeverCancel for clients that never retry a wait whose answer was lost, like
	// clients that die with their replica. They do not revoke leases: a revocation would withdraw unclaimed grants
	// together with the places of such clients.
	AbandonLostWaits bool
	// TurnsPerName is after how many turns a lock's name is replaced; zero: 500.
	TurnsPerName int
	// Opposite is of how many turns one acquires two locks, one after the other, which other clients acquire in the
	// opposite order; zero: DefaultOpposite.
	Opposite int
	// NoRevoke lets clients revoke nothing, for an API key without the role admin.
	NoRevoke bool
	// Tree declares a tree, in which one of five turns acquires a lock. Remove it with RemoveTree.
	Tree bool
	// Policy adds an operator, who freezes locks and changes the rule of a semaphore. Remove the rule with RemoveRule.
	Policy bool
	// Hold lets some leases stay: one that is not renewed is suspect until an operator of the run revokes it. The service must
	// not forget leases, see lock.Acquire.Stays.
	Hold bool
	// RetryFor is how long a call with an unknown outcome is retried; zero: 15 s.
	RetryFor time.Duration
	// AnswerTimeout is how long a call may take, besides its wait, before it is cancelled; zero: 5 s.
	AnswerTimeout time.Duration
	// Subscribers adds subscribers: a stream and a poller for each service, and blocking reads.
	Subscribers bool
	// Lulls, if not nil, starts a lull with each value: for 400 ms all clients only try to acquire a lock
	// that is held.
	Lulls <-chan time.Time
}

// MaxTTL is the greatest Options.TTL.
const MaxTTL = lock.MaxTTL / 2

// maxPrefix leaves room for the rest of a name.
const maxPrefix = lock.MaxNameLength - 50

func (o Options) resolve() (Options, error) {
	o.Clients, o.Locks = cmp.Or(o.Clients, DefaultClients), cmp.Or(o.Locks, DefaultLocks)
	o.TTL, o.TurnsPerName = cmp.Or(o.TTL, DefaultTTL), cmp.Or(o.TurnsPerName, DefaultTurnsPerName)
	o.Opposite = cmp.Or(o.Opposite, DefaultOpposite)
	o.RetryFor, o.AnswerTimeout = cmp.Or(o.RetryFor, DefaultRetryFor), cmp.Or(o.AnswerTimeout, DefaultAnswerTimeout)
	switch {
	case len(o.Services) == 0:
		return o, errors.New("workload: no service is given")
	case lock.CheckName(o.Prefix) != nil || len(o.Prefix) > maxPrefix:
		return o, fmt.Errorf("workload: the prefix %q is invalid; give 1 to %d characters that are valid in names",
			o.Prefix, maxPrefix)
	case min(o.Clients, o.Locks, o.TurnsPerName, o.Opposite) < 1 || o.Operations < 0:
		return o, errors.New(
			"workload: give at least one client, one lock and one turn per name, and no negative number of operations")
	case o.TTL < lock.MinTTL || o.TTL > MaxTTL:
		return o, fmt.Errorf("workload: the TTL is %v; give %v to %v", o.TTL, lock.MinTTL, MaxTTL)
	case min(o.For, o.RetryFor, o.AnswerTimeout) < 0:
		return o, errors.New("workload: For, RetryFor and AnswerTimeout must not be negative")
	}
	return o, nil
}
