package main

import "context"

type queueCommand struct {
	Name string `arg:"" help:"The lock's name, such as jobs:nightly."`
	serviceFlags
	outputFlags
}

func (queueCommand) Help() string {
	return `Prints the waiters of a lock in the order in which they are served, and what blocks each of them.

    paddock queue jobs:nightly`
}

func (c *queueCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := locks.Queue(ctx, c.Name)
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, showQueue(found))
}
