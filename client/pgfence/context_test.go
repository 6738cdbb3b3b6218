package pgfence_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/lock"
)

var errLost = &lock.Error{Code: lock.ErrLeaseLost, Detail: "The lease has ended."}

func TestNothingIsCommittedAfterALoss(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	for name, lose := range map[string]func(lose func(), ctx context.Context, tx pgx.Tx) error{
		"after the last statement": func(lose func(), ctx context.Context, tx pgx.Tx) error {
			defer lose()
			return withdraw10(ctx)(tx)
		},
		"before a statement": func(lose func(), ctx context.Context, tx pgx.Tx) error {
			lose()
			return withdraw10(ctx)(tx)
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := pgfence.Tx(ctx, pool, "accounts", 8, func(tx pgx.Tx) error {
			return lose(func() { cancel(errLost) }, ctx, tx)
		})
		if !errors.Is(err, lock.ErrLeaseLost) || errors.Is(err, lock.ErrUnknownOutcome) {
			t.Errorf("%s: got %v, want the cause", name, err)
		}
	}
	if b := balance(t, pool); b != 100 {
		t.Errorf("the balance is %d", b)
	}
	waitUntilIdle(t, pool)
	if n := pool.Stat().NewConnsCount(); n != 1 {
		t.Errorf("%d connections were opened, want 1: a transaction was not rolled back", n)
	}
}

// startTx runs Tx in a goroutine and returns a channel that receives its error.
func startTx(ctx context.Context, pool *pgxpool.Pool, work func(pgx.Tx) error) (ended <-chan error) {
	result := make(chan error, 1)
	go func() { result <- pgfence.Tx(ctx, pool, "accounts", 8, work) }()
	return result
}

func TestALossCancelsTheRunningStatement(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	ctx, lose := context.WithCancelCause(t.Context())
	ended := startTx(ctx, pool, func(tx pgx.Tx) error {
		if err := withdraw10(ctx)(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "select pg_sleep(600)")
		return err
	})
	await.Until(t, "the statement runs", func() bool {
		return count(t, pool, "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()") == 1
	})
	lose(errLost)
	if err := <-ended; !errors.Is(err, lock.ErrLeaseLost) || errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("got %v, want the cause", err)
	}
	if b := balance(t, pool); b != 100 {
		t.Errorf("the balance is %d", b)
	}
	waitUntilIdle(t, pool)
}

func TestALostLeaseStartsNoTransaction(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLost)
	err := pgfence.Tx(ctx, pool, "accounts", 8, func(pgx.Tx) error {
		t.Error("the work was started")
		return nil
	})
	if !errors.Is(err, lock.ErrLeaseLost) {
		t.Errorf("got %v, want the cause", err)
	}
}
