package cells

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/policy"
)

// A deployment is the cells that a command was given, as far as they can be reached.
type deployment struct {
	in    schema.Name
	cells []Cell
	conns map[string]*pgx.Conn
	maps  map[string]*placement.Map
	away  map[string]error // why a cell cannot be reached
	turn  time.Duration    // how long each step waits for its turn
	after func(step) error // for tests
}

// open connects to the cells and reads their maps. Close it.
func open(ctx context.Context, in schema.Name, all []Cell) *deployment {
	d := &deployment{in: in, cells: all, conns: make(map[string]*pgx.Conn), turn: database.TurnTimeout}
	d.read(ctx)
	return d
}

// undefinedTable is the SQLSTATE for a missing table or schema.
const undefinedTable = "42P01"

var errNotRegistered = errors.New("the database is not registered; run paddock migrate up with all cells first")

func (d *deployment) close(ctx context.Context) {
	for _, conn := range d.conns {
		_ = conn.Close(context.WithoutCancel(ctx)) // it is used no more
	}
}

// read reads the maps of all cells. A cell that cannot be reached has none.
func (d *deployment) read(ctx context.Context) {
	d.maps, d.away = make(map[string]*placement.Map), make(map[string]error)
	for _, c := range d.cells {
		if err := d.readOne(ctx, c); err != nil {
			d.away[c.Name] = fmt.Errorf("the cell %s: %w", c.Name, err)
		}
	}
}

func (d *deployment) readOne(ctx context.Context, c Cell) (err error) {
	conn := d.conns[c.Name]
	if conn == nil || conn.IsClosed() {
		if conn, err = database.Dial(ctx, c.URL); err != nil {
			return err
		}
		d.conns[c.Name] = conn
	}
	s, err := policy.Read(ctx, conn, d.in)
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == undefinedTable {
		return fmt.Errorf("%w: %w", errNotRegistered, err)
	}
	if err != nil {
		return err
	}
	if s.Self == "" {
		return errNotRegistered
	}
	d.maps[c.Name] = &s.Map
	return c.isOr(s.Self, c.Name)
}

// everywhere returns an error unless all cells were given, and can be reached.
func (d *deployment) everywhere() error {
	for _, c := range d.cells {
		if err := d.away[c.Name]; err != nil {
			return err
		}
	}
	for _, m := range d.maps {
		for _, c := range m.Cells {
			if d.maps[c.Name] == nil {
				return fmt.Errorf("the cell %s is registered, too; give all cells", c.Name)
			}
		}
	}
	return nil
}

// cell returns the cell of the name, which must be given.
func (d *deployment) cell(name string) (Cell, error) {
	i := slices.IndexFunc(d.cells, func(c Cell) bool { return c.Name == name })
	if i < 0 {
		return Cell{}, fmt.Errorf("there is no cell %q among those given", name)
	}
	return d.cells[i], cmp.Or(d.away[name], nil)
}

// position returns the position of a cell.
func (d *deployment) position(of string) int {
	for _, c := range d.maps[of].Cells {
		if c.Name == of {
			return c.Position
		}
	}
	return 0
}

// newest returns the map with the newest set of cells.
func (d *deployment) newest() *placement.Map {
	newest := &placement.Map{Generation: -1}
	for _, c := range d.cells {
		if m := d.maps[c.Name]; m != nil && m.Generation > newest.Generation {
			newest = m
		}
	}
	return newest
}

// move returns the move of groups between two cells.
func (d *deployment) move(from, to string, groups []string, generation int64) (*move, error) {
	source, err := d.cell(from)
	if err != nil {
		return nil, err
	}
	target, err := d.cell(to)
	if err != nil {
		return nil, err
	}
	return &move{
		in: d.in, from: source, to: target, source: d.conns[from], target: d.conns[to],
		bits: 1<<d.position(from) | 1<<d.position(to), groups: groups, names: namesOf(groups), generation: generation, turn: d.turn, after: d.after,
	}, nil
}

// tidy ends the moves that another command has left unfinished and of which one of the groups is a part, and all if there are
// none: one that has arrived is finished, and any other is given up, so that its groups are used in the source while a
// new move copies their history.
func (d *deployment) tidy(ctx context.Context, groups []string) error {
	type way struct {
		from, to   string
		generation int64
	}
	moving := make(map[way][]string)
	for _, c := range d.cells {
		m := d.maps[c.Name]
		if m == nil {
			continue
		}
		for _, r := range m.Rows {
			if r.State == placement.Leaving {
				w := way{c.Name, r.Cell, r.Generation}
				moving[w] = append(moving[w], r.Group)
			}
		}
	}
	for w, of := range moving {
		if len(groups) > 0 && !slices.ContainsFunc(of, func(g string) bool { return slices.Contains(groups, g) }) {
			continue
		}
		slices.Sort(of)
		m, err := d.move(w.from, w.to, of, w.generation)
		if err == nil {
			err = m.abort(ctx)
		}
		if errors.Is(err, errArrived) {
			err = m.finish(ctx)
		}
		if err != nil && !errors.Is(err, errNotMoving) {
			return fmt.Errorf("giving up or finishing the move of %s from %s to %s: %w", strings.Join(of, ", "), w.from, w.to, err)
		}
	}
	if len(moving) > 0 {
		d.reopen(ctx)
	}
	return nil
}

// reopen reads the maps again, on new connections where the old ones were closed.
func (d *deployment) reopen(ctx context.Context) { d.read(ctx) }

// owner returns the cell that has the group.
func (d *deployment) owner(group string) (string, error) {
	for _, c := range d.cells {
		if m := d.maps[c.Name]; m != nil && m.Elsewhere(group) == nil {
			return c.Name, nil
		}
	}
	var reasons []error
	for _, c := range d.cells {
		reasons = append(reasons, d.away[c.Name])
	}
	if err := errors.Join(reasons...); err != nil {
		return "", fmt.Errorf("the cell that has the group %s cannot be reached: %w", group, err)
	}
	return "", fmt.Errorf("no cell has the group %s: the set of cells was changed half-way; run that command again", group)
}

// bring moves the groups to the cell, those of one cell together. pinned says what the target is to say of them.
func (d *deployment) bring(ctx context.Context, groups []string, to string, pinned bool) error {
	if err := d.tidy(ctx, groups); err != nil {
		return err
	}
	from := make(map[string][]string)
	for _, g := range groups {
		if err := d.restore(ctx, g); err != nil {
			return err
		}
		owner, err := d.owner(g)
		if err != nil {
			return err
		}
		from[owner] = append(from[owner], g)
	}
	for _, c := range d.cells {
		of := from[c.Name]
		if len(of) == 0 {
			continue
		}
		generation := int64(0)
		for _, g := range of {
			generation = max(generation, d.maps[c.Name].GenerationOf(g))
			if m := d.maps[to]; m != nil {
				generation = max(generation, m.GenerationOf(g))
			}
		}
		m, err := d.move(c.Name, to, of, generation+1)
		if err != nil {
			return err
		}
		m.pinned = &pinned
		if c.Name == to {
			err = m.stay(ctx)
		} else {
			err = m.run(ctx)
		}
		if err != nil {
			return err
		}
	}
	d.read(ctx)
	return nil
}

// restore makes a cell say again that it has the group, which has arrived there, if a fail-over has lost that commit. The
// leases are lost with it, as those of any fail-over, for which it pauses grants.
func (d *deployment) restore(ctx context.Context, group string) error {
	for _, source := range d.cells {
		m := d.maps[source.Name]
		if m == nil || m.Rows[group].State != placement.Gone {
			continue
		}
		r := m.Rows[group]
		target := d.maps[r.Cell]
		if target == nil || target.GenerationOf(group) >= r.Generation {
			continue
		}
		move, err := d.move(source.Name, r.Cell, []string{group}, r.Generation)
		if err != nil {
			return err
		}
		var c cargo
		if err := move.describe(ctx, &c); err != nil {
			return err
		}
		if err := move.change(ctx, move.target, func(s *policy.Snapshot) error { return move.may(&s.Map) }, func(b *pgx.Batch) {
			epoch.QueueRaise(b, d.in, c.newest)
			epoch.QueueLongest(b, d.in, c.longest)
			move.place(b, r.Cell, r.Generation, placement.Here, nil)
		}); err != nil && !errors.Is(err, errArrived) {
			return err
		}
		d.read(ctx)
	}
	return nil
}

// stay records that the groups, which are in the target already, are pinned or not.
func (m *move) stay(ctx context.Context) error {
	return m.change(ctx, m.target, func(s *policy.Snapshot) error { return s.Elsewhere(m.groups...) },
		func(b *pgx.Batch) { m.place(b, m.to.Name, m.generation, placement.Here, m.pinned) })
}

// Pin moves the groups to the cell, see store.PinGroups.
func Pin(ctx context.Context, in schema.Name, all []Cell, groups []string, to string) error {
	d := open(ctx, in, all)
	defer d.close(ctx)
	return d.pin(ctx, groups, to)
}

func (d *deployment) pin(ctx context.Context, groups []string, to string) error {
	if _, err := d.cell(to); err != nil {
		return err
	}
	return d.bring(ctx, groups, to, true)
}

// Unpin moves the groups to their homes, see store.UnpinGroups.
func Unpin(ctx context.Context, in schema.Name, all []Cell, groups []string) error {
	d := open(ctx, in, all)
	defer d.close(ctx)
	homes := make(map[string][]string)
	for _, g := range groups {
		home := placement.Home(g, d.newest().Cells)
		if home == "" {
			return cmp.Or(d.everywhere(), errors.New("no cell takes groups; see paddock cell fill"))
		}
		homes[home] = append(homes[home], g)
	}
	for home, of := range homes {
		if err := d.bring(ctx, of, home, false); err != nil {
			return err
		}
	}
	return nil
}
