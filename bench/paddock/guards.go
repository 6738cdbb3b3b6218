package paddock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// Guards is Paddock through the Go SDK's guards, each of which keeps a lease alive. All share one
// client.
type Guards struct{ *SDK }

// Client returns a system.SelfRenewing client.
func (g Guards) Client(ctx context.Context) (system.Client, error) {
	c, err := g.SDK.Client(ctx)
	if err != nil {
		return nil, err
	}
	return guardClient{timedService{c.(sdkClient).locks, make(chan time.Duration, renewalBuffer)}}, nil
}

// renewalBuffer is the number of renewals that are kept until they are read; more are dropped.
const renewalBuffer = 10_000

type guardClient struct{ locks timedService }

// Acquire acquires a lock with a guard that keeps it.
func (k guardClient) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	o := guard.Options{Holder: holder, TTL: ttlMs * time.Millisecond}
	if wait {
		o.Wait = guard.Forever
	}
	lease, err := guard.Acquire(ctx, k.locks, name, o)
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, system.ErrHeld
	case err != nil:
		return nil, fmt.Errorf("acquiring %s: %w", name, err)
	}
	return guardLease{lease}, nil
}

// Renewed implements system.SelfRenewing.
func (k guardClient) Renewed() <-chan time.Duration { return k.locks.renewed }

// Close does nothing, because the client is shared.
func (k guardClient) Close() error { return nil }

// A timedService reports the duration of each renewal.
type timedService struct {
	paddock.Service
	renewed chan time.Duration
}

func (w timedService) Renew(ctx context.Context, n lock.Renew) (lock.Grant, error) {
	began := time.Now()
	grant, err := w.Service.Renew(ctx, n)
	if err == nil {
		select {
		case w.renewed <- time.Since(began):
		default:
		}
	}
	return grant, err
}

type guardLease struct{ *guard.Lease }

// Token returns the fencing token.
func (g guardLease) Token() int64 { return int64(g.Lease.Token()) }

// Renew is not supported, because the guard renews the lease.
func (g guardLease) Renew(context.Context) error { return system.ErrUnsupported }
