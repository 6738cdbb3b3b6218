package pgfence_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

// newAccounts returns a pool on a new database with the fence and a table accounts, in which account
// 42 has the balance 100.
func newAccounts(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, pgtest.EmptyURL(t), paddock.InstallFence)
}

// open runs the SQL on the database, creates the accounts, and returns a pool.
func open(t testing.TB, url, sql string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return openConfig(t, config, sql)
}

// openConfig is open with a pool configuration.
func openConfig(t testing.TB, config *pgxpool.Config, sql string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	run(t, pool, sql+"create table accounts (id bigint primary key, balance bigint not null); insert into accounts values (42, 100);")
	return pool
}

// run runs statements without arguments.
func run(t testing.TB, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// balance returns the balance of account 42.
func balance(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	return count(t, pool, "select balance from accounts where id = 42")
}

// count returns the number that the query selects.
func count(t testing.TB, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// withdraw10 returns a function that withdraws 10 from account 42.
func withdraw10(ctx context.Context) func(pgx.Tx) error {
	return func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "update accounts set balance = balance - 10 where id = 42")
		return err
	}
}

// waitUntilIdle waits until all connections are back in the pool.
func waitUntilIdle(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	await.Until(t, "all connections are back", func() bool { return pool.Stat().AcquiredConns() == 0 })
}
