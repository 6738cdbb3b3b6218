package locktest

import (
	"context"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// Batched returns a service that sends each call as a batch of one item, if it can be an item. Those about a set
// cannot.
func Batched(s paddock.Service) paddock.Service { return batched{s} }

type batched struct{ paddock.Service }

func (b batched) one(ctx context.Context, item lock.Command) (lock.Grant, error) {
	r := b.Batch(ctx, []lock.Command{item})
	return r[0].Grant, r[0].Err
}

func (b batched) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if a.Wait != 0 || a.KeepPlace || len(a.Locks) > 1 {
		return b.Service.Acquire(ctx, a)
	}
	return b.one(ctx, a)
}

func (b batched) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	if len(r.Locks) > 1 {
		return b.Service.Renew(ctx, r)
	}
	return b.one(ctx, r)
}

func (b batched) Release(ctx context.Context, r lock.Release) error {
	if len(r.Locks) > 1 {
		return b.Service.Release(ctx, r)
	}
	_, err := b.one(ctx, r)
	return err
}
