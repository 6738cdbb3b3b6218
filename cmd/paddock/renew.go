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

	TTL      time.Duration `name:"ttl" placeholder:"DURATION" help:"New TTL of the lease. Unchanged by default."`
	Metadata string        `placeholder:"JSON" help:"New metadata of the lease, a JSON object. Unchanged by default."`
}

func (renewCommand) Help() string {
	return `Sets the end of a lease to one TTL from now, and prints the lease. An ended lease cannot be renewed.

    PADDOCK_LEASE_ID=5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11 paddock renew jobs:nightly

Exit code 76 means that the lease is lost: stop the work. After any other failure the lease may still be yours: go on
until its end, and retry.`
}

func (c *renewCommand) Run(ctx context.Context, p *program) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	locks, err := c.clientWithTimeout(attemptTimeout)
	if err != nil {
		return err
	}
	grant, err := retry(ctx, p.log, c.limit(), func(ctx context.Context) (lock.Grant, error) {
		return locks.Renew(ctx, r)
	})
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, showLease(grant))
}

// request returns the call, or a usage error.
func (c *renewCommand) request() (lock.Renew, error) {
	id, err := c.id()
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
	r := lock.Renew{Name: c.Name, LeaseID: id, TTL: c.TTL, Metadata: rawJSON(c.Metadata)}
	_, err = r.Resolve(widest)
	return r, explain(err)
}
