package guard_test

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A faultyService passes calls to a service over a connection with faults, and records them.
type faultyService struct {
	paddock.Service
	mu    sync.Mutex
	fault fault
	calls []sentCall
}

// A fault of the connection. The zero fault is none.
type fault struct {
	refuse     bool          // connections are refused; nothing is sent
	blackHole  bool          // requests are lost without an error
	loseAnswer bool          // requests arrive, answers are lost
	delay      time.Duration // of each answer
}

// A sentCall is a recorded call.
type sentCall struct {
	what string
	at   time.Time
}

func (s *faultyService) setFault(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

func (s *faultyService) sentAt(what string) (at []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.what == what {
			at = append(at, c.at)
		}
	}
	return at
}

func (s *faultyService) record(what string) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, sentCall{what, time.Now()})
	return s.fault
}

// withFault sends a call under the current fault.
func withFault[T any](ctx context.Context, s *faultyService, what string, call func(context.Context) (T, error)) (T, error) {
	var nothing T
	f := s.record(what)
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
		// No timer for a zero delay: two such timers in one bubble, on two threads, crash the
		// race detector of Go 1.26.
		return t, err
	}
	select {
	case <-time.After(f.delay):
		return t, err
	case <-ctx.Done():
		return nothing, &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Lost.", Cause: context.Cause(ctx)}
	}
}

func (s *faultyService) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return withFault(ctx, s, "acquire", func(ctx context.Context) (lock.Grant, error) {
		sent := time.Now()
		g, err := s.Service.Acquire(ctx, a)
		g.Until = g.Until.Add(time.Until(sent)) // as package client computes it
		return g, err
	})
}

func (s *faultyService) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return withFault(ctx, s, "renew", func(ctx context.Context) (lock.Grant, error) { return s.Service.Renew(ctx, r) })
}

func (s *faultyService) Release(ctx context.Context, r lock.Release) error {
	_, err := withFault(ctx, s, "release", func(ctx context.Context) (struct{}, error) { return struct{}{}, s.Service.Release(ctx, r) })
	return err
}

func (s *faultyService) OpenSession(ctx context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	return withFault(ctx, s, "open session", func(ctx context.Context) (lock.SessionGrant, error) { return s.Service.OpenSession(ctx, o) })
}

func (s *faultyService) RenewSession(ctx context.Context, r lock.RenewSession) (lock.SessionGrant, error) {
	return withFault(ctx, s, "renew session", func(ctx context.Context) (lock.SessionGrant, error) { return s.Service.RenewSession(ctx, r) })
}

func (s *faultyService) CloseSession(ctx context.Context, c lock.CloseSession) error {
	_, err := withFault(ctx, s, "close session", func(ctx context.Context) (struct{}, error) { return struct{}{}, s.Service.CloseSession(ctx, c) })
	return err
}

func (s *faultyService) Watch(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
	return withFault(ctx, s, "watch", func(ctx context.Context) (lock.Lock, error) { return s.Service.Watch(ctx, w) })
}
