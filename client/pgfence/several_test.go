package pgfence_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/lock"
)

func TestTxAllFencesEachResource(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	run(t, pool, "select paddock_fence_guard('accounts')") // which Tx and TxAll give the token
	if err := pgfence.TxAll(t.Context(), pool, []string{"b", "a", "b"}, 8, withdraw10(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"a", "b"} {
		err := pgfence.Tx(t.Context(), pool, resource, 7, withdraw10(t.Context()))
		if !errors.Is(err, lock.ErrStaleToken) {
			t.Errorf("%s: %v", resource, err)
		}
	}
	err := pgfence.TxAll(t.Context(), pool, []string{"c", "b"}, 7, func(pgx.Tx) error {
		t.Error("the work was started")
		return nil
	})
	refusal := new(lock.Error)
	if !errors.As(err, &refusal) || refusal.Code != lock.ErrStaleToken || refusal.Token != 7 || refusal.Newest != 8 ||
		!strings.Contains(refusal.Detail, `resource "b"`) {
		t.Errorf("a stale token: %v, %+v", err, refusal)
	}
	if err := pgfence.Tx(t.Context(), pool, "c", 1, func(pgx.Tx) error { return nil }); err != nil {
		t.Errorf("the refused call has recorded a token: %v", err)
	}
	if b := balance(t, pool); b != 90 {
		t.Errorf("the balance is %d, want 90", b)
	}
	for _, none := range [][]string{nil, {}, {"a", ""}} {
		if err := pgfence.TxAll(t.Context(), pool, none, 9, withdraw10(t.Context())); !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("resources %q: %v", none, err)
		}
	}
	waitUntilIdle(t, pool)
}

// TestTxAllNeedsTheFenceOfThisRelease, and Tx does not.
func TestTxAllNeedsTheFenceOfThisRelease(t *testing.T) {
	t.Parallel()
	pool := newAccounts(t)
	run(t, pool, "drop function paddock_fence(text[], bigint)")
	err := pgfence.TxAll(t.Context(), pool, []string{"a", "b"}, 8, withdraw10(t.Context()))
	if err == nil || !strings.Contains(err.Error(), "earlier release; run paddock fence install") {
		t.Errorf("the error is %v", err)
	}
	if err := pgfence.Tx(t.Context(), pool, "a", 8, withdraw10(t.Context())); err != nil {
		t.Error(err)
	}
}
