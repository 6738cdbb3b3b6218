package server

import (
	"context"
	"time"
)

// readyFor is for how long what is known of the readiness holds. Whoever can reach the
// Server may ask for it, without a key: so the Service is asked once a second, not more.
const readyFor = time.Second

// A readiness knows whether requests should be sent here. One asks at a time, and those who
// come meanwhile are told the same.
type readiness struct {
	ask   func(context.Context) error
	limit time.Duration // that it may take to ask

	turn    chan struct{} // has room for who asks; what is below is theirs
	askedAt time.Time     // when what is known came; zero: nothing is
	err     error
}

// now returns nil or why requests should not be sent here. That one asker is gone is nothing to
// the others, so it is seen through.
func (r *readiness) now(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !r.askedAt.IsZero() && time.Since(r.askedAt) < readyFor {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.limit)
	defer cancel()
	r.err = r.ask(ctx)
	r.askedAt = time.Now()
	return r.err
}
