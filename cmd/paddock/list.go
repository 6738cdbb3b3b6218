package main

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

type listCommand struct {
	serviceFlags
	outputFlags

	Prefix string `placeholder:"TEXT" help:"Only locks whose names begin with this."`
	State  string `placeholder:"STATE" help:"Only locks in this state: free, held or grace."`
	Holder string `placeholder:"TEXT" help:"Only locks with exactly this holder."`
	Limit  int    `default:"0" placeholder:"N" help:"Maximum number of locks; 0 for all."`
}

func (listCommand) Help() string {
	return `Prints the known locks, ordered by name. A free lock that is idle for long is forgotten.

    paddock list --prefix jobs: --state held
    paddock list -o json | jq -r '.[] | select(.waiters > 0) | .name'`
}

func (c *listCommand) Run(ctx context.Context, p *program) error {
	if c.Limit < 0 {
		return usagef("--limit is %d; give a maximum number of locks, or 0 for all", c.Limit)
	}
	query := lock.LockQuery{Prefix: c.Prefix, State: lock.State(c.State), Holder: c.Holder}
	if _, err := query.Resolve(); err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := c.collect(ctx, locks, query)
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, showLocks(found))
}

// collect reads all pages, or as many as the limit needs.
func (c *listCommand) collect(ctx context.Context, locks lock.Service, query lock.LockQuery) ([]lock.Lock, error) {
	var found []lock.Lock
	for {
		query.Limit = lock.DefaultLimit
		if c.Limit > 0 {
			query.Limit = min(query.Limit, c.Limit-len(found))
		}
		page, err := locks.Locks(ctx, query)
		if err != nil {
			return nil, err
		}
		found = append(found, page.Items...)
		if page.Next == "" || c.Limit > 0 && len(found) >= c.Limit {
			return found, nil
		}
		query.Cursor = page.Next
	}
}
