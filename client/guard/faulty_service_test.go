package guard_test

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A faultyService is the way to a service, on which things get lost.
type faultyService struct {
	lock.Service
	mu    sync.Mutex
	fault fault
	calls []sentCall
}

// A fault is what is wrong with a line. The zero fault is none.
type fault struct {
	refuse     bool          // connections are refused: nothing is sent
	blackHole  bool          // what is sent is lost, and nobody says so
	loseAnswer bool          // what is sent arrives, and no answer comes back
	delay      time.Duration // answers take so long
}

// A sentCall is one that was sent.
type sentCall struct {
	what string
	at   time.Time
}

func (l *faultyService) setFault(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

func (l *faultyService) sentAt(what string) (at []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.what == what {
			at = append(at, c.at)
		}
	}
	return at
}

func (l *faultyService) record(what string) fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, sentCall{what, time.Now()})
	return l.fault
}

// withFault sends a call over the line.
func withFault[T any](ctx context.Context, l *faultyService, what string, call func(context.Context) (T, error)) (T, error) {
	var nothing T
	f := l.record(what)
	if f.refuse {
		return nothing, &lock.Error{Code: lock.ErrUnavailable, Detail: "Refused."}
	}
	if f.blackHole {
		<-ctx.Done()
		return nothing, &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Lost.", Cause: context.Cause(ctx)}
	}
	t, err := call(ctx)
	if f.loseAnswer {
		<-ctx.Done()
		return nothing, &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Lost.", Cause: context.Cause(ctx)}
	}
	if f.delay == 0 {
		// Not by a timer that is over at once: two of those in one bubble, on two
		// threads, crash the race detector's part of Go 1.26's runtime.
		return t, err
	}
	select {
	case <-time.After(f.delay):
		return t, err
	case <-ctx.Done():
		return nothing, &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Lost.", Cause: context.Cause(ctx)}
	}
}

func (l *faultyService) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return withFault(ctx, l, "acquire", func(ctx context.Context) (lock.Grant, error) {
		sent := time.Now()
		g, err := l.Service.Acquire(ctx, a)
		g.Until = g.Until.Add(time.Until(sent)) // as a client counts it
		return g, err
	})
}

func (l *faultyService) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return withFault(ctx, l, "renew", func(ctx context.Context) (lock.Grant, error) { return l.Service.Renew(ctx, r) })
}

func (l *faultyService) Release(ctx context.Context, r lock.Release) error {
	_, err := withFault(ctx, l, "release", func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Service.Release(ctx, r) })
	return err
}

func (l *faultyService) Watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	return withFault(ctx, l, "watch", func(ctx context.Context) (lock.Lock, error) { return l.Service.Watch(ctx, w) })
}
