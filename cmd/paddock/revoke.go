package main

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

type revokeCommand struct {
	Name string `arg:"" help:"The lock's name."`
	serviceFlags
	outputFlags

	Token      int64     `required:"" placeholder:"N" help:"The fencing token that holds the lock now, as get shows it: so that nobody is hit who came since."`
	Reason     string    `required:"" placeholder:"TEXT" help:"Why. The ousted holder and the events show it."`
	Slot       *int      `placeholder:"N" help:"Only the lease in this slot, of those that have the token."`
	AcquiredAt time.Time `placeholder:"INSTANT" help:"Only the lease that was granted then: acquired_at of get -o json. Give it with --slot for a shared lease."`
	SkipGrace  bool      `help:"Skip the lease's grace, also that of a lease that was revoked before: the lock is free at once."`
}

// Help shows how to use it.
func (revokeCommand) Help() string {
	return `Takes a lease away from its holder, and prints the lock as it is then. The holder's next renewal is refused; the next grant has a greater token.
The grace of the lease, counted from now, keeps others out before they are granted the lock, unless you give --skip-grace.

    paddock get jobs:nightly
    paddock revoke jobs:nightly --token 41 --reason 'db-3 is being replaced'`
}

// Run revokes the lease and prints the lock. It asks once: after a lost answer the
// lock may be somebody else's, and is to be looked at first.
func (c *revokeCommand) Run(ctx context.Context, p *program) error {
	r, err := lock.Revoke{
		Name: c.Name, Token: lock.Token(c.Token), Slot: c.Slot, AcquiredAt: c.AcquiredAt, Reason: c.Reason, SkipGrace: c.SkipGrace,
	}.Resolve()
	if err != nil {
		return refused(err)
	}
	locks, err := c.within(lookWithin)
	if err != nil {
		return err
	}
	found, err := locks.Revoke(ctx, r)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	return p.print(c.Output, showLock(found))
}
