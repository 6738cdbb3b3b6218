package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// Poll calls try until the lock is no longer held by another client, or only once without wait. It
// pauses between attempts for a random time of up to twice the pause, as the recipes do, so that
// waiters do not poll in lockstep.
func Poll[T any](ctx context.Context, wait bool, pause time.Duration, try func() (T, error)) (T, error) {
	for {
		got, err := try()
		if !wait || !errors.Is(err, system.ErrHeld) {
			return got, err
		}
		select {
		case <-time.After(rand.N(2 * pause)):
		case <-ctx.Done():
			return got, context.Cause(ctx)
		}
	}
}
