package store

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/internal/tracing"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/engine"
)

// transact runs attempt, which changes rows in a transaction of its own, again if that may help. It waits for a place in
// turns first. It is a call of package batch, so that a caller that leaves cancels no commit, and learns whether the change
// may have been done. If attempt returns an error that is no lock.Error, nothing was done.
func transact[Req, Res any](ctx context.Context, s *Store, turns chan struct{}, req Req, attempt func(context.Context, Req) (Res, error)) (Res, error) {
	if err := s.db.Admit(ctx); err != nil {
		return *new(Res), err
	}
	c := batch.NewCall[Req, Res](req)
	c.Caller = tracing.Recorded(ctx)
	s.work.Go(func() {
		select {
		case turns <- struct{}{}:
			runTransaction(s, c, attempt)
			<-turns
		case <-ctx.Done():
		}
	})
	res, err := c.Wait(ctx)
	return res, engine.Unanswered(err)
}

func runTransaction[Req, Res any](s *Store, c *batch.Call[Req, Res], attempt func(context.Context, Req) (Res, error)) {
	began := s.db.Context()
	if span, ok := c.Caller.(trace.Span); ok {
		began = trace.ContextWithSpan(began, span)
	}
	err := s.db.Read(began, func(ctx context.Context) error {
		if !c.Begin() {
			return nil
		}
		res, err := attempt(ctx, c.Req)
		if err == nil || errors.As(err, new(*lock.Error)) {
			c.Answer(res, err)
			return nil
		}
		c.Rewind()
		return err
	})
	if err != nil && c.Begin() {
		c.Answer(*new(Res), err)
	}
}
