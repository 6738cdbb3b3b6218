package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-lock/paddock/store"
)

type epochNewCommand struct {
	database

	Reason string `required:"" placeholder:"TEXT" help:"Why, for people; it is kept."`
	Above  int64  `placeholder:"TOKEN" help:"The greatest fencing token that anybody has seen, where the database may have forgotten it."`
}

// Help says when it is needed.
func (epochNewCommand) Help() string {
	return `A fail-over, a restore by recovery and a dump loaded elsewhere are noticed without this, and so is whatever happens while a replica runs. ` +
		`What nobody can notice is a server whose files were put back (a snapshot of its volume, say) while no replica ran. Do this before the first replica starts.

    paddock epoch new --reason "volume restored from the snapshot of 3 May"`
}

// Run begins an epoch and says what that means.
func (c *epochNewCommand) Run(ctx context.Context, p *program) error {
	if c.Above < 0 || c.Above > store.MaxAbove {
		return usagef("--above is %d; give a fencing token, 1 to %d", c.Above, store.MaxAbove)
	}
	if err := c.ready(ctx, p); err != nil {
		return err
	}
	if err := store.BeginEpoch(ctx, c.URL, oneLine(c.Reason), c.Above); err != nil {
		return err
	}
	all, now, err := store.Epochs(ctx, c.URL)
	if err != nil {
		return err
	}
	newest := all[len(all)-1]
	_, err = fmt.Fprintf(p.stdout, "Epoch %d has begun. Nothing is granted for %s; leases that there are have their whole TTL.\n",
		newest.Number, short(max(newest.GrantsPausedUntil.Sub(now), 0)))
	return err
}

type epochOpenCommand struct {
	database

	Reason string `required:"" placeholder:"TEXT" help:"Why no lease can be unknown, for people; it is kept."`
}

// Help says when it is right.
func (epochOpenCommand) Help() string {
	return `It is right where nothing was lost (a planned switch-over, in which the standby had everything), or where whoever held a lease is known to be stopped. ` +
		`Where it is wrong two may hold one lock, and only the fencing token keeps the older one out.

    paddock epoch open --reason "switch-over, the standby had it all"`
}

// Run opens the epoch.
func (c *epochOpenCommand) Run(ctx context.Context, p *program) error {
	if err := c.ready(ctx, p); err != nil {
		return err
	}
	opened, err := store.OpenEpoch(ctx, c.URL, oneLine(c.Reason))
	if err != nil {
		return err
	}
	said := "The epoch is open: locks are granted again."
	if !opened {
		said = "The epoch was open already; nothing was changed."
	}
	_, err = fmt.Fprintln(p.stdout, said)
	return err
}

type epochQuorumCommand struct {
	database

	Required string `arg:"" enum:"on,off" help:"on or off."`
}

// Help says what it does.
func (epochQuorumCommand) Help() string {
	return `With it every answer is on a standby before it is given, so that a fail-over to that standby loses nothing, and needs no time in which nothing is granted. ` +
		`It needs synchronous_standby_names, such as 'ANY 1 (s1, s2)'. While that is empty every replica answers 503 and is not ready.

    paddock epoch quorum on`
}

// Run notes whether a quorum is required, for all replicas.
func (c *epochQuorumCommand) Run(ctx context.Context, p *program) error {
	if err := c.ready(ctx, p); err != nil {
		return err
	}
	err := store.RequireQuorum(ctx, c.URL, c.Required == "on")
	if errors.Is(err, store.ErrNoStandby) {
		return fmt.Errorf("nothing was changed: %w. Set it first, to 'ANY 1 (s1, s2)' for example", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "A quorum is required: %s.\n", c.Required)
	return err
}

// oneLine returns text with its spaces and line ends made single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
