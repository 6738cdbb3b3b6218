package migrations_test

import (
	"context"
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

var (
	connect = pgtest.Connect
	exec    = pgtest.Exec
	number  = pgtest.Number
)

// waitFor polls the condition.
func waitFor(t *testing.T, conn *pgx.Conn, condition string) {
	t.Helper()
	await.Until(t, condition, func() bool { return number(t, conn, "select ("+condition+")::integer") > 0 })
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
