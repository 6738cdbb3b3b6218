package guard_test

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A line is the way to a service, on which things get lost.
type line struct {
	lock.Service
	mu    sync.Mutex
	fault fault
	calls []callMade
}

// A fault is what is wrong with a line. The zero fault is none.
type fault struct {
	refuses  bool          // connections are refused: nothing is sent
	swallows bool          // what is sent is lost, and nobody says so
	deaf     bool          // what is sent arrives, and no answer comes back
	slow     time.Duration // answers take so long
}

// A callMade is one that was sent.
type callMade struct {
	what string
	at   time.Time
}

func (l *line) fail(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

func (l *line) made(what string) (at []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.what == what {
			at = append(at, c.at)
		}
	}
	return at
}

func (l *line) begin(what string) fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, callMade{what, time.Now()})
	return l.fault
}

// over sends a call over the line.
func over[T any](ctx context.Context, l *line, what string, call func(context.Context) (T, error)) (T, error) {
	var nothing T
	f := l.begin(what)
	if f.refuses {
		return nothing, &lock.Error{Code: lock.ErrUnavailable, Detail: "Refused."}
	}
	if f.swallows {
		<-ctx.Done()
		return nothing, &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Lost.", Cause: context.Cause(ctx)}
	}
	t, err := call(ctx)
	if f.deaf {
		<-ctx.Done()
		return nothing, &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Lost.", Cause: context.Cause(ctx)}
	}
	if f.slow == 0 {
		// Not by a timer that is over at once: two of those in one bubble, on two
		// threads, crash the race detector's part of Go 1.26's runtime.
		return t, err
	}
	select {
	case <-time.After(f.slow):
		return t, err
	case <-ctx.Done():
		return nothing, &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Lost.", Cause: context.Cause(ctx)}
	}
}

func (l *line) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return over(ctx, l, "acquire", func(ctx context.Context) (lock.Grant, error) {
		sent := time.Now()
		g, err := l.Service.Acquire(ctx, a)
		g.Until = g.Until.Add(time.Until(sent)) // as a client counts it
		return g, err
	})
}

func (l *line) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return over(ctx, l, "renew", func(ctx context.Context) (lock.Grant, error) { return l.Service.Renew(ctx, r) })
}

func (l *line) Release(ctx context.Context, r lock.Release) error {
	_, err := over(ctx, l, "release", func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Service.Release(ctx, r) })
	return err
}

func (l *line) Watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	return over(ctx, l, "watch", func(ctx context.Context) (lock.Lock, error) { return l.Service.Watch(ctx, w) })
}
