package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/wire"
)

type cellCommand struct {
	List  cellListCommand  `cmd:"" help:"List the cells: which is away, and which groups were moved to each."`
	Pin   cellPinCommand   `cmd:"" help:"Move groups to a cell, and keep them there."`
	Unpin cellUnpinCommand `cmd:"" help:"Move groups to the cells that their names' hashes say."`
	Drain cellDrainCommand `cmd:"" help:"Move all groups out of a cell."`
	Fill  cellFillCommand  `cmd:"" help:"Move to a cell its part of all groups."`
}

func (cellCommand) Help() string {
	return `A cell is one of several databases that share the locks of one deployment. The locks with the same name up to the
first colon are a group, which is in one cell. See https://github.com/paddock-lock/paddock/blob/main/docs/cells.md`
}

type cellListCommand struct {
	serviceFlags
	retryFlags
	outputFlags
}

func (cellListCommand) Help() string {
	return `Asks a replica. A service with one database has no cells.

    paddock cell list`
}

func (c *cellListCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, locks.Cells)
	if err != nil {
		return err
	}
	names := namesIn(found, func(c paddock.Cell) string { return c.Name })
	return p.print(c.Output, output{wire: wire.CellListOf(found).Cells, names: names, empty: "No cells found: the service has one database.",
		table: func(t *table) { t.cells(found) }})
}

// cells adds the cells.
func (t *table) cells(all []paddock.Cell) {
	t.head("CELL", "STATE", "EPOCH", "TAKES GROUPS", "GROUPS MOVED HERE")
	for _, c := range all {
		state, epoch, takes, groups := "ready", none, "no", none
		if c.Away != "" {
			state = "away: " + c.Away
		}
		if c.Epoch > 0 {
			epoch = strconv.FormatInt(c.Epoch, 10)
		}
		if c.Takes {
			takes = "yes"
		}
		if len(c.Groups) > 0 {
			groups = strings.Join(namesIn(c.Groups, movedGroup), " ")
		}
		t.row(c.Name, state, epoch, takes, groups)
	}
}

func movedGroup(g paddock.CellGroup) string {
	if g.Moving {
		return g.Name + " (moving)"
	}
	return g.Name
}
