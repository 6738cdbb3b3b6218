package memlock

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

func (r replica) Batch(ctx context.Context, items []lock.Command) []lock.Result {
	return lock.BatchSequentially(ctx, r, items)
}
