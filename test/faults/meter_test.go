package faults_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A meter counts answers with a known outcome, and the grants among them.
type meter struct {
	answered, grants atomic.Int64

	mu      sync.Mutex
	last    time.Time     // of the grants
	longest time.Duration // between two grants since reset
}

// granted counts a grant.
func (m *meter) granted() {
	m.grants.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if !m.last.IsZero() {
		m.longest = max(m.longest, now.Sub(m.last))
	}
	m.last = now
}

// reset restarts the search for the longest time without a grant.
func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.longest = 0
}

// longestGap returns the longest time without a grant.
func (m *meter) longestGap() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.longest
}

// minRate is how many calls a second must be answered for the deployment to be under load. A fault
// without load proves nothing.
const minRate = 20

// awaitLoad waits until the deployment has been under load for a while, and returns the number of answers
// per second.
func (m *meter) awaitLoad(ctx context.Context) (rate int64, err error) {
	const slice, slices = 100 * time.Millisecond, 7
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	next := time.NewTicker(slice)
	defer next.Stop()
	var counts [slices + 1]int64 // at the end of each slice, oldest first
	for i := 0; ; i++ {
		copy(counts[:], counts[1:])
		counts[slices] = m.answered.Load()
		rate = (counts[slices] - counts[0]) * int64(time.Second/slice) / slices
		if i >= slices && rate >= minRate {
			return rate, nil
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return rate, fmt.Errorf("only %d calls a second are answered: %w", rate, context.Cause(ctx))
		}
	}
}

// A meteredService is a service whose answers are counted.
type meteredService struct {
	paddock.Service
	meter *meter
}

// countAnswer counts the call if its outcome is known.
func countAnswer[T any](m meteredService, got T, err error) (T, error) {
	switch (verify.Call{Err: err}).Outcome() {
	case verify.Done, verify.Refused:
		m.meter.answered.Add(1)
	}
	return got, err
}

func (m meteredService) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	got, err := m.Service.Acquire(ctx, a)
	if err == nil {
		m.meter.granted()
	}
	return countAnswer(m, got, err)
}

func (m meteredService) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	got, err := m.Service.Renew(ctx, r)
	return countAnswer(m, got, err)
}

func (m meteredService) Release(ctx context.Context, r lock.Release) error {
	_, err := countAnswer(m, struct{}{}, m.Service.Release(ctx, r))
	return err
}

func (m meteredService) Lock(ctx context.Context, name string) (lock.Lock, error) {
	got, err := m.Service.Lock(ctx, name)
	return countAnswer(m, got, err)
}

func (m meteredService) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	got, err := m.Service.VerifyToken(ctx, v)
	return countAnswer(m, got, err)
}

func (m meteredService) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	got, err := m.Service.WriteFenced(ctx, w)
	return countAnswer(m, got, err)
}

func (m meteredService) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	got, err := m.Service.ReadFenced(ctx, key)
	return countAnswer(m, got, err)
}
