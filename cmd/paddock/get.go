package main

import "context"

type getCommand struct {
	Name string `arg:"" help:"The lock's name, such as jobs:nightly."`
	serviceFlags
	envOutputFlags
}

func (getCommand) Help() string {
	return `Prints the state of a lock and its holders. A lock that was never used is free.

    paddock get jobs:nightly
    paddock get jobs:nightly -o json | jq -r '.leases[].holder'

With -o env the variables are PADDOCK_STATE, PADDOCK_NEWEST_TOKEN, PADDOCK_HELD_BY and PADDOCK_WAITERS. The token is
that of the lock's newest lease, which need not be yours.`
}

func (c *getCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := locks.Lock(ctx, c.Name)
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, showLock(found))
}
