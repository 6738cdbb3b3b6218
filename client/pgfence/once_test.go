package pgfence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestOnceSkipsAnOperationThatWasCommitted: A has written and died before it could tell. B repeats the work.
func TestOnceSkipsAnOperationThatWasCommitted(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	run(t, pool, "select paddock_fence_guard('accounts')") // which Once gives the token
	for _, c := range []struct {
		token     lock.Token
		operation string
		want      bool
	}{{7, "booking:1", true}, {8, "booking:1", false}, {8, "booking:2", true}, {8, "booking:2", false}} {
		done, err := pgfence.Once(t.Context(), pool, "accounts", c.token, c.operation, withdraw10(t.Context()))
		if done != c.want || err != nil {
			t.Errorf("%s under token %d: %t, %v", c.operation, c.token, done, err)
		}
	}
	done, err := pgfence.Once(t.Context(), pool, "accounts", 7, "booking:1", withdraw10(t.Context()))
	if done || !errors.Is(err, lock.ErrStaleToken) {
		t.Errorf("a stale token: %t, %v", done, err)
	}
	if b := balance(t, pool); b != 80 {
		t.Errorf("the balance is %d, want 80", b)
	}
	waitUntilIdle(t, pool)
}

// TestOnceRecordsNothingUnlessItCommits.
func TestOnceRecordsNothingUnlessItCommits(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	ctx, cancel := context.WithCancel(t.Context())
	for name, fn := range map[string]func(pgx.Tx) error{
		"an error":      func(pgx.Tx) error { return errWork },
		"an ended work": func(tx pgx.Tx) error { err := withdraw10(t.Context())(tx); cancel(); return err },
	} {
		if done, err := pgfence.Once(ctx, pool, "accounts", 7, "booking:1", fn); done || err == nil {
			t.Errorf("%s: %t, %v", name, done, err)
		}
	}
	if done, err := pgfence.Once(t.Context(), pool, "accounts", 7, "booking:1", withdraw10(t.Context())); !done || err != nil {
		t.Errorf("after failures: %t, %v", done, err)
	}
	if b := balance(t, pool); b != 90 {
		t.Errorf("the balance is %d, want 90", b)
	}
	waitUntilIdle(t, pool)
}

// TestOnceWritesEachOperationOnce, though workers with tokens of their own try each at the same time, and some roll back,
// at every isolation level.
func TestOnceWritesEachOperationOnce(t *testing.T) {
	t.Parallel()
	const workers, operations = 6, 9
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(pgtest.EmptyURL(t))
			if err != nil {
				t.Fatal(err)
			}
			config.MaxConns = workers
			config.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
			pool := openConfig(t, config, paddock.InstallFence)
			var did atomic.Int32
			var wg sync.WaitGroup
			for worker := range workers {
				wg.Go(func() {
					for operation := range operations {
						done, err := onceRepeated(t.Context(), pool, worker, operation)
						if err != nil && !errors.Is(err, lock.ErrStaleToken) {
							t.Errorf("operation %d of worker %d: %v", operation, worker, err)
						}
						if done {
							did.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if n, b := did.Load(), balance(t, pool); n != operations || b != 100-10*operations {
				t.Errorf("%d of %d operations were told to be done, and the balance is %d", n, operations, b)
			}
			waitUntilIdle(t, pool)
		})
	}
}

// onceRepeated books the operation, and fails at it first if it is the turn of the worker to fail. It repeats what the
// database asks to be repeated.
func onceRepeated(ctx context.Context, pool *pgxpool.Pool, worker, operation int) (done bool, err error) {
	fails := worker%3 == operation%3
	for {
		token := lock.Token(10*operation + worker + 1)
		done, err = pgfence.Once(ctx, pool, "accounts", token, fmt.Sprintf("booking:%d", operation), func(tx pgx.Tx) error {
			if err := withdraw10(ctx)(tx); err != nil || !fails {
				return err
			}
			fails = false
			return errWork
		})
		if pg := (*pgconn.PgError)(nil); !errors.Is(err, errWork) && (!errors.As(err, &pg) || pg.Code != "40001") {
			return done, err
		}
	}
}

func TestOnceSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	for _, operation := range []string{"", strings.Repeat("a", 201)} {
		if _, err := pgfence.Once(t.Context(), pool, "accounts", 7, operation, withdraw10(t.Context())); !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("%d characters: %v", len(operation), err)
		}
	}
	run(t, pool, "drop function paddock_fence(text, bigint, text)")
	_, err := pgfence.Once(t.Context(), pool, "accounts", 7, "booking:1", withdraw10(t.Context()))
	if err == nil || !strings.Contains(err.Error(), "earlier release; run paddock fence install") {
		t.Errorf("the error is %v", err)
	}
}
