package main

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

type listCommand struct {
	serviceFlags
	outputFlags

	Prefix string `placeholder:"TEXT" help:"Only locks whose names begin with this."`
	State  string `placeholder:"STATE" help:"Only locks that are free, held or in grace."`
	Holder string `placeholder:"TEXT" help:"Only locks that exactly this holder has."`
	Limit  int    `default:"0" placeholder:"N" help:"How many at most; 0 for all."`
}

// Help shows how to use it.
func (listCommand) Help() string {
	return `Prints the locks that are known, in the order of their names. A free lock that was not used for long is forgotten.

    paddock list --prefix jobs: --state held
    paddock list -o json | jq -r '.[] | select(.waiters > 0) | .name'`
}

// Run prints the locks.
func (c *listCommand) Run(ctx context.Context, p *program) error {
	if c.Limit < 0 {
		return usagef("--limit is %d; give how many locks at most, or 0 for all", c.Limit)
	}
	query := lock.LockQuery{Prefix: c.Prefix, State: lock.State(c.State), Holder: c.Holder}
	if _, err := query.Resolve(); err != nil {
		return refused(err)
	}
	locks, err := c.within(lookWithin)
	if err != nil {
		return err
	}
	found, err := c.collect(ctx, locks, query)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	return p.print(c.Output, showLocks(found))
}

// collect reads page after page, until there are no more locks or enough of them.
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
