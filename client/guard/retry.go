package guard

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/paddock-lock/paddock/lock"
)

// The first and the greatest pause between two tries of a call, before chance makes
// them longer or shorter.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// retryBackoff are those between the tries of a call, each longer than the one before.
type retryBackoff struct {
	*backoff.ExponentialBackOff
}

func newRetryBackoff() retryBackoff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = minBackoff, maxBackoff, 2
	return retryBackoff{b}
}

// sleep waits until it is time for another try, which is no sooner than the refusal
// asks for, and returns false if ctx ends before.
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
