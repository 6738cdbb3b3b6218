package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/wire"
)

// listCells returns the cells, with the groups that the API key covers.
func (s *Server) listCells(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		var all []paddock.Cell
		if s.cells != nil {
			all = slices.Clone(s.cells(ctx))
		}
		if key, limited := access.KeyFrom(ctx); limited {
			for i := range all {
				all[i].Groups = slices.DeleteFunc(slices.Clone(all[i].Groups),
					func(g paddock.CellGroup) bool { return !key.Covers(g.Name) && !key.Covers(g.Name+":") })
			}
		}
		return ok(wire.CellListOf(all)), nil
	})
}

// cellsAway returns the names of the cells that cannot be used at present.
func (s *Server) cellsAway(ctx context.Context) (names []string) {
	if s.cells == nil {
		return nil
	}
	for _, c := range s.cells(ctx) {
		if c.Away != "" {
			names = append(names, c.Name)
		}
	}
	return names
}
