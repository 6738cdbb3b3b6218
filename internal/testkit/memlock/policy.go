package memlock

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

var errUnbuilt = &lock.Error{Code: lock.ErrInternal, Detail: "This is being built."}

func (r replica) Freeze(context.Context, lock.FreezeRequest) (lock.FreezeStatus, error) {
	return lock.FreezeStatus{}, errUnbuilt
}
func (r replica) Thaw(context.Context, lock.ThawRequest) error { return errUnbuilt }
func (r replica) Frozen(context.Context, lock.Scope) (lock.FreezeStatus, error) {
	return lock.FreezeStatus{}, errUnbuilt
}
func (r replica) Freezes(context.Context) ([]lock.Freeze, error) { return nil, errUnbuilt }
func (r replica) SetRule(context.Context, lock.Rule) (lock.Rule, error) {
	return lock.Rule{}, errUnbuilt
}
func (r replica) RemoveRule(context.Context, lock.Scope) error { return errUnbuilt }
func (r replica) Rules(context.Context) ([]lock.Rule, error)   { return nil, errUnbuilt }
