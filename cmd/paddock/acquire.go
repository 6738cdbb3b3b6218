package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

type acquireCommand struct {
	Name string `arg:"" help:"The lock's name, such as jobs:nightly."`
	serviceFlags
	leaseFlags
	retryFlags
	envOutputFlags

	LeaseID leaseID `name:"lease-id" placeholder:"UUID" help:"The lease_id to use, so that you can send the same acquire again. Other users of the machine can see it. Random by default."`
}

func (acquireCommand) Help() string {
	return `Acquires a lock and prints the lease. The lease ends after its TTL unless it is renewed with the printed
lease_id. To run a command while the lease is renewed for you, use paddock run.

Acquire a lock for a minute, and wait for it for up to five:

    paddock acquire jobs:nightly --ttl 1m --wait 5m

In a script, where renew and release find the lease_id in the environment:

    lease=$(paddock acquire jobs:nightly -o env) || exit
    eval "$lease"
    paddock release jobs:nightly

Exit code 75 means that another holder has the lock.`
}

// Run acquires the lock and prints the lease. If the lease cannot be printed it is released, since its lease_id is
// lost.
func (c *acquireCommand) Run(ctx context.Context, p *program) error {
	o, err := c.options(c.Name)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return err
	}
	locks, err := c.client()
	if err != nil {
		return err
	}
	o.LeaseID, o.Retry, o.OnRetry = lock.LeaseID(c.LeaseID), c.forGuard(), p.logRetries()
	grant, err := guard.AcquireUnmanaged(ctx, locks, c.Name, o)
	if err != nil && ctx.Err() != nil {
		return &failure{exitNotAcquired, fmt.Errorf("stopped before %s was acquired (%w): %w",
			c.Name, context.Cause(ctx), err)}
	}
	if err != nil {
		return findEnclosingLease(p.env, c.URL).explain(c.Name, err)
	}
	if err := p.print(c.Output, showLease(grant)); err != nil {
		return errors.Join(err, locks.Release(context.WithoutCancel(ctx), lock.Release{Name: c.Name, LeaseID: grant.ID}))
	}
	return nil
}
