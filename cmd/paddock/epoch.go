package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/store"
)

type epochCommand struct {
	List   epochListCommand   `cmd:"" help:"List the epochs: when the database was failed over, restored or created again."`
	New    epochNewCommand    `cmd:"" help:"Start an epoch after the database was reset to an earlier state while no replica was running."`
	Open   epochOpenCommand   `cmd:"" help:"End the pause of grants, if no lease can be unknown."`
	Quorum epochQuorumCommand `cmd:"" help:"Require synchronous standbys for every decision, or stop requiring them."`
}

func (epochCommand) Help() string {
	return `An epoch is a part of the history of the locks, on one database server. When the service finds that the
database was failed over, restored from a backup or created again, it starts a new epoch: tokens continue far above
all that were granted, every lease gets its full TTL from then on, and, unless a quorum was required, grants are
paused for as long as a lease that the database has lost could still be held.

With several databases give --cell NAME=URL: epoch list takes all of them, the others the one that they are about.`
}

type epochListCommand struct {
	database
	outputFlags
}

func (epochListCommand) Help() string {
	return `Prints the epochs, oldest first. The last one is current; GRANTS PAUSED FOR is how much longer no lock is
granted in it.

    paddock epoch list
    paddock epoch list -o json | jq '.[-1].grants_paused'`
}

func (c *epochListCommand) Run(ctx context.Context, p *program) error {
	cells, err := c.cells()
	if err != nil {
		return err
	}
	var all []cellEpochs
	for _, d := range cells {
		of := cellEpochs{cell: d.name}
		err := d.ready(ctx, p, func(url string) (err error) {
			of.epochs, of.now, err = store.Epochs(ctx, url, string(d.Schema))
			return err
		})
		if err != nil {
			return d.inCell(err)
		}
		all = append(all, of)
	}
	return p.print(c.Output, showEpochs(all))
}

// A cellEpochs is the epochs of one database, and the name of its cell.
type cellEpochs struct {
	cell   string
	epochs []store.Epoch
	now    time.Time
}

// An epochJSON is an epoch as JSON shows it.
type epochJSON struct {
	Cell        string     `json:"cell,omitempty"`
	Epoch       int64      `json:"epoch"`
	BeganAt     time.Time  `json:"began_at"`
	System      string     `json:"system_identifier"`
	Timeline    string     `json:"timeline"`
	Reason      string     `json:"reason"`
	PausedUntil *time.Time `json:"grants_paused_until,omitempty"`
	Paused      bool       `json:"grants_paused"`
	Quorum      bool       `json:"quorum"`
	MaxLeaseMS  int64      `json:"max_lease_ms"`
}

func showEpochs(all []cellEpochs) output {
	var numbers []string
	shown := []epochJSON{}
	for _, of := range all {
		for _, e := range of.epochs {
			one := newEpochJSON(e, of.now)
			one.Cell = of.cell
			shown, numbers = append(shown, one), append(numbers, strconv.FormatInt(e.Number, 10))
		}
	}
	return output{wire: shown, names: numbers, empty: "No epochs found: no replica has started yet.", table: func(t *table) {
		head := []string{"EPOCH", "BEGAN", "TIMELINE", "GRANTS PAUSED FOR", "QUORUM", "MAX LEASE", "REASON"}
		if all[0].cell != "" {
			head = append([]string{"CELL"}, head...)
		}
		t.head(head...)
		for _, of := range all {
			for i, e := range of.epochs {
				t.row(of.row(e, i == len(of.epochs)-1)...)
			}
		}
	}}
}

// row returns the cells of the line of an epoch. newest says that it is the current one.
func (of cellEpochs) row(e store.Epoch, newest bool) []string {
	paused, quorum := none, "off"
	if left := e.GrantsPausedUntil.Sub(of.now); left > 0 && newest {
		paused = short(left)
	}
	if e.Quorum {
		quorum = "on"
	}
	row := []string{strconv.FormatInt(e.Number, 10), local(e.BeganAt), e.Timeline, paused, quorum, short(e.MaxLease), e.Reason}
	if of.cell != "" {
		row = append([]string{of.cell}, row...)
	}
	return row
}

func newEpochJSON(e store.Epoch, now time.Time) epochJSON {
	out := epochJSON{
		Epoch: e.Number, BeganAt: e.BeganAt.UTC(), System: strconv.FormatInt(e.System, 10), Timeline: e.Timeline,
		Reason: e.Reason, Paused: now.Before(e.GrantsPausedUntil), Quorum: e.Quorum, MaxLeaseMS: e.MaxLease.Milliseconds(),
	}
	if !e.GrantsPausedUntil.IsZero() {
		at := e.GrantsPausedUntil.UTC()
		out.PausedUntil = &at
	}
	return out
}

type epochNewCommand struct {
	database

	Reason string `required:"" placeholder:"TEXT" help:"Why; stored with the epoch."`
	Above  int64  `placeholder:"TOKEN" unset:"none" help:"The greatest fencing token that any client has seen, if the database may have lost it."`
}

func (epochNewCommand) Help() string {
	return `Without this command, Paddock detects a fail-over, a restore by recovery, a dump that was loaded into
another server, and older files of the same server if a replica was running. It cannot detect older files (a snapshot
of the volume, for example) or a dump that was loaded into the same server if no replica was running. In these cases
start an epoch before the first replica.

    paddock epoch new --reason "volume restored from the snapshot of 3 May"`
}

func (c *epochNewCommand) Run(ctx context.Context, p *program) error {
	if c.Above < 0 || c.Above > store.MaxAbove {
		return usagef("--above is %d; give a fencing token, 1 to %d", c.Above, store.MaxAbove)
	}
	d, err := c.single("paddock epoch new")
	if err != nil {
		return err
	}
	err = d.ready(ctx, p, func(url string) error {
		return store.BeginEpoch(ctx, url, string(c.Schema), oneLine(c.Reason), c.Above)
	})
	if err != nil {
		return err
	}
	var all []store.Epoch
	var now time.Time
	err = d.ready(ctx, p, func(url string) (err error) {
		all, now, err = store.Epochs(ctx, url, string(c.Schema))
		return err
	})
	if err != nil {
		return err
	}
	newest := all[len(all)-1]
	return printProse(p.stdout, "Epoch %d has started. Grants are paused for %s; existing leases have their full TTL.",
		newest.Number, short(max(newest.GrantsPausedUntil.Sub(now), 0)))
}

type epochOpenCommand struct {
	database

	Reason string `required:"" placeholder:"TEXT" help:"Why no lease can be unknown; stored with the epoch."`
}

func (epochOpenCommand) Help() string {
	return `Use it if nothing was lost (in a planned switch-over the standby had all data), or if every client that held
a lease is known to be stopped. Otherwise two clients may hold the same lock, and only the fencing token stops the
older one.

    paddock epoch open --reason "switch-over; the standby had all data"`
}

func (c *epochOpenCommand) Run(ctx context.Context, p *program) error {
	var opened bool
	d, err := c.single("paddock epoch open")
	if err != nil {
		return err
	}
	err = d.ready(ctx, p, func(url string) (err error) {
		opened, err = store.OpenEpoch(ctx, url, string(c.Schema), oneLine(c.Reason))
		return err
	})
	if err != nil {
		return err
	}
	result := "Locks are granted again."
	if !opened {
		result = "Grants were not paused; nothing was changed."
	}
	return printProse(p.stdout, "%s", result)
}

type epochQuorumCommand struct {
	database

	Required string `arg:"" enum:"on,off" help:"on or off."`
}

func (epochQuorumCommand) Help() string {
	return `With a quorum every decision is on a standby before it is answered, so a fail-over to that standby loses
nothing and does not pause grants. It needs synchronous_standby_names, such as 'ANY 1 (s1, s2)'. While that is empty,
every replica answers 503 and is not ready.

    paddock epoch quorum on`
}

func (c *epochQuorumCommand) Run(ctx context.Context, p *program) error {
	d, err := c.single("paddock epoch quorum")
	if err != nil {
		return err
	}
	err = d.ready(ctx, p, func(url string) error { return store.RequireQuorum(ctx, url, string(c.Schema), c.Required == "on") })
	if errors.Is(err, store.ErrNoStandby) {
		return fmt.Errorf("nothing was changed: %w. Set it first, for example to 'ANY 1 (s1, s2)'", err)
	}
	if err != nil {
		return err
	}
	return printProse(p.stdout, "Quorum required: %s.", c.Required)
}

// oneLine returns text with every run of white space replaced by one space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
