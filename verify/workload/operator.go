package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

const (
	// leastCapacity and greatestCapacity bound the permits of the pool.
	leastCapacity, greatestCapacity = 2, 5
	// freezeFor is when a freeze ends by itself, if its end is lost.
	freezeFor = 5 * time.Second
)

// setFirstRule sets the rule without which the pool cannot be used.
func (c *client) setFirstRule() error {
	if !c.Policy {
		return nil
	}
	if err := c.setRule(0, lock.Rule{Capacity: capacity, MaxTTL: c.TTL}); err != nil {
		return fmt.Errorf("workload: setting a rule: %w", err)
	}
	return nil
}

// changePolicy is what the operator does until the run is over: freeze a lock, one of the tree, the pool or all locks of the
// run for a moment, and change the capacity and the greatest TTL of the pool.
func (c *client) changePolicy() {
	d := rng{rand.New(rand.NewPCG(c.Seed, uint64(c.number)<<32))}
	for ; c.Policy && c.over.Err() == nil; c.turn++ {
		if _, on := c.lullAt(time.Now()); on {
			c.sleep(lullLasts)
			continue
		}
		c.freezeBriefly(d)
		r := lock.Rule{Capacity: leastCapacity + d.IntN(greatestCapacity-leastCapacity+1), MaxTTL: max(d.between(c.TTL/2, c.TTL), lock.MinTTL)}
		if err := c.setRule(c.turn, r); err != nil && !isLost(err) {
			return
		}
		c.sleep(d.between(200*time.Millisecond, 600*time.Millisecond))
	}
}

// freezeBriefly freezes locks, and ends that.
func (c *client) freezeBriefly(d rng) {
	scope := lock.Scope(c.names.now(d.IntN(c.Locks)))
	switch n := d.IntN(5); {
	case n == 0:
		scope = poolsOf(c.Prefix)
	case n == 1:
		scope = lock.Scope(c.Prefix + ":")
	case n == 2 && c.Tree:
		scope = lock.Scope(c.names.now(c.Locks + d.IntN(len(treePaths))))
	}
	_, err := callWithRetries(c, callOptions{verify.Freeze, c.turn, 0, never},
		func(ctx context.Context, s paddock.Service) (lock.FreezeStatus, error) {
			return s.Freeze(ctx, lock.FreezeRequest{Scope: scope, Reason: "verification", For: freezeFor})
		})
	if err == nil {
		c.sleep(d.between(5*time.Millisecond, 80*time.Millisecond))
	}
	_, _ = callWithRetries(c, callOptions{verify.Thaw, c.turn + 1, 0, never}, // it ends by itself
		func(ctx context.Context, s paddock.Service) (struct{}, error) {
			return struct{}{}, s.Thaw(ctx, lock.ThawRequest{Scope: scope})
		})
}

// setRule sets the rule of the pool.
func (c *client) setRule(via int, r lock.Rule) error {
	r.Scope = poolsOf(c.Prefix)
	_, err := callWithRetries(c, callOptions{verify.SetRule, via % len(c.services), 0, never},
		func(ctx context.Context, s paddock.Service) (lock.Rule, error) { return s.SetRule(ctx, r) })
	return err
}

// RemoveRule removes the rule that runs with the prefix have set.
func RemoveRule(ctx context.Context, s paddock.Service, prefix string) error {
	return s.RemoveRule(ctx, poolsOf(prefix))
}
