package client

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const treesPath = "/v1/trees"

// DeclareTree declares a tree, or finds it declared. It fails with lock.ErrTreeBusy or lock.ErrTreeOverlaps.
func (c *Client) DeclareTree(ctx context.Context, root string) (lock.Tree, error) {
	if err := lock.CheckRoot(root); err != nil { // some have no form in a URL
		return lock.Tree{}, err
	}
	return call[lock.Tree]{
		request: request{method: http.MethodPut, path: treesPath + "/" + root}, changes: true,
		parse: model(wire.ToTree, func(t api.Tree) bool { return t.Root == root }),
	}.get(ctx, c)
}

// RemoveTree removes a tree, or finds that there is none. It fails with lock.ErrTreeBusy.
func (c *Client) RemoveTree(ctx context.Context, root string) error {
	if err := lock.CheckRoot(root); err != nil {
		return err
	}
	_, err := call[struct{}]{
		request: request{method: http.MethodDelete, path: treesPath + "/" + root}, changes: true, success: []int{http.StatusNoContent},
	}.do(ctx, c)
	return err
}

// Trees returns the declared trees, in the order of their roots.
func (c *Client) Trees(ctx context.Context) ([]lock.Tree, error) {
	return call[[]lock.Tree]{
		request: request{path: treesPath}, limit: maxListResponse, parse: model(wire.ToTreeList, func(l api.TreeList) bool { return l.Trees != nil }),
	}.get(ctx, c)
}
