package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// Poll tries until the lock is not held by another, or once only if it is not to wait. Between
// one try and the next passes a random time of up to twice the pause, as the recipes have it, so
// that those who wait do not march in step.
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
