package pgfence_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// Two workers were granted the lock, one after the other. The first was paused, its lease ended, and
// then it continues as if nothing had happened.
func ExampleTx() {
	ctx := context.Background()
	pool, closePool := exampleAccounts(ctx) // its database has a table accounts and the fence
	defer closePool()

	withdraw := func(worker string, token lock.Token, amount int) {
		err := pgfence.Tx(ctx, pool, "accounts", token, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "update accounts set balance = balance - $1 where id = 42", amount)
			return err
		})
		refusal := new(lock.Error)
		switch {
		case errors.Is(err, lock.ErrStaleToken) && errors.As(err, &refusal):
			fmt.Printf("%s is refused: token %d is stale, %d has been seen\n", worker, refusal.Token, refusal.Newest)
		case err != nil:
			fmt.Println(worker, "failed:", err)
		default:
			fmt.Println(worker, "has withdrawn", amount)
		}
	}
	withdraw("A", 7, 10)
	withdraw("B", 8, 20)
	withdraw("A", 7, 30)

	var balance int
	if err := pool.QueryRow(ctx, "select balance from accounts where id = 42").Scan(&balance); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the balance is", balance)
	// Output:
	// A has withdrawn 10
	// B has withdrawn 20
	// A is refused: token 7 is stale, 8 has been seen
	// the balance is 70
}

// exampleAccounts returns a pool on a new database.
func exampleAccounts(ctx context.Context) (pool *pgxpool.Pool, done func()) {
	t := &exampleTB{ctx: ctx}
	return open(t, pgtest.EmptyURL(t), paddock.InstallFence), func() {
		for i := range t.cleanups {
			t.cleanups[len(t.cleanups)-1-i]()
		}
	}
}

// An exampleTB replaces testing.T in an example.
type exampleTB struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
}

func (*exampleTB) Helper()                    {}
func (*exampleTB) Name() string               { return "Example" }
func (*exampleTB) Failed() bool               { return false }
func (e *exampleTB) Context() context.Context { return e.ctx }
func (e *exampleTB) Cleanup(f func())         { e.cleanups = append(e.cleanups, f) }
func (*exampleTB) Fatal(args ...any)          { log.Fatal(args...) }
func (*exampleTB) Fatalf(f string, a ...any)  { log.Fatalf(f, a...) }
func (*exampleTB) Errorf(f string, a ...any)  { log.Fatalf(f, a...) }
