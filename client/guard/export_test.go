package guard

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// AcquireSuspended is Acquire on a machine that has been suspended for as long as
// the function says.
func AcquireSuspended(ctx context.Context, locks lock.Service, name string, o Options, suspended func() time.Duration) (*Lease, error) {
	return acquire(ctx, locks, name, o, clock{suspended})
}
