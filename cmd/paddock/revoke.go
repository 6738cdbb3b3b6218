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

	Token      int64     `required:"" placeholder:"N" help:"Current fencing token of the lock, as get shows it, so that no later lease is revoked by mistake."`
	Reason     string    `required:"" placeholder:"TEXT" help:"Why. The former holder and the events show it."`
	Slot       *int      `placeholder:"N" help:"Revoke only the lease in this slot, of those with the token."`
	AcquiredAt time.Time `placeholder:"INSTANT" help:"Revoke only the lease that was acquired at this instant: acquired_at of get -o json. Give it with --slot for a shared lease."`
	SkipGrace  bool      `help:"Skip the grace of the lease, also of one that was revoked before: the lock is free at once."`
}

func (revokeCommand) Help() string {
	return `Takes a lease away from its holder, and prints the lock as it is then. The holder's next renewal is refused;
the next grant has a greater token. The grace of the lease, counted from now, passes before another holder is granted
the lock, unless you give --skip-grace.

    paddock get jobs:nightly
    paddock revoke jobs:nightly --token 41 --reason 'db-3 is being replaced'`
}

// Run revokes the lease and prints the lock. It does not retry: after a lost answer another holder may have the lock,
// and an operator has to look at it first.
func (c *revokeCommand) Run(ctx context.Context, p *program) error {
	r, err := lock.Revoke{
		Name: c.Name, Token: lock.Token(c.Token), Slot: c.Slot, AcquiredAt: c.AcquiredAt, Reason: c.Reason,
		SkipGrace: c.SkipGrace,
	}.Resolve()
	if err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := locks.Revoke(ctx, r)
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, showLock(found))
}
