package locktest

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

// Batched returns the service with each call that may be an item of a batch made as a
// batch of one: whatever holds for calls must hold for items.
func Batched(s lock.Service) lock.Service { return batched{s} }

type batched struct{ lock.Service }

func (b batched) one(ctx context.Context, item lock.Command) (lock.Grant, error) {
	r := b.Batch(ctx, []lock.Command{item})
	return r[0].Grant, r[0].Err
}

func (b batched) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if a.Wait != 0 || a.KeepPlace {
		return b.Service.Acquire(ctx, a)
	}
	return b.one(ctx, a)
}

func (b batched) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) { return b.one(ctx, r) }

func (b batched) Release(ctx context.Context, r lock.Release) error {
	_, err := b.one(ctx, r)
	return err
}
