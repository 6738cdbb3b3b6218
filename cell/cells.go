package cell

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

// infoTTL is how long what is known of the cells is reused.
const infoTTL = time.Second

// Cells returns the cells that the Router was given, in the order of their positions. It is at most a second old.
func (r *Router) Cells(ctx context.Context) []paddock.Cell {
	r.info.Lock()
	defer r.info.Unlock()
	if time.Since(r.infoAt) >= infoTTL {
		r.known, r.infoAt = r.look(ctx), time.Now()
	}
	return r.known
}

// CellOf returns the name of the cell to ask about the lock, empty if that is not known.
func (r *Router) CellOf(name string) string {
	return placement.Route(placement.Group(name), r.maps()...)
}

// look asks each cell whether it is ready.
func (r *Router) look(ctx context.Context) []paddock.Cell {
	known := r.maps()
	positions := map[string]placement.Cell{}
	for _, c := range r.newest().Cells {
		positions[c.Name] = c
	}
	replies := askAll(context.WithoutCancel(ctx), r.cells, func(ctx context.Context, s paddock.Service) (int64, error) {
		at := s.(Store)
		return at.Epoch(), at.Ready(ctx)
	})
	all := make([]paddock.Cell, len(replies))
	for i, a := range replies {
		at := positions[a.from.name]
		all[i] = paddock.Cell{Name: a.from.name, Position: at.Position, Takes: at.Takes, Epoch: a.of, Groups: groupsOf(a.from.name, known)}
		if a.err != nil {
			all[i].Away = awayText(a.err)
		}
	}
	slices.SortStableFunc(all, func(a, b paddock.Cell) int { return a.Position - b.Position })
	return all
}

// awayText says why a cell is away, as far as every caller may be told.
func awayText(err error) string {
	if e := (*lock.Error)(nil); errors.As(err, &e) {
		return e.Detail
	}
	return "It is not ready; the log of the replica says why."
}

// newestRows returns what is known of groups with a row.
func newestRows(known []*placement.Map) map[string]placement.Row {
	newest := map[string]placement.Row{}
	for _, m := range known {
		if m == nil {
			continue
		}
		for group, row := range m.Rows {
			if o, found := newest[group]; !found || row.Generation > o.Generation ||
				row.Generation == o.Generation && (row.State == placement.Here || o.State == placement.Leaving) {
				newest[group] = row
			}
		}
	}
	return newest
}

// groupsOf returns the groups with a row that were moved to the cell.
func groupsOf(cell string, known []*placement.Map) (groups []paddock.CellGroup) {
	newest := newestRows(known)
	for _, group := range slices.Sorted(maps.Keys(newest)) {
		if row := newest[group]; row.Cell == cell {
			groups = append(groups, paddock.CellGroup{Name: group, Moving: row.State == placement.Leaving})
		}
	}
	return groups
}

// Ready returns nil if one of the cells can be used, or else why the first cannot.
func (r *Router) Ready(ctx context.Context) error {
	all := r.Cells(ctx)
	if slices.ContainsFunc(all, func(c paddock.Cell) bool { return c.Away == "" }) {
		return nil
	}
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Detail: "All cells are away: " + strings.Join(r.names(), ", ") + ". " + all[0].Away}
}
