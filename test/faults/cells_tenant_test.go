package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// tenantTTL is the TTL of the leases that tenants keep, and tenantPause the time between two calls for each.
	tenantTTL, tenantPause = 20 * time.Second, time.Second
	// tenantAnswer is how long a call of a tenant may take.
	tenantAnswer = 15 * time.Second
	// keptLeases and keptSessions are how many leases a tenant keeps, and how many sessions, with a lease each.
	keptLeases, keptSessions = 8, 4
	// tenantUsers acquire and release locks in a loop.
	tenantUsers = 2
)

// A tenant uses the locks of one group all the time, at all replicas in turn: it keeps leases and sessions alive, and
// acquires and releases locks.
type tenant struct {
	group   string
	clients []*client.Client
	turn    atomic.Int64

	mu     sync.Mutex
	took   []time.Duration // of the calls that were answered with success, since the last call of take
	failed []error         // of the others
	lost   []error         // leases and sessions that were lost
}

// run uses the service until ctx ends.
func (n *tenant) run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range keptLeases {
		all.Go(func() { n.keepLease(ctx, i) })
	}
	for i := range keptSessions {
		all.Go(func() { n.keepSession(ctx, i) })
	}
	for i := range tenantUsers {
		all.Go(func() { n.use(ctx, i) })
	}
	all.Wait()
}

// take returns what was recorded since the last call of take.
func (n *tenant) take() (took []time.Duration, failed, lost []error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	took, failed, lost = n.took, n.failed, n.lost
	n.took, n.failed, n.lost = nil, nil, nil
	return took, failed, lost
}

// call makes a call at the next replica, and records its outcome.
func (n *tenant) call(ctx context.Context, do func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, tenantAnswer)
	defer cancel()
	began := time.Now()
	err := do(ctx, n.clients[int(n.turn.Add(1))%len(n.clients)])
	took := time.Since(began)
	if errors.Is(ctx.Err(), context.Canceled) {
		return err // the run is over
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
		n.took = append(n.took, took)
	case isLoss(err):
		n.lost = append(n.lost, fmt.Errorf("%s: %w", n.group, err))
	default:
		n.failed = append(n.failed, fmt.Errorf("%s after %v: %w", n.group, took.Truncate(time.Millisecond), err))
	}
	return err
}

// keepLease acquires a lease and renews it, and acquires another one when it is lost.
func (n *tenant) keepLease(ctx context.Context, i int) {
	a := lock.Acquire{Locks: lock.One(fmt.Sprintf("%s:kept:%d", n.group, i)), Holder: fmt.Sprint("keeper ", i), TTL: tenantTTL}
	for held := false; sleepFor(ctx, tenantPause); {
		if !held {
			a.LeaseID = lock.LeaseID(uuid.New())
			held = n.call(ctx, func(ctx context.Context, c *client.Client) error { _, err := c.Acquire(ctx, a); return err }) == nil
			continue
		}
		held = !isLoss(n.call(ctx, func(ctx context.Context, c *client.Client) error {
			_, err := c.Renew(ctx, lock.Renew{Locks: a.Names(), LeaseID: a.LeaseID})
			return err
		}))
	}
}

// keepSession is keepLease for a lease in a session, which is renewed.
func (n *tenant) keepSession(ctx context.Context, i int) {
	a := lock.Acquire{Locks: lock.One(fmt.Sprintf("%s:session:%d", n.group, i)), Holder: fmt.Sprint("member ", i)}
	for held := false; sleepFor(ctx, tenantPause); {
		if !held {
			a.LeaseID, a.SessionID = lock.LeaseID(uuid.New()), lock.SessionID(uuid.New())
			opened := n.call(ctx, func(ctx context.Context, c *client.Client) error {
				_, err := c.OpenSession(ctx, lock.OpenSession{ID: a.SessionID, Holder: a.Holder, TTL: tenantTTL})
				return err
			})
			held = opened == nil && n.call(ctx, func(ctx context.Context, c *client.Client) error { _, err := c.Acquire(ctx, a); return err }) == nil
			continue
		}
		held = !isLoss(n.call(ctx, func(ctx context.Context, c *client.Client) error {
			_, err := c.RenewSession(ctx, lock.RenewSession{ID: a.SessionID})
			return err
		}))
	}
}

// use acquires and releases a lock in a loop.
func (n *tenant) use(ctx context.Context, i int) {
	a := lock.Acquire{Locks: lock.One(fmt.Sprintf("%s:used:%d", n.group, i)), Holder: fmt.Sprint("user ", i), TTL: tenantTTL}
	for sleepFor(ctx, 50*time.Millisecond) {
		a.LeaseID = lock.LeaseID(uuid.New())
		if n.call(ctx, func(ctx context.Context, c *client.Client) error { _, err := c.Acquire(ctx, a); return err }) == nil {
			_ = n.call(ctx, func(ctx context.Context, c *client.Client) error { // it is recorded
				return c.Release(ctx, lock.Release{Locks: a.Names(), LeaseID: a.LeaseID})
			})
		}
	}
}

// isLoss reports whether a call was told that its lease has ended.
func isLoss(err error) bool {
	return errors.Is(err, lock.ErrLeaseLost) || errors.Is(err, lock.ErrSessionLost)
}

// p99 returns the 99th percentile.
func p99(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[(len(took)-1)*99/100]
}
