package guard

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// AcquireSuspended is Acquire on a machine that was suspended for the time that the function returns.
func AcquireSuspended(ctx context.Context, locks lock.Service, name string, o Options, suspended func() time.Duration) (*Lease, error) {
	return acquire(ctx, locks, name, o, clock{suspended})
}
