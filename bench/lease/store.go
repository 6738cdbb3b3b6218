package lease

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// TTL is the TTL of leases in all systems that have one.
const TTL = 30 * time.Second

// ErrLost is returned for a lease that has ended.
var ErrLost = errors.New("the lease has ended")

// A Grant describes a granted lease.
type Grant struct {
	ID    string // secret that identifies the holder
	Token int64
}

// A Store keeps leases by name.
type Store interface {
	// Acquire acquires a lease of TTL. If the lock is held, it waits or returns system.ErrHeld.
	Acquire(ctx context.Context, name string, wait bool) (Grant, error)
	// Renew extends the lease to another TTL, or returns ErrLost.
	Renew(ctx context.Context, name, id string) error
	// Release ends the lease, or returns ErrLost.
	Release(ctx context.Context, name, id string) error
}

// A client is a system.Client of a store.
type client struct {
	store Store
	close func() error
}

// NewClient returns a client of the store whose Close calls closes.
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

// held is a system.Lease in a store.
type held struct {
	store Store
	name  string
	grant Grant
}

func (h held) Token() int64                      { return h.grant.Token }
func (h held) Renew(ctx context.Context) error   { return h.store.Renew(ctx, h.name, h.grant.ID) }
func (h held) Release(ctx context.Context) error { return h.store.Release(ctx, h.name, h.grant.ID) }
