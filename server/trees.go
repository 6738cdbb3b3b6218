package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/api"

	"github.com/paddock-lock/paddock/internal/wire"
)

// DeclareTree declares a tree.
func (a *handlers) DeclareTree(w http.ResponseWriter, r *http.Request, root api.Root) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		tree, err := a.locks.DeclareTree(ctx, root)
		return ok(wire.TreeOf(tree)), err
	})
}

// RemoveTree makes the locks of a tree independent of each other.
func (a *handlers) RemoveTree(w http.ResponseWriter, r *http.Request, root api.Root) {
	a.answer(w, r, func(ctx context.Context) (reply, error) { return noContent(), a.locks.RemoveTree(ctx, root) })
}

// ListTrees returns the declared trees.
func (a *handlers) ListTrees(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		all, err := a.locks.Trees(ctx)
		return ok(wire.TreeListOf(all)), err
	})
}
