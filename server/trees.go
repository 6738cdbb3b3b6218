package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/internal/wire"
)

// declareTree declares a tree.
func (s *Server) declareTree(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		tree, err := s.locks.DeclareTree(ctx, nameIn(r))
		return ok(wire.TreeOf(tree)), err
	})
}

// removeTree makes the locks of a tree independent of each other.
func (s *Server) removeTree(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) { return noContent(), s.locks.RemoveTree(ctx, nameIn(r)) })
}

// listTrees returns the declared trees.
func (s *Server) listTrees(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		all, err := s.locks.Trees(ctx)
		return ok(wire.TreeListOf(all)), err
	})
}
