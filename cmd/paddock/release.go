package main

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

type releaseCommand struct {
	Name string `arg:"" help:"The lock's name."`
	serviceFlags
	heldFlags
	retryFlags
}

func (releaseCommand) Help() string {
	return `Releases a lease, or gives up a place in the queue. It prints nothing, also if the lease was released
before.

    PADDOCK_LEASE_ID=5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11 paddock release jobs:nightly

Exit code 76 means that the lease had ended otherwise: work under it may have overlapped with that of another holder.`
}

func (c *releaseCommand) Run(ctx context.Context, p *program) error {
	id, err := c.id()
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return err
	}
	r, err := lock.Release{Name: c.Name, LeaseID: id}.Resolve()
	if err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(attemptTimeout)
	if err != nil {
		return err
	}
	_, err = retry(ctx, p.log, c.limit(), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, locks.Release(ctx, r)
	})
	return explainUnlessStopped(ctx, err)
}
