package pgfence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/client/pgfence"
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
