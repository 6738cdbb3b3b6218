package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// A demoWorkerCommand is worker A of the demo, which starts it.
type demoWorkerCommand struct {
	serviceFlags

	Name string        `required:""`
	TTL  time.Duration `name:"ttl" required:""`
}

// Run acquires the lock and then writes again and again, until a write is
// refused. It does what careless workers do: once it has the lock, it never asks
// whether it still has. What it does it reports as deeds.
func (c *demoWorkerCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.within(lookWithin)
	if err != nil {
		return err
	}
	grant, err := locks.Acquire(ctx, lock.Acquire{Name: c.Name, LeaseID: lock.LeaseID(uuid.New()), Holder: "A", TTL: c.TTL})
	if err != nil {
		return err
	}
	report := json.NewEncoder(p.stdout)
	if err := report.Encode(deed{Token: grant.Token}); err != nil {
		return err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		did, err := c.write(ctx, locks, grant.Token)
		if err == nil {
			err = report.Encode(did)
		}
		if err != nil || did.Refused != "" {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *demoWorkerCommand) write(ctx context.Context, locks lock.Service, token lock.Token) (deed, error) {
	written, err := locks.WriteFenced(ctx, lock.FencedWrite{
		Key: c.Name, Lock: c.Name, Token: token, Value: json.RawMessage(`"written by A"`),
	})
	if refusal := (*lock.Error)(nil); errors.As(err, &refusal) && errors.Is(err, lock.ErrStaleToken) {
		return deed{Token: token, Refused: refusal.Code, Newest: refusal.Newest}, nil
	}
	return deed{Token: token, Wrote: written.Version}, err
}
