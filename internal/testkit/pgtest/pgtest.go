//go:build unix

package pgtest

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/pgserver"
	"github.com/paddock-lock/paddock/migrations"
)

// URL returns the connection string of a fresh database with Paddock's tables.
func URL(t testing.TB) string {
	t.Helper()
	s := shared.server(t)
	template, err := s.template()
	if err != nil {
		t.Fatalf("pgtest: creating the template: %v", err)
	}
	return s.database(t, template)
}

// EmptyURL returns the connection string of an empty database, without the schema paddock.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return shared.server(t).database(t, "template0")
}

// Conn returns a connection to a fresh database with Paddock's tables. It is closed after the test.
func Conn(t testing.TB) *pgx.Conn {
	t.Helper()
	return Connect(t, URL(t))
}

// Connect returns a connection to the database, as another application has one. It is closed after the test. Its server
// may have ended by then.
func Connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// Exec runs the statement, which must succeed.
func Exec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Number returns the one number that the query gives.
func Number(t testing.TB, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// Server starts a server for this test alone, which it may kill and restart, and returns the connection string of a
// database with Paddock's tables. The server logs to the test. It takes about a second and needs PostgreSQL's
// programs, installed or fetched, because other servers cannot be crashed.
func Server(t testing.TB) (s *pgserver.Server, databaseURL string) {
	t.Helper()
	s, err := pgserver.Start(
		t.Context(),
		pgserver.Options{
			Database: "paddock", Settings: settings(), Cached: true, Stderr: t.Output(), Otherwise: otherwise,
		},
	)
	if errors.Is(err, pgserver.ErrNotFound) {
		exitWithout(err)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	if err := migrations.Up(t.Context(), s.URL("paddock"), "", nil); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s, s.URL("paddock")
}

// settings returns the settings of a server for one test. Durability is as in production.
func settings() map[string]string {
	return map[string]string{"max_connections": "200"}
}

// sharedSettings returns the settings of the shared server. It writes nothing to disk in time, because its data
// matters only while it runs; commits are as in production in all else.
func sharedSettings() map[string]string {
	return map[string]string{
		"max_connections":    strconv.Itoa(min(200+200*runtime.GOMAXPROCS(0), 1000)), // 100 for each package, of two go tests at once
		"fsync":              "off",
		"full_page_writes":   "off",
		"shared_buffers":     "64MB", // dropping a database looks at each of them
		"min_wal_size":       "32MB",
		"max_wal_size":       "256MB",
		"checkpoint_timeout": "1h",
	}
}

// exec runs one statement on its own connection.
func exec(ctx context.Context, url, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql, args...)
	return errors.Join(err, conn.Close(ctx))
}
