package pgfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/lock"
)

// rollbackTimeout is how long a rollback may take before the connection is
// closed instead, which rolls back as well.
const rollbackTimeout = 2 * time.Second

// fenceQuery also sets the token for tables that are guarded by paddock_fence_guard.
const fenceQuery = "select paddock_fence($1::text, $2::bigint), set_config('paddock.token', $2::bigint::text, true)"

// Tx runs fn in a transaction that has passed the fence of the resource with the
// token, and commits it if fn returns nil. Otherwise, and when fn panics or exits
// the goroutine, it rolls back. fn must not end the transaction itself, nor use
// it after it has returned.
//
// The token is in the setting paddock.token as well, so that fn may write tables
// that are guarded by paddock_fence_guard.
//
// A stale token is a *lock.Error with the code lock.ErrStaleToken, its Newest the
// greatest token seen; a resource or token out of bounds is one with
// lock.ErrInvalid. When ctx ends before the commit was sent, nothing is written
// and the error holds the cause of that, such as lock.ErrLeaseLost. When it ends
// later, or the answer to the commit is lost, the error is lock.ErrUnknownOutcome:
// what fn wrote may be there or not. Tx does not wait then: the commit goes on
// without it, and its connection returns to the pool afterwards. Other errors
// are those of fn and of pgx, and say that nothing was written.
func Tx(ctx context.Context, pool *pgxpool.Pool, resource string, token lock.Token, fn func(pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return withCause(ctx, fmt.Errorf("pgfence: beginning a transaction: %w", err))
	}
	if err := runFenced(ctx, tx, resource, token, fn); err != nil {
		return withCause(ctx, fenceError(err, token))
	}
	return commit(ctx, tx, token)
}

// runFenced does all but commit. It rolls back unless that is to follow.
func runFenced(ctx context.Context, tx pgx.Tx, resource string, token lock.Token, fn func(pgx.Tx) error) error {
	ready := false
	defer func() {
		if !ready {
			rollback(ctx, tx)
		}
	}()
	if _, err := tx.Exec(ctx, fenceQuery, resource, int64(token)); err != nil {
		return setupError(err)
	}
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("pgfence: nothing was committed: %w", err)
	}
	ready = true
	return nil
}

// rollback gives the connection back in order, although ctx may be over. Where
// that fails pgx closes the connection, so there is nothing to report.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// commit waits for the commit until ctx ends. The commit itself has no end but
// its own: pgx would cancel it in the server.
func commit(ctx context.Context, tx pgx.Tx, token lock.Token) error {
	ended := make(chan error, 1)
	go func() { ended <- tx.Commit(context.WithoutCancel(ctx)) }()
	select {
	case err := <-ended:
		return commitResult(err, token)
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return commitResult(err, token)
	default:
		return outcomeUnknown(context.Cause(ctx))
	}
}

// withCause returns err together with why ctx has ended, if it has.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
