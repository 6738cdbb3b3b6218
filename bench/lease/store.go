package lease

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// TTL is how long a lease lives that nobody renews, in all systems that have such a thing.
const TTL = 30 * time.Second

// ErrLost says that a lease is over.
var ErrLost = errors.New("the lease is over")

// A Grant is what a store says of a lease that it gave out.
type Grant struct {
	ID    string // proves that the lease is ours
	Token int64
}

// A Store keeps leases by name.
type Store interface {
	// Acquire takes a lease of TTL. If somebody else has one it waits, or returns system.ErrHeld.
	Acquire(ctx context.Context, name string, wait bool) (Grant, error)
	// Renew has it live another TTL, or returns ErrLost.
	Renew(ctx context.Context, name, id string) error
	// Release ends it, or returns ErrLost.
	Release(ctx context.Context, name, id string) error
}

// A client is a system.Client over a store.
type client struct {
	store Store
	close func() error
}

// NewClient returns a client, whose Close calls the function.
func NewClient(store Store, closes func() error) system.Client {
	return client{store: store, close: closes}
}

func (c client) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	grant, err := c.store.Acquire(ctx, name, wait)
	if err != nil {
		return nil, err
	}
	return held{store: c.store, name: name, grant: grant}, nil
}

func (c client) Close() error { return c.close() }

// held is a system.Lease of a store.
type held struct {
	store Store
	name  string
	grant Grant
}

func (h held) Token() int64                      { return h.grant.Token }
func (h held) Renew(ctx context.Context) error   { return h.store.Renew(ctx, h.name, h.grant.ID) }
func (h held) Release(ctx context.Context) error { return h.store.Release(ctx, h.name, h.grant.ID) }
