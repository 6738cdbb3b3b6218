package cells

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/policy"
)

var (
	sqlGroups         = database.Statement(files, "groups")
	sqlOnlyGroups     = database.Statement(files, "only_groups")
	sqlClearPlacement = database.Statement(files, "clear_placement")
)

const (
	// maxTogether is how many groups move together when a cell is drained or filled.
	maxTogether = 200
	// maxRounds is how often groups are moved that came into use meanwhile.
	maxRounds = 20
)

// errAgain is returned when groups came into use, or moved, since they were read.
var errAgain = errors.New("groups came into use again and again; run the same command again")

// Drain makes the cell the home of no group, and moves what it has to the other cells, see store.DrainCell.
func Drain(ctx context.Context, in schema.Name, all []Cell, cell string) error {
	return setTakes(ctx, in, all, cell, false)
}

// Fill makes the cell the home of groups, and moves these to it, see store.FillCell.
func Fill(ctx context.Context, in schema.Name, all []Cell, cell string) error {
	return setTakes(ctx, in, all, cell, true)
}

func setTakes(ctx context.Context, in schema.Name, all []Cell, cell string, takes bool) error {
	d := open(ctx, in, all)
	defer d.close(ctx)
	return d.setTakes(ctx, cell, takes)
}

// setTakes changes the set of cells: it moves what would have another home, and then says so in all cells, unless that
// was done meanwhile.
func (d *deployment) setTakes(ctx context.Context, cell string, takes bool) error {
	if _, err := d.cell(cell); err != nil {
		return err
	}
	for range maxRounds {
		if err := d.everywhere(); err != nil {
			return err
		}
		if err := d.tidy(ctx, nil); err != nil {
			return err
		}
		s, err := d.plan(ctx, cell, takes)
		if err != nil {
			return err
		}
		err = s.move(ctx)
		if err == nil {
			err = s.write(ctx)
		}
		if !errors.Is(err, errAgain) {
			return err
		}
		d.read(ctx)
	}
	return errAgain
}

// A newSet is the set of cells that a command makes.
type newSet struct {
	*deployment
	cell       string
	takes      bool
	cells      []placement.Cell
	generation int64
	has        map[string][]string // the groups of which a cell has something
	stay       map[string]placement.Row
}

// plan returns the set of cells in which the cell takes or not.
func (d *deployment) plan(ctx context.Context, cell string, takes bool) (*newSet, error) {
	s := &newSet{deployment: d, cell: cell, takes: takes, has: make(map[string][]string), stay: make(map[string]placement.Row)}
	s.cells = slices.Clone(d.newest().Cells)
	others := false
	for i := range s.cells {
		if s.cells[i].Name == cell {
			s.cells[i].Takes = takes
		}
		others = others || s.cells[i].Takes
	}
	if !others {
		return nil, fmt.Errorf("the cell %s is the only one that takes groups; fill another one first", cell)
	}
	for _, c := range d.cells {
		m := d.maps[c.Name]
		s.generation = max(s.generation, m.Generation)
		for _, r := range m.Rows {
			s.generation = max(s.generation, r.Generation)
		}
		rows, err := d.conns[c.Name].Query(ctx, sqlGroups.In(d.in))
		if err != nil {
			return nil, err
		}
		if s.has[c.Name], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return nil, err
		}
	}
	s.generation++
	return s, nil
}

// homeOf returns where the group, which the cell has, is to be: where it is pinned, unless that cell is drained.
func (s *newSet) homeOf(group, owner string) string {
	if r := s.maps[owner].Rows[group]; r.Pinned && r.State == placement.Here && (owner != s.cell || s.takes) {
		return owner
	}
	return placement.Home(group, s.cells)
}

// move moves the groups that are to be elsewhere. Then the rows that are left are of groups that stay.
func (s *newSet) move(ctx context.Context) error {
	for _, c := range s.deployment.cells {
		m, to := s.maps[c.Name], make(map[string][]string)
		of := slices.Clone(s.has[c.Name])
		for g, r := range m.Rows {
			if r.State == placement.Here {
				of = append(of, g)
			}
		}
		slices.Sort(of)
		for _, g := range slices.Compact(of) {
			if home := s.homeOf(g, c.Name); m.Elsewhere(g) == nil && home != c.Name {
				to[home] = append(to[home], g)
			}
		}
		for home, groups := range to {
			for part := range slices.Chunk(groups, maxTogether) {
				if err := s.bring(ctx, part, home, false); err != nil {
					return err
				}
			}
		}
	}
	for _, c := range s.deployment.cells {
		for g, r := range s.maps[c.Name].Rows {
			if r.State == placement.Here && (r.Pinned || placement.Home(g, s.cells) != c.Name) {
				s.stay[g] = r
			}
			if s.generation = max(s.generation, r.Generation+1); r.State == placement.Leaving {
				return errAgain
			}
		}
	}
	return nil
}

// write writes the set into the databases. First come the cells that are the home of fewer groups from then on: if the
// command stops after these, the others have no home until it is run again.
func (s *newSet) write(ctx context.Context) error {
	order := slices.Clone(s.deployment.cells)
	slices.SortStableFunc(order, func(a, b Cell) int {
		loses := func(c Cell) int {
			if (c.Name == s.cell) == s.takes {
				return 1
			}
			return 0
		}
		return loses(a) - loses(b)
	})
	newest := int64(0)
	for _, c := range order {
		if err := s.writeOne(ctx, c, newest); err != nil {
			return err
		}
		var last int64
		if err := s.conns[c.Name].QueryRow(ctx, sqlNewestBatch.In(s.in)).Scan(&last); err != nil {
			return err
		}
		newest = max(newest, last)
	}
	return nil
}

// writeOne writes the set into one database, whose tokens continue above a batch.
func (s *newSet) writeOne(ctx context.Context, c Cell, above int64) error {
	conn, before := s.conns[c.Name], s.maps[c.Name]
	var keeps []string
	err := policy.ChangePlacement(ctx, conn, s.in, s.turn, func(now *policy.Snapshot) error {
		if now.Generation >= s.generation || !maps.Equal(now.Rows, before.Rows) {
			return errAgain
		}
		rows, err := conn.Query(ctx, sqlGroups.In(s.in))
		if err != nil {
			return err
		}
		if keeps, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		for _, g := range keeps {
			if r, stays := s.stay[g]; stays && r.Cell != c.Name || !stays && placement.Home(g, s.cells) != c.Name {
				return errAgain
			}
		}
		return nil
	}, func(b *pgx.Batch) {
		b.Queue(sqlOnlyGroups.In(s.in), keeps)
		epoch.QueueRaise(b, s.in, above)
		b.Queue(sqlClearPlacement.In(s.in))
		for g, r := range s.stay {
			state := placement.Gone
			if r.Cell == c.Name {
				state = placement.Here
			}
			b.Queue(sqlPlace.In(s.in), []string{g}, r.Cell, r.Generation, string(state), r.Pinned)
		}
		queueSet(b, s.in, c.Name, placement.Map{Cells: s.cells, Generation: s.generation})
	}, nil)
	if err != nil && !errors.Is(err, errAgain) {
		return fmt.Errorf("the cell %s: %w", c.Name, err)
	}
	return err
}
