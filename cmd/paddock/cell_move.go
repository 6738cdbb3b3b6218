package main

import (
	"context"
	"strings"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

type cellPinCommand struct {
	database

	To     string   `arg:"" help:"The cell that gets the groups."`
	Groups []string `arg:"" name:"group" help:"Names up to their first colon. Groups that share sets move together."`
}

func (cellPinCommand) Help() string {
	return `Works on the databases, with a role that owns the tables, while the service goes on. Calls about the groups wait for a
moment; leases, places in queues, sessions and history go along, and each lease has its whole TTL from then on. If the
command is stopped, run it again: until then the groups may be in neither cell, and calls about them wait.

    paddock cell pin spare billing --cell main=postgres://… --cell spare=postgres://…`
}

func (c *cellPinCommand) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, c.Groups, func(all []store.CellDatabase) error {
		return store.PinGroups(ctx, string(c.Schema), all, c.Groups, c.To)
	}, "In the cell "+c.To+" from now on: %s.", strings.Join(c.Groups, ", "))
}

type cellUnpinCommand struct {
	database

	Groups []string `arg:"" name:"group" help:"Groups as they were given to paddock cell pin."`
}

func (cellUnpinCommand) Help() string {
	return `Moves each group to the cell that its name's hash says, as paddock cell pin does. From then on it moves when cells are
drained and filled.

    paddock cell unpin billing --cell main=postgres://… --cell spare=postgres://…`
}

func (c *cellUnpinCommand) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, c.Groups, func(all []store.CellDatabase) error {
		return store.UnpinGroups(ctx, string(c.Schema), all, c.Groups)
	}, "At home, by the hash of the name: %s.", strings.Join(c.Groups, ", "))
}

type cellDrainCommand struct {
	database

	Name string `arg:"" name:"name" help:"The cell to empty."`
}

func (cellDrainCommand) Help() string {
	return `Moves all groups out of the cell, including those pinned to it, and stops new groups from going there. Give all cells.
If the command is stopped, run it again.

    paddock cell drain spare --cell main=postgres://… --cell spare=postgres://…`
}

func (c *cellDrainCommand) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, nil, func(all []store.CellDatabase) error {
		return store.DrainCell(ctx, string(c.Schema), all, c.Name)
	}, "The cell %s has no groups, and takes none.", c.Name)
}

type cellFillCommand struct {
	database

	Name string `arg:"" name:"name" help:"The cell that takes groups."`
}

func (cellFillCommand) Help() string {
	return `Moves the cell's share of the groups to it, except those pinned to other cells, and lets new groups go there. A new cell
has no groups until then. Give all cells. If the command is stopped, run it again.

    paddock cell fill third --cell main=postgres://… --cell spare=postgres://… --cell third=postgres://…`
}

func (c *cellFillCommand) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, nil, func(all []store.CellDatabase) error {
		return store.FillCell(ctx, string(c.Schema), all, c.Name)
	}, "The cell %s has its part of the groups.", c.Name)
}

// change runs a change of where groups are on the databases of the cells, and says what came of it.
func (d database) change(
	ctx context.Context, p *program, groups []string, change func([]store.CellDatabase) error, format string, args ...any,
) error {
	if len(d.Cell) == 0 {
		return usagef("give --cell NAME=URL for each cell")
	}
	for _, g := range groups {
		if g != placement.Group(g) || lock.CheckName(g) != nil {
			return usagef("%q is no group; give names up to their first colon, such as billing", g)
		}
	}
	cells, err := d.cells()
	if err != nil {
		return err
	}
	all, err := cellDatabases(cells)
	if err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	return printProse(p.stdout, format, args...)
}
