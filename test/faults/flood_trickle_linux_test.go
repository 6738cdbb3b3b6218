package faults_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// A steadyClient is calls of somebody who means well: a lock is taken, looked at and given
// back, again and again. Each of these calls must be answered, whatever others do.
type steadyClient struct {
	locks lock.Service
	mu    sync.Mutex
	took  []time.Duration
	err   error
}

const (
	steadyInterval = 100 * time.Millisecond // the least, between two times that the lock is taken
	steadyTimeout  = stepTimeout            // for an answer
)

// startSteady begins one, which ends with the test.
func (e *securedReplica) startSteady() *steadyClient {
	r := &steadyClient{locks: e.client("good")}
	ctx, cancel := context.WithCancel(e.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		next := time.NewTicker(steadyInterval)
		defer next.Stop()
		for n := 0; ; n++ {
			select {
			case <-next.C:
				r.once(ctx, fmt.Sprint("good:", n%10))
			case <-ctx.Done():
				return
			}
		}
	}()
	e.t.Cleanup(func() { cancel(); <-ended })
	return r
}

func (r *steadyClient) once(ctx context.Context, name string) {
	id := lock.LeaseID(uuid.New())
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := r.locks.Acquire(ctx, lock.Acquire{Name: name, LeaseID: id, Holder: "good"})
			return err
		},
		func(ctx context.Context) error { _, err := r.locks.Lock(ctx, name); return err },
		func(ctx context.Context) error { return r.locks.Release(ctx, lock.Release{Name: name, LeaseID: id}) },
	} {
		began := time.Now()
		err := retrySteady(ctx, call)
		if ctx.Err() == nil {
			r.note(time.Since(began), err)
		}
	}
}

// retrySteady makes the call, as often as the answer says that it is to be sent retrySteady.
func retrySteady(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, steadyTimeout)
	defer cancel()
	var refused error
	err := retry(ctx, func() error {
		err := call(ctx)
		if errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) {
			return err
		}
		refused = err
		return nil
	})
	return cmp.Or(refused, err)
}

func (r *steadyClient) note(took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, took)
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("a good call was answered after %v: %w", took, err)
	}
}

// checkCalls returns an error until more calls than that have been made.
func (r *steadyClient) checkCalls(calls int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.took) <= calls {
		return fmt.Errorf("only %d good calls have been made", len(r.took))
	}
	return nil
}

// A latencySummary is how long calls took.
type latencySummary struct {
	calls                 int
	median, most99, worst time.Duration
}

func (l latencySummary) String() string {
	const shown = 10 * time.Microsecond
	return fmt.Sprintf("%d good calls, median %v, p99 %v, worst %v", l.calls, l.median.Round(shown), l.most99.Round(shown), l.worst.Round(shown))
}

// latencies returns how long the calls took latencies it was asked last, or the first error.
func (r *steadyClient) latencies() (latencySummary, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := latencySummary{calls: len(r.took)}
	if r.err != nil || l.calls == 0 {
		return l, r.err
	}
	slices.Sort(r.took)
	l.median, l.most99, l.worst = r.took[l.calls/2], r.took[l.calls*99/100], r.took[l.calls-1]
	r.took = r.took[:0]
	return l, nil
}
