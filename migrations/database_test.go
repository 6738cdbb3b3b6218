package migrations_test

import (
	"context"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// connect opens a connection that is closed after the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// withSettings returns the URL with further settings in its query.
func withSettings(t *testing.T, databaseURL, settings string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery += "&" + settings
	return u.String()
}

func exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// execFile runs all statements of a file in one transaction.
func execFile(t *testing.T, conn *pgx.Conn, path string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(t.Context(), readFile(t, path)).ReadAll(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lines returns the rows of a query with one column of text.
func lines(t *testing.T, conn *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return lines
}

// number returns the only value of a query.
func number(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// waitFor polls the condition.
func waitFor(t *testing.T, conn *pgx.Conn, condition string) {
	t.Helper()
	again, enough := time.NewTicker(5*time.Millisecond), time.After(proctest.Patience)
	defer again.Stop()
	for {
		var met bool
		if err := conn.QueryRow(t.Context(), condition).Scan(&met); err != nil {
			t.Fatal(err)
		}
		if met {
			return
		}
		select {
		case <-again.C:
		case <-enough:
			t.Fatalf("timed out waiting for %s", condition)
		}
	}
}

// newRole creates a role, in which the test's user is, and drops it after the test.
func newRole(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	database := conn.Config().Database
	role := "app" + database[len(database)-13:]
	exec(t, conn, "create role "+role+" login")
	exec(t, conn, "grant "+role+" to current_user")
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "drop owned by "+role+"; drop role "+role); err != nil {
			t.Error(err)
		}
	})
	return role
}
