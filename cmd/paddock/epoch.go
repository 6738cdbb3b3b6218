package main

import (
	"context"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/store"
)

type epochCommand struct {
	List   epochListCommand   `cmd:"" help:"Show the epochs: when the database was failed over or restored, and what came of it."`
	New    epochNewCommand    `cmd:"" help:"Say that the database was put back to an earlier state while no replica ran."`
	Open   epochOpenCommand   `cmd:"" help:"Say that no lease is unknown, so that locks are granted again at once."`
	Quorum epochQuorumCommand `cmd:"" help:"Say whether to decide only while PostgreSQL waits for standbys."`
}

// Help says what an epoch is.
func (epochCommand) Help() string {
	return `An epoch is a stretch of the history of the locks on one database server. When the service finds that the database is another, since a standby was promoted or a backup ` +
		`restored, a new epoch begins: tokens go on far above all that were granted, leases have their whole TTL from then on, and, unless a quorum was required, nothing is granted ` +
		`for as long as a lease that the database has lost could still be alive.`
}

// ready returns once the database has answered, and has the tables.
func (d database) ready(ctx context.Context, p *program) error {
	if err := d.await(ctx, p.log); err != nil {
		return err
	}
	return checkSchema(ctx, d.URL, p.log)
}

type epochListCommand struct {
	database
	outputFlags
}

// Help shows how to use it.
func (epochListCommand) Help() string {
	return `Prints the epochs, oldest first. The last one holds; CLOSED FOR is for how much longer nothing is granted in it.

    paddock epoch list
    paddock epoch list -o json | jq '.[-1].closed'`
}

// Run prints the epochs.
func (c *epochListCommand) Run(ctx context.Context, p *program) error {
	if err := c.ready(ctx, p); err != nil {
		return err
	}
	all, now, err := store.Epochs(ctx, c.URL)
	if err != nil {
		return err
	}
	return p.print(c.Output, showEpochs(all, now))
}

// An epochShown is an epoch as it is printed.
type epochShown struct {
	Epoch       int64      `json:"epoch"`
	BeganAt     time.Time  `json:"began_at"`
	System      string     `json:"system_identifier"`
	Timeline    string     `json:"timeline"`
	Reason      string     `json:"reason"`
	ClosedUntil *time.Time `json:"closed_until,omitempty"`
	Closed      bool       `json:"closed"`
	Quorum      bool       `json:"quorum"`
	LongestMS   int64      `json:"longest_ms"`
}

func showEpochs(all []store.Epoch, now time.Time) finding {
	return finding{wire: each(all, func(e store.Epoch) epochShown { return epochTo(e, now) }), table: func(s sheet) {
		s.row("EPOCH", "BEGAN", "TIMELINE", "CLOSED FOR", "QUORUM", "LONGEST LEASE", "REASON")
		for i, e := range all {
			closed, quorum := none, "off"
			if left := e.GrantsPausedUntil.Sub(now); left > 0 && i == len(all)-1 {
				closed = short(left)
			}
			if e.Quorum {
				quorum = "on"
			}
			s.row(strconv.FormatInt(e.Number, 10), local(e.BeganAt), e.Timeline, closed, quorum, short(e.MaxLease), e.Reason)
		}
	}}
}

func epochTo(e store.Epoch, now time.Time) epochShown {
	out := epochShown{
		Epoch: e.Number, BeganAt: e.BeganAt.UTC(), System: strconv.FormatInt(e.System, 10), Timeline: e.Timeline, Reason: e.Reason,
		Closed: now.Before(e.GrantsPausedUntil), Quorum: e.Quorum, LongestMS: e.MaxLease.Milliseconds(),
	}
	if !e.GrantsPausedUntil.IsZero() {
		at := e.GrantsPausedUntil.UTC()
		out.ClosedUntil = &at
	}
	return out
}
