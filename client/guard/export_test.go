package guard

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// AcquireSuspended is AcquireAll on a machine that was suspended for the time that the function returns.
func AcquireSuspended(
	ctx context.Context, locks paddock.Service, members []lock.Member, o Options, suspended func() time.Duration,
) (*Lease, error) {
	return acquire(ctx, locks, members, o, clock{suspended})
}
