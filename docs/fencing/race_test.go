package fencing_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestConcurrentWritesCommitInTokenOrder runs many writers of one account, at random isolation levels;
// some roll back. Each reads the balance, and then writes a new one computed from it.
func TestConcurrentWritesCommitInTokenOrder(t *testing.T) {
	t.Parallel()
	const writers, writes = 8, 150
	url := newDatabase(t)
	var wg sync.WaitGroup
	var newest, stale, conflicts atomic.Int64
	var spent atomic.Int64
	for i := range writers {
		conn := connect(t, url)
		random := rand.New(rand.NewPCG(uint64(i), 7))
		wg.Go(func() {
			for range writes {
				// Half of the writers have a new token; the others have an older one.
				token := newest.Load() - random.Int64N(4) + 1
				if random.IntN(2) == 0 {
					token = newest.Add(1)
				}
				committed, err := spend(t.Context(), conn, random, max(token, 1))
				switch state := sqlstate(err); {
				case committed:
					spent.Add(1)
				case state == "PF001":
					stale.Add(1)
				case state == "40001":
					conflicts.Add(1)
				case err != nil:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	watch := connect(t, url)
	tokens := value[[]int64](t, watch, "select tokens from accounts where id = 1")
	if !slices.IsSorted(tokens) || len(tokens) != int(spent.Load()) {
		t.Errorf("%d were told that they had written: %v", spent.Load(), tokens)
	}
	if balance := value[int64](t, watch, "select balance from accounts where id = 1"); balance != 100-spent.Load() {
		t.Errorf("the balance is %d after %d writes: one was lost", balance, spent.Load())
	}
	t.Logf("%d written, %d stale, %d to be tried again", spent.Load(), stale.Load(), conflicts.Load())
}

// spend takes 1 from account 1, or decides otherwise, in a transaction of some level.
func spend(ctx context.Context, conn *pgx.Conn, random *rand.Rand, token int64) (committed bool, err error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.TxIsoLevel(levels[random.IntN(len(levels))])})
	if err != nil {
		return false, err
	}
	err = func() error {
		if _, err := tx.Exec(ctx, "select paddock_fence('accounts:1', $1)", token); err != nil {
			return err
		}
		var balance int64
		if err := tx.QueryRow(ctx, "select balance from accounts where id = 1").Scan(&balance); err != nil {
			return err
		}
		_, err := tx.Exec(ctx,
			"update accounts set balance = $1, tokens = tokens || $2::bigint where id = 1", balance-1, token)
		return err
	}()
	if err == nil && random.IntN(5) > 0 {
		err = tx.Commit(ctx)
		return err == nil, err
	}
	if undone := tx.Rollback(ctx); undone != nil {
		return false, fmt.Errorf("%w, and then %w", err, undone)
	}
	return false, err
}
