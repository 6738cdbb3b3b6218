package main

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

type renewCommand struct {
	Name string `arg:"" help:"The lock's name."`
	serviceFlags
	heldFlags
	retryFlags
	envOutputFlags

	TTL      time.Duration `name:"ttl" placeholder:"DURATION" help:"The lease's TTL from now on. If not given, as before."`
	Metadata string        `placeholder:"JSON" help:"The lease's metadata from now on, a JSON object. If not given, as before."`
}

// Help shows how to use it.
func (renewCommand) Help() string {
	return `Moves the end of a lease to a TTL from now, and prints the lease. One that has ended cannot be renewed.

    PADDOCK_LEASE_ID=5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11 paddock renew jobs:nightly

Exit code 76 says that the lease is lost: stop the work. Any other failure does not: go on until the lease's end, and try again.`
}

// Run renews the lease and prints it.
func (c *renewCommand) Run(ctx context.Context, p *program) error {
	r, err := c.renewal()
	if err != nil {
		return err
	}
	locks, err := c.within(answerWithin)
	if err != nil {
		return err
	}
	grant, err := insist(ctx, p.log, c.limit(), func(ctx context.Context) (lock.Grant, error) { return locks.Renew(ctx, r) })
	if err != nil {
		return unlessStopped(ctx, err)
	}
	return p.print(c.Output, showLease(grant))
}

// renewal returns the call, or a usage error.
func (c *renewCommand) renewal() (lock.Renew, error) {
	id, err := c.known()
	if err == nil {
		err = c.check()
	}
	if err == nil {
		err = checkNotNegative("--ttl", c.TTL)
	}
	if err != nil {
		return lock.Renew{}, err
	}
	widest, err := lock.Bounds{}.Resolve()
	if err != nil {
		return lock.Renew{}, err
	}
	r := lock.Renew{Name: c.Name, LeaseID: id, TTL: c.TTL, Metadata: metadataOf(c.Metadata)}
	_, err = r.Resolve(widest)
	return r, refused(err)
}
