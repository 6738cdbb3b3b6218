package guard

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/paddock-lock/paddock/lock"
)

// The first and the longest pause between two attempts, before jitter.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// A retryBackoff computes growing pauses between the attempts of a call.
type retryBackoff struct {
	*backoff.ExponentialBackOff
}

func newRetryBackoff() retryBackoff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = minBackoff, maxBackoff, 2
	return retryBackoff{b}
}

// sleep pauses before the next attempt. The pause is at least the error's RetryAfter, of which at
// most maxBackoff counts. It returns false if ctx ends first.
func (p retryBackoff) sleep(ctx context.Context, err error) bool {
	pause := p.NextBackOff()
	if refusal := (*lock.Error)(nil); errors.As(err, &refusal) {
		pause = max(pause, min(refusal.RetryAfter, maxBackoff))
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// isTransient reports whether the same call may succeed later.
func isTransient(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) ||
		errors.Is(err, lock.ErrTooManyWaiters) || errors.Is(err, lock.ErrRateLimited) || errors.Is(err, lock.ErrInternal)
}
