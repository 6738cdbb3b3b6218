package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/paddock-lock/paddock/lock"
)

// The retryFlags say how long an outage may last.
type retryFlags struct {
	Retry time.Duration `default:"10s" help:"For how long to send the same call again while the service cannot be reached, does not know, or says to come later; 0s to send it once."`
}

// check returns a usage error if the flags make no sense.
func (f retryFlags) check() error { return checkNotNegative("--retry", f.Retry) }

// endless is the time for which to send a call again, until it is answered.
const endless time.Duration = 0

// insist makes the call, and makes it again while the answer is that there is none,
// for that time, or endlessly. It returns the last answer, also when ctx has ended.
func insist[T any](ctx context.Context, log *slog.Logger, limit time.Duration, call func(context.Context) (T, error)) (T, error) {
	var answer T
	var last error
	steps, level := newPace(), slog.LevelWarn // the first time; after that it is no news
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		answer, last = call(ctx)
		steps.atLeast = 0
		if e := (*lock.Error)(nil); errors.As(last, &e) && isOutage(last) {
			steps.atLeast = e.RetryAfter
			return struct{}{}, last
		}
		return struct{}{}, backoff.Permanent(last)
	}, backoff.WithBackOff(steps), backoff.WithMaxElapsedTime(limit), backoff.WithNotify(func(err error, next time.Duration) {
		log.Log(ctx, level, "no answer yet, trying again", "error", err, "again_in", next)
		level = slog.LevelDebug
	}))
	if err != nil {
		return answer, last
	}
	return answer, nil
}

// forGuard returns what a guard takes for how long to try, to which zero is the usual.
func (f retryFlags) forGuard() time.Duration {
	if f.Retry == 0 {
		return -1
	}
	return f.Retry
}

// noteRetry returns what logs that a call failed and is sent again: the first time as a
// warning, after that it is no news.
func (p *program) noteRetry() func(error) {
	level := slog.LevelWarn
	return func(err error) {
		p.log.Log(context.Background(), level, "no answer yet, trying again", "error", err)
		level = slog.LevelDebug
	}
}

// limit returns for how long to insist.
func (f retryFlags) limit() time.Duration { return max(f.Retry, time.Nanosecond) }

// isOutage is whether the same call again may be answered better.
func isOutage(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) ||
		errors.Is(err, lock.ErrTooManyWaiters) || errors.Is(err, lock.ErrRateLimited)
}

// A pace is how the time between two calls grows. It is as long as the service asks
// for at least.
type pace struct {
	*backoff.ExponentialBackOff
	atLeast time.Duration
}

func newPace() *pace {
	p := &pace{ExponentialBackOff: backoff.NewExponentialBackOff()}
	p.InitialInterval, p.MaxInterval = 100*time.Millisecond, 2*time.Second
	return p
}

// NextBackOff returns the time until the next call.
func (p *pace) NextBackOff() time.Duration { return max(p.ExponentialBackOff.NextBackOff(), p.atLeast) }
