package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/cells"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/policy"
)

// Placement returns what the database says of the cells and of where groups are, as it was last read: with the last
// decision after a change, and within half a second otherwise. It is never nil, and another one after each change.
func (s *Store) Placement() *placement.Map { return &s.policy.Newest().Map }

// Leave writes that the row's group leaves for the row's cell, unless this database knows something as new of it. It is for
// a database that has lost the commit that said so; paddock cell pin deletes what it has of the group.
func (s *Store) Leave(ctx context.Context, r placement.Row) error {
	return s.policy.Leave(ctx, r)
}

// checkCell returns an error unless the database is registered as the cell of the options: its URL may be that of
// another one.
func (o Options) checkCell(ctx context.Context, db *database.DB) error {
	self, err := policy.SelfOf(ctx, db.Rest, db.Schema)
	switch {
	case err != nil:
		return fmt.Errorf("reading which cell the database is: %w", err)
	case self == o.Cell:
		return nil
	case o.Cell == "":
		return fmt.Errorf("the database is the cell %s of a deployment with several; name all of them, as in --cell %[1]s=URL", self)
	case self == "":
		return fmt.Errorf("the database is not registered as the cell %s; run paddock migrate up with all cells first", o.Cell)
	}
	return fmt.Errorf("the database at the URL of the cell %s is the cell %s; correct the URLs", o.Cell, self)
}

// readHere is Read of the database for what belongs to the groups of the names. It fails with a
// *placement.ElsewhereError if they are in another cell.
func (s *Store) readHere(ctx context.Context, names []string, read func(context.Context) error) error {
	var elsewhere error
	err := s.db.Read(ctx, func(ctx context.Context) (err error) {
		elsewhere, err = s.policy.ReadHere(ctx, names, read)
		return err
	})
	return cmp.Or(err, elsewhere)
}

// policyChanged wakes the calls for which a newer policy may have another answer.
func (s *Store) policyChanged(d policy.Difference) {
	if d.Cells {
		s.waiters.WakeAll()
	}
	for _, group := range d.Groups {
		d.Scopes = append(d.Scopes, lock.Scope(group), lock.Scope(group+":"))
	}
	if len(d.Scopes) > 0 {
		s.waiters.WakeScopes(d.Scopes)
	}
	if d.Cells || len(d.Groups) > 0 {
		s.events.Rouse()
		s.timers.ScanSoon() // no timer knows the locks that came
	}
}

// A CellDatabase is a cell and the URL of its database. Cells are named like hosts: 1 to 40 of a-z, 0-9 and -.
type CellDatabase = cells.Cell

// RegisterCells registers the databases, which must be migrated, as the cells of one deployment, and does nothing if they
// are. All cells must be given, in any order. A database with locks may be among them when none is registered yet: it
// becomes the home of all groups, and otherwise each does. A cell that is added later is the home of none, and must have
// no locks. If it fails half-way, it is to be called again. It needs a role that owns the tables. As in Options an empty
// schema is paddock.
func RegisterCells(ctx context.Context, in string, all []CellDatabase) error {
	return withSchema(in, func(name schema.Name) error { return cells.Register(ctx, name, all) })
}

// PinGroups moves the groups to the cell, all of those in one cell together, and keeps them there. While they move, calls
// about them wait, if a router sends them. It takes up a move of them that was stopped. all has the cells between which
// groups move, at least.
//
// If it fails, the groups are where they were, or in the cell, or the error says which call finishes it. Sets of locks
// of the groups and of others are not moved: the error names them. It needs a role that owns the tables.
func PinGroups(ctx context.Context, in string, all []CellDatabase, groups []string, cell string) error {
	return withSchema(in, func(name schema.Name) error { return cells.Pin(ctx, name, all, groups, cell) })
}

// UnpinGroups moves the groups to their homes, like PinGroups, and lets them go with these from then on.
func UnpinGroups(ctx context.Context, in string, all []CellDatabase, groups []string) error {
	return withSchema(in, func(name schema.Name) error { return cells.Unpin(ctx, name, all, groups) })
}

// DrainCell moves all groups out of the cell, including those pinned to it, and makes it the home of none.
// All cells must be given, and be reached. If it fails, it is to be called again.
func DrainCell(ctx context.Context, in string, all []CellDatabase, cell string) error {
	return withSchema(in, func(name schema.Name) error { return cells.Drain(ctx, name, all, cell) })
}

// FillCell makes the cell the home of its share of the groups, and moves them to it, except pinned ones. See DrainCell.
func FillCell(ctx context.Context, in string, all []CellDatabase, cell string) error {
	return withSchema(in, func(name schema.Name) error { return cells.Fill(ctx, name, all, cell) })
}

// withSchema calls f with the name of the schema.
func withSchema(in string, f func(schema.Name) error) error {
	name, err := schema.Parse(in)
	if err != nil {
		return err
	}
	return f(name)
}
