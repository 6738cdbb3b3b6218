package store

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

var errUnbuilt = &lock.Error{Code: lock.ErrInternal, Detail: "This is being built."}

func (s *Store) Freeze(context.Context, lock.FreezeRequest) (lock.FreezeStatus, error) {
	return lock.FreezeStatus{}, errUnbuilt
}
func (s *Store) Thaw(context.Context, lock.ThawRequest) error { return errUnbuilt }
func (s *Store) Frozen(context.Context, lock.Scope) (lock.FreezeStatus, error) {
	return lock.FreezeStatus{}, errUnbuilt
}
func (s *Store) Freezes(context.Context) ([]lock.Freeze, error) { return nil, errUnbuilt }
func (s *Store) SetRule(context.Context, lock.Rule) (lock.Rule, error) {
	return lock.Rule{}, errUnbuilt
}
func (s *Store) RemoveRule(context.Context, lock.Scope) error { return errUnbuilt }
func (s *Store) Rules(context.Context) ([]lock.Rule, error)   { return nil, errUnbuilt }
