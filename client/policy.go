package client

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

var errUnbuilt = &lock.Error{Code: lock.ErrInternal, Detail: "This is being built."}

func (c *Client) Freeze(context.Context, lock.FreezeRequest) (lock.FreezeStatus, error) {
	return lock.FreezeStatus{}, errUnbuilt
}
func (c *Client) Thaw(context.Context, lock.ThawRequest) error { return errUnbuilt }
func (c *Client) Frozen(context.Context, lock.Scope) (lock.FreezeStatus, error) {
	return lock.FreezeStatus{}, errUnbuilt
}
func (c *Client) Freezes(context.Context) ([]lock.Freeze, error) { return nil, errUnbuilt }
func (c *Client) SetRule(context.Context, lock.Rule) (lock.Rule, error) {
	return lock.Rule{}, errUnbuilt
}
func (c *Client) RemoveRule(context.Context, lock.Scope) error { return errUnbuilt }
func (c *Client) Rules(context.Context) ([]lock.Rule, error)   { return nil, errUnbuilt }
