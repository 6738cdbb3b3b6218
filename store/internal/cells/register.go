package cells

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/policy"
)

//go:embed sql/*.sql
var files embed.FS

var (
	sqlInUse      = database.Statement(files, "in_use")
	sqlClearCells = database.Statement(files, "clear_cells")
	sqlAddCells   = database.Statement(files, "add_cells")
	sqlStep       = database.Statement(files, "step")
	sqlAlign      = database.Statement(files, "align")
	sqlAligned    = database.Statement(files, "aligned")
)

// A Cell is a cell and how to connect to its database.
type Cell struct{ Name, URL string }

// A registration is what a database has of cells.
type registration struct {
	Cell
	placement.Map
	inUse bool
}

// Register registers the databases as the cells of one deployment, see store.RegisterCells.
func Register(ctx context.Context, in schema.Name, all []Cell) error {
	found := make([]registration, len(all))
	for i, c := range all {
		err := c.connect(ctx, func(conn *pgx.Conn) (err error) {
			found[i], err = c.registered(ctx, conn, in)
			return err
		})
		if err != nil {
			return err
		}
	}
	want, err := plan(found)
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := c.connect(ctx, func(conn *pgx.Conn) error { return c.write(ctx, conn, in, want) }); err != nil {
			return err
		}
	}
	return nil
}

// connect runs f on a connection to the cell's database. Its error names the cell.
func (c Cell) connect(ctx context.Context, f func(*pgx.Conn) error) error {
	if err := database.WithConn(ctx, c.URL, f); err != nil {
		return fmt.Errorf("the cell %s: %w", c.Name, err)
	}
	return nil
}

// registered returns what the database has.
func (c Cell) registered(ctx context.Context, conn *pgx.Conn, in schema.Name) (registration, error) {
	r := registration{Cell: c}
	s, err := policy.Read(ctx, conn, in)
	if err != nil {
		return r, err
	}
	r.Map = s.Map
	if err := c.isOr(r.Self, ""); err != nil {
		return r, err
	}
	return r, conn.QueryRow(ctx, sqlInUse.In(in)).Scan(&r.inUse)
}

// isOr returns an error unless the database is this cell or, in other words, is registered as it or as the other name.
func (c Cell) isOr(self, other string) error {
	if self == c.Name || self == other {
		return nil
	}
	return fmt.Errorf("its database is registered as the cell %s; correct the URLs", self)
}

// plan returns the set of cells that all databases are to have: the cells that are registered, and then the new ones.
func plan(found []registration) (placement.Map, error) {
	var want placement.Map
	var inUse []string
	known := make(map[string]placement.Cell)
	for _, r := range found {
		if err := placement.CheckCell(r.Name); err != nil {
			return want, err
		}
		if r.inUse && r.Self == "" {
			inUse = append(inUse, r.Name)
		}
		for _, c := range r.Cells {
			if other, again := known[c.Name]; again && other.Position != c.Position {
				return want, fmt.Errorf("the cell %s has two positions, %d and %d: databases of different deployments were given",
					c.Name, c.Position, other.Position)
			}
			if _, again := known[c.Name]; !again || r.Generation > want.Generation {
				known[c.Name] = c
			}
		}
		want.Generation = max(want.Generation, r.Generation)
	}
	if len(inUse) > 1 || len(inUse) == 1 && len(known) > 0 {
		return want, fmt.Errorf("the databases of the cells %s have locks of their own: one may have them when cells are first registered, "+
			"and none later", strings.Join(inUse, ", "))
	}
	first := len(known) == 0
	for _, r := range found {
		if _, registered := known[r.Name]; !registered {
			takes := first && (len(inUse) == 0 || inUse[0] == r.Name)
			known[r.Name] = placement.Cell{Name: r.Name, Position: freePosition(known), Takes: takes}
		}
	}
	if len(known) > lock.MaxCells {
		return want, fmt.Errorf("there are %d cells; give %d at most", len(known), lock.MaxCells)
	}
	for name, c := range known {
		if !slices.ContainsFunc(found, func(r registration) bool { return r.Name == name }) {
			return want, fmt.Errorf("the cell %s is registered, too; give all cells", name)
		}
		want.Cells = append(want.Cells, c)
	}
	slices.SortFunc(want.Cells, func(a, b placement.Cell) int { return a.Position - b.Position })
	if slices.ContainsFunc(found, func(r registration) bool { return !slices.Equal(r.Cells, want.Cells) }) {
		want.Generation++
	}
	return want, nil
}

// freePosition returns the least position that none of the cells has.
func freePosition(of map[string]placement.Cell) int {
	taken := make(map[int]bool, len(of))
	for _, c := range of {
		taken[c.Position] = true
	}
	position := 0
	for taken[position] {
		position++
	}
	return position
}

// write makes the database the cell, with this set of cells.
func (c Cell) write(ctx context.Context, conn *pgx.Conn, in schema.Name, want placement.Map) error {
	own := want.Cells[slices.IndexFunc(want.Cells, func(n placement.Cell) bool { return n.Name == c.Name })].Position
	var aligned bool
	if err := conn.QueryRow(ctx, sqlAligned.In(in), own).Scan(&aligned); err != nil {
		return err
	}
	now, err := policy.Read(ctx, conn, in)
	if err != nil {
		return err
	}
	if aligned && now.Self == c.Name && now.Generation == want.Generation && slices.Equal(now.Cells, want.Cells) {
		return nil
	}
	return policy.ChangePlacement(ctx, conn, in, database.TurnTimeout, func(s *policy.Snapshot) error {
		if s.Generation > want.Generation {
			return fmt.Errorf("the set of cells is being changed by another command; run this one again")
		}
		return c.isOr(s.Self, "")
	}, func(b *pgx.Batch) {
		queueSet(b, in, c.Name, want)
		if !aligned {
			b.Queue(sqlStep.In(in))
			b.Queue(sqlAlign.In(in), own)
		}
	}, nil)
}

// queueSet queues the statements that make the set that of the database, which is the cell self.
func queueSet(b *pgx.Batch, in schema.Name, self string, set placement.Map) {
	var names []string
	var positions []int
	var takes []bool
	for _, c := range set.Cells {
		names, positions, takes = append(names, c.Name), append(positions, c.Position), append(takes, c.Takes)
	}
	b.Queue(sqlClearCells.In(in))
	b.Queue(sqlAddCells.In(in), names, positions, takes, set.Generation, self)
}
