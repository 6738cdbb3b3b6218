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

// A transaction changes rows outside of the engine's batches.
type transaction[Req, Res any] struct {
	turns   []chan struct{}                                          // it first waits for a place in each, in order
	read    func(context.Context, func(context.Context) error) error // Read or First of the database
	attempt func(context.Context, Req) (Res, error)                  // if the error is no lock.Error, nothing was done
}

// transact runs the transaction, again if that may help. It is a call of package batch, so that a caller that leaves
// cancels no commit, and learns whether the change may have been done.
func transact[Req, Res any](ctx context.Context, s *Store, req Req, tx transaction[Req, Res]) (Res, error) {
	if err := s.db.Admit(ctx); err != nil {
		return *new(Res), err
	}
	c := batch.NewCall[Req, Res](req)
	c.Caller = tracing.Recorded(ctx)
	s.work.Go(func() {
		for _, turn := range tx.turns {
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
			case <-ctx.Done():
				return
			}
		}
		tx.run(s.db.Context(), c)
	})
	res, err := c.Wait(ctx)
	return res, engine.Unanswered(err)
}

func (tx transaction[Req, Res]) run(began context.Context, c *batch.Call[Req, Res]) {
	if span, ok := c.Caller.(trace.Span); ok {
		began = trace.ContextWithSpan(began, span)
	}
	err := tx.read(began, func(ctx context.Context) error {
		if !c.Begin() {
			return nil
		}
		res, err := tx.attempt(ctx, c.Req)
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
