package fencing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

// stepTimeout is the timeout of a step that takes milliseconds.
const stepTimeout = time.Minute

var connect = pgtest.Connect

// A user's tables.
const userTables = `
create table accounts (id bigint primary key, balance bigint not null, tokens bigint[] not null default '{}');
insert into accounts values (1, 100), (2, 100);
create table ledger (resource text not null, token bigint not null);`

// newDatabase returns a database with a user's tables and the fence.
func newDatabase(t *testing.T) (url string) {
	t.Helper()
	url = pgtest.EmptyURL(t)
	must(t, connect(t, url), userTables+paddock.InstallFence)
	return url
}

// run sends SQL as psql does, several statements at once if there are several, with a timeout.
func run(ctx context.Context, conn *pgx.Conn, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	_, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

func must(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if err := run(t.Context(), conn, sql); err != nil {
		t.Fatalf("%v in:\n%s", err, sql)
	}
}

// refused fails the test unless the SQL fails with the SQLSTATE.
func refused(t *testing.T, conn *pgx.Conn, state, sql string) {
	t.Helper()
	_ = refusal(t, conn, state, sql)
}

// refusal returns the error of the SQL, which must have the SQLSTATE. Afterwards the connection is not in a
// transaction.
func refusal(t *testing.T, conn *pgx.Conn, state, sql string) *pgconn.PgError {
	t.Helper()
	err := run(t.Context(), conn, sql)
	if sqlstate(err) != state {
		t.Fatalf("got %v, want SQLSTATE %s, from:\n%s", err, state, sql)
	}
	if conn.PgConn().TxStatus() != 'I' {
		must(t, conn, "rollback")
	}
	pg := new(pgconn.PgError)
	errors.As(err, &pg)
	return pg
}

// sqlstate returns the SQLSTATE of err, empty if it has none.
func sqlstate(err error) string {
	if pg := new(pgconn.PgError); errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// value returns the single value of the query.
func value[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) T {
	t.Helper()
	rows, err := conn.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	return v
}
