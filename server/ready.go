package server

import (
	"context"
	"time"
)

// readinessTTL is for how long what is known of the readiness holds. Whoever can reach the
// Server may ask for it, without a key: so the Service is asked once a second, not more.
const readinessTTL = time.Second

// A readiness knows whether requests should be sent here. One asks at a time, and those who
// come meanwhile are told the same.
type readiness struct {
	probe   func(context.Context) error
	timeout time.Duration // that it may take to ask

	busy    chan struct{} // has room for who asks; what is below is theirs
	checkedAt time.Time     // when what is known came; zero: nothing is
	err     error
}

// check returns nil or why requests should not be sent here. That one asker is gone is nothing to
// the others, so it is seen through.
func (r *readiness) check(ctx context.Context) error {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !r.checkedAt.IsZero() && time.Since(r.checkedAt) < readinessTTL {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
	defer cancel()
	r.err = r.probe(ctx)
	r.checkedAt = time.Now()
	return r.err
}
