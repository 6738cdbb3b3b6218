package pgfence_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/lock"
)

func TestAStaleTokenIsRefusedWithTheNewestToken(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	if err := pgfence.Tx(t.Context(), pool, "accounts", 8, withdraw10(t.Context())); err != nil {
		t.Fatal(err)
	}
	err := pgfence.Tx(t.Context(), pool, "accounts", 7, func(pgx.Tx) error {
		t.Error("the work was started")
		return nil
	})
	refusal, pg := new(lock.Error), new(pgconn.PgError)
	if !errors.Is(err, lock.ErrStaleToken) || !errors.As(err, &refusal) || refusal.Token != 7 || refusal.Newest != 8 {
		t.Errorf("got %v, want stale_token with 7 and 8: %+v", err, refusal)
	}
	if !errors.As(err, &pg) || pg.Code != "PF001" {
		t.Errorf("the error does not wrap the database's: %v", err)
	}
	if b := balance(t, pool); b != 90 {
		t.Errorf("the balance is %d, want 90", b)
	}
	if err := pgfence.Tx(t.Context(), pool, "orders", 7, withdraw10(t.Context())); err != nil {
		t.Errorf("another resource: %v", err)
	}
	waitUntilIdle(t, pool)
}

func TestAGuardedTableChecksTheTokenOfTx(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	run(t, pool, "select paddock_fence_guard('accounts')")
	if err := pgfence.Tx(t.Context(), pool, "elsewhere", 8, withdraw10(t.Context())); err != nil {
		t.Fatal(err)
	}
	err := pgfence.Tx(t.Context(), pool, "anywhere", 7, withdraw10(t.Context()))
	refusal := new(lock.Error)
	if !errors.As(err, &refusal) || refusal.Code != lock.ErrStaleToken || refusal.Newest != 8 {
		t.Errorf("a stale token at the guarded table: %v", err)
	}
	if _, err := pool.Exec(t.Context(), "delete from accounts"); err == nil {
		t.Error("the token is still set after its transaction")
	}
}

var errWork = errors.New("the work failed")

func TestATransactionThatDoesNotCommitIsRolledBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, c := range map[string]struct {
		end  func(pgx.Tx) error
		want error
	}{
		"an error":                     {func(pgx.Tx) error { return errWork }, errWork},
		"a panic":                      {func(pgx.Tx) error { panic(errWork) }, nil},
		"an exit of the goroutine":     {func(pgx.Tx) error { runtime.Goexit(); return nil }, nil},
		"a panic with rows still open": {func(tx pgx.Tx) error { _, err := tx.Query(ctx, "select 1"); panic(err) }, nil},
		"rows left open":               {func(tx pgx.Tx) error { _, err := tx.Query(ctx, "select 1"); return err }, nil},
		"an ignored failed statement":  {func(tx pgx.Tx) error { _, _ = tx.Exec(ctx, "select 1/0"); return nil }, pgx.ErrTxCommitRollback},
		"a rollback of its own":        {func(tx pgx.Tx) error { return tx.Rollback(ctx) }, pgx.ErrTxClosed},
		"a closed connection":          {func(tx pgx.Tx) error { return tx.Conn().Close(ctx) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newAccounts(t)
			err := recovered(func() error {
				return pgfence.Tx(ctx, pool, "accounts", 8, func(tx pgx.Tx) error {
					if err := withdraw10(ctx)(tx); err != nil {
						return err
					}
					return c.end(tx)
				})
			})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || errors.Is(err, lock.ErrUnknownOutcome) {
				t.Errorf("got %v", err)
			}
			if b := balance(t, pool); b != 100 {
				t.Errorf("the balance is %d", b)
			}
			if err := pgfence.Tx(ctx, pool, "accounts", 7, withdraw10(ctx)); err != nil {
				t.Errorf("token 8 was recorded, although nothing was written under it: %v", err)
			}
			waitUntilIdle(t, pool)
		})
	}
}

var errDidNotReturn = errors.New("f did not return")

// recovered returns what f returns, or errDidNotReturn if f panics or exits the goroutine.
func recovered(f func() error) error {
	ended := make(chan error, 1)
	go func() {
		err := errDidNotReturn
		defer func() {
			if p := recover(); p != nil {
				err = errDidNotReturn
			}
			ended <- err
		}()
		err = f()
	}()
	return <-ended
}
