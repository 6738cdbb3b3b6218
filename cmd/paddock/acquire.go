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

	LeaseID leaseID `name:"lease-id" placeholder:"UUID" help:"A lease_id of your own, to be able to send the same acquire again; other users of the machine can see it. If not given, a new one is drawn."`
}

// Help shows how to use it.
func (acquireCommand) Help() string {
	return `Takes a lock and prints the lease. The lease ends after its TTL unless it is renewed before, with the lease_id that is printed; ` +
		`to have that done for you while a command runs, use paddock run.

Take a lock for a minute, and wait for it for up to five:

    paddock acquire jobs:nightly --ttl 1m --wait 5m

In a script, where renew and release find the lease_id in the environment:

    lease=$(paddock acquire jobs:nightly -o env) || exit
    eval "$lease"
    paddock release jobs:nightly

Exit code 75 says that somebody else has the lock.`
}

// Run acquires the lock and prints the lease. A lease whose lease_id nobody gets to
// know is given up again.
func (c *acquireCommand) Run(ctx context.Context, p *program) error {
	o, err := c.options(c.Name)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return err
	}
	locks, err := c.open()
	if err != nil {
		return err
	}
	o.LeaseID, o.Retry, o.OnRetry = lock.LeaseID(c.LeaseID), c.forGuard(), p.noteRetry()
	grant, err := guard.AcquireUnmanaged(ctx, locks, c.Name, o)
	if err != nil && ctx.Err() != nil {
		return &failure{exitNotAcquired, fmt.Errorf("stopped before it had %s (%w): %w", c.Name, context.Cause(ctx), err)}
	}
	if err != nil {
		return enclosingLease(p.env, c.URL).refused(c.Name, err)
	}
	if err := p.print(c.Output, showLease(grant)); err != nil {
		return errors.Join(err, locks.Release(context.WithoutCancel(ctx), lock.Release{Name: c.Name, LeaseID: grant.ID}))
	}
	return nil
}
