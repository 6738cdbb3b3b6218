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

// rollbackTimeout bounds a rollback. After it the connection is closed, which rolls back as well.
const rollbackTimeout = 2 * time.Second

// reportTimeout bounds a report.
const reportTimeout = 5 * time.Second

// The queries pass the fence of one resource, of several, or of one operation, and set the token for tables that are guarded by
// paddock_fence_guard. The first also works with a fence that an earlier release has installed.
const (
	fenceOne = "select paddock_fence($1::text, $2::bigint), set_config('paddock.token', $2::bigint::text, true)"
	fenceAll = "select paddock_fence($1::text[], $2::bigint), set_config('paddock.token', $2::bigint::text, true)"
	fenceNew = "select paddock_fence($1::text, $2::bigint, $3::text), set_config('paddock.token', $2::bigint::text, true)"
)

// Tx runs fn in a transaction that has passed the resource's fence with the token, and commits it if
// fn returns nil. It rolls back if fn returns an error, panics or exits the goroutine. fn must not end
// the transaction itself or use it after returning.
//
// Tx also sets paddock.token, so fn may write tables that are guarded by paddock_fence_guard.
//
// The errors are:
//
//   - A *lock.Error with the code lock.ErrStaleToken if the token is stale. Its Newest is the greatest
//     token seen.
//   - A *lock.Error with the code lock.ErrInvalid if the resource or the token is out of bounds.
//   - An error that wraps the cause of ctx, such as lock.ErrLeaseLost, if ctx ended before the commit
//     was sent. Nothing was written.
//   - lock.ErrUnknownOutcome if ctx ended after the commit was sent, or if its answer was lost. Tx does
//     not wait for the commit then; its connection returns to the pool when the commit has ended.
//   - Any other error is from fn or pgx. Nothing was written.
func Tx(ctx context.Context, pool *pgxpool.Pool, resource string, token lock.Token, fn func(pgx.Tx) error) error {
	return runTx(ctx, pool, token, func(tx pgx.Tx) error { return pass(ctx, tx, fenceOne, resource, token) }, fn)
}

// TxAll is Tx for a transaction that writes several resources. It passes all of their fences or none, in the order of
// their names, so that transactions with the same resources take turns and do not deadlock. It is refused if one of
// the resources has seen a greater token. A name may be given twice; without any name the error is lock.ErrInvalid.
func TxAll(ctx context.Context, pool *pgxpool.Pool, resources []string, token lock.Token, fn func(pgx.Tx) error) error {
	return runTx(ctx, pool, token, func(tx pgx.Tx) error { return pass(ctx, tx, fenceAll, resources, token) }, fn)
}

// Once is Tx for an operation that is to be done once, however many workers try it. operationID identifies the operation
// among those of the resource, in 1 to 200 characters, such as "booking:1734". If a transaction with this operationID was
// committed for the resource in the last 30 days, under whatever token, Once does not call fn; it returns done = false
// and a nil error. done = true says that fn ran and that its transaction is committed.
//
// Of two transactions with one operationID, the second waits until the first has ended. After lock.ErrUnknownOutcome call
// Once again with the same operationID, also from another worker and under a newer token: it finds out.
func Once(ctx context.Context, pool *pgxpool.Pool, resource string, token lock.Token, operationID string,
	fn func(pgx.Tx) error,
) (done bool, err error) {
	isNew := false
	err = runTx(ctx, pool, token, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, fenceNew, resource, int64(token), operationID).Scan(&isNew, nil)
	}, func(tx pgx.Tx) error {
		if !isNew {
			return nil
		}
		return fn(tx)
	})
	return isNew && err == nil, err
}

// pass passes the fence of the resource or of the resources.
func pass(ctx context.Context, tx pgx.Tx, query string, resources any, token lock.Token) error {
	_, err := tx.Exec(ctx, query, resources, int64(token))
	return err
}

// runTx runs the transaction of Tx, TxAll or Once, which calls fence and then fn.
func runTx(ctx context.Context, pool *pgxpool.Pool, token lock.Token, fence, fn func(pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return withCause(ctx, fmt.Errorf("pgfence: beginning a transaction: %w", err))
	}
	if err := runFenced(ctx, tx, fence, fn); err != nil {
		return withCause(ctx, fenceError(err, token))
	}
	return commit(ctx, tx, token)
}

// runFenced does everything but the commit. On failure it rolls back.
func runFenced(ctx context.Context, tx pgx.Tx, fence, fn func(pgx.Tx) error) error {
	ok := false
	defer func() {
		if !ok {
			rollback(ctx, tx)
		}
	}()
	if err := fence(tx); err != nil {
		return setupError(err)
	}
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("pgfence: nothing was committed: %w", err)
	}
	ok = true
	return nil
}

// rollback rolls back even if ctx has ended. If that fails, pgx closes the connection, so there is
// no error to report.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// commit commits, and waits until ctx ends. The commit itself does not get ctx, because pgx would
// cancel it in the server.
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

// withCause adds the cause of ctx to err if ctx has ended.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
