package policy

import (
	"context"
	"errors"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

var (
	sqlVersion = database.Statement(files, "version")
	sqlCell    = database.Statement(files, "cell")
	sqlLeave   = change("leave")
)

// A storedCell is a cell as sql/policy.sql returns it.
type storedCell struct {
	placement.Cell
	Self       bool
	Generation int64
}

// mapOf returns the Map of the rows.
func mapOf(cells []storedCell, groups []placement.Row) (m placement.Map) {
	for _, c := range cells {
		m.Cells, m.Generation = append(m.Cells, c.Cell), max(m.Generation, c.Generation)
		if c.Self {
			m.Self = c.Name
		}
	}
	if len(groups) > 0 {
		m.Rows = make(map[string]placement.Row, len(groups))
	}
	for _, r := range groups {
		m.Rows[r.Group] = r
	}
	return m
}

// moved returns the groups whose rows differ.
func moved(a, b *placement.Map) (groups []string) {
	for group, r := range b.Rows {
		if before, found := a.Rows[group]; !found || before != r {
			groups = append(groups, group)
		}
	}
	for group := range maps.Keys(a.Rows) {
		if _, found := b.Rows[group]; !found {
			groups = append(groups, group)
		}
	}
	return groups
}

// SelfOf returns the name of the cell that the database is registered as; empty: it is none.
func SelfOf(ctx context.Context, from querier, in schema.Name) (name string, err error) {
	err = from.QueryRow(ctx, sqlCell.In(in)).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return name, err
}

// Leave says that the row's group leaves for the row's cell, unless the database knows something as new, or does not have
// the group.
func (c *Catalog) Leave(ctx context.Context, r placement.Row) error {
	err := c.apply(ctx, plan{
		of:    r.Group,
		check: func(s *Snapshot) (bool, error) { return s.GenerationOf(r.Group) >= r.Generation, nil },
		sql:   sqlLeave, args: []any{r.Group, r.Cell, r.Generation}, into: []any{new(bool)},
	})
	if errors.As(err, new(*placement.ElsewhereError)) {
		return nil
	}
	if err == nil {
		_, err = c.Read(ctx)
	}
	return err
}

// ReadHere runs read, which reads what is of the groups of the names, and returns an *placement.ElsewhereError as
// elsewhere if the database does not have them: then their rows may be missing. It reads again if the policy has changed
// meanwhile.
func (c *Catalog) ReadHere(ctx context.Context, names []string, read func(context.Context) error) (elsewhere, err error) {
	for {
		now := c.Newest()
		if err := read(ctx); err != nil || now.Self == "" {
			return nil, err
		}
		var version epoch.PolicyVersion
		if err := c.db.Rest.QueryRow(ctx, sqlVersion.In(c.db.Schema)).Scan(&version.Epoch, &version.Changes); err != nil {
			return nil, err
		}
		if version == now.Version {
			return now.Elsewhere(names...), nil
		}
		if _, err := c.read(ctx, c.db.Rest); err != nil {
			return nil, err
		}
	}
}
