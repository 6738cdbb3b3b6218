package paddock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// SDK is Paddock through the Go SDK. All goroutines share one client.
type SDK struct {
	*Deployment
	SystemName, SystemTitle string // results of Name and Title

	mu     sync.Mutex
	shared *client.Client
}

// Name implements system.System.
func (s *SDK) Name() string { return s.SystemName }

// Title implements system.System.
func (s *SDK) Title() string { return s.SystemTitle }

// Start starts the deployment, unless another system has started it.
func (s *SDK) Start(ctx context.Context, dir string) error { return s.start(ctx, dir) }

// Stop stops the deployment, unless another system still uses it.
func (s *SDK) Stop() error {
	s.shared = nil
	return s.stop()
}

// Client returns the shared client.
func (s *SDK) Client(context.Context) (system.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		c, err := client.New(client.Options{BaseURL: "http://" + s.address()})
		if err != nil {
			return nil, err
		}
		s.shared = c
	}
	return sdkClient{s.shared}, nil
}

type sdkClient struct{ locks paddock.Service }

// Acquire implements system.Client.
func (c sdkClient) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	ask := lock.Acquire{Locks: lock.One(name), Holder: holder, TTL: ttlMs * time.Millisecond}
	if wait {
		ask.Wait = waitMs * time.Millisecond
	}
	for {
		grant, err := c.locks.Acquire(ctx, ask)
		switch {
		case err == nil:
			return sdkLease{c.locks, grant}, nil
		case !errors.Is(err, lock.ErrHeld):
			return nil, fmt.Errorf("acquiring %s: %w", name, err)
		case !wait:
			return nil, system.ErrHeld
		}
	}
}

// Close does nothing, because the client is shared.
func (c sdkClient) Close() error { return nil }

type sdkLease struct {
	locks paddock.Service
	grant lock.Grant
}

// Token returns the fencing token.
func (l sdkLease) Token() int64 { return int64(l.grant.Token) }

// Renew moves the end of the lease.
func (l sdkLease) Renew(ctx context.Context) error {
	_, err := l.locks.Renew(ctx, lock.Renew{Locks: []string{l.grant.Name}, LeaseID: l.grant.ID})
	return err
}

// Release ends the lease.
func (l sdkLease) Release(ctx context.Context) error {
	return l.locks.Release(ctx, lock.Release{Locks: []string{l.grant.Name}, LeaseID: l.grant.ID})
}
