package migrations_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// schema4Database creates a database with the schema of version 4, as a release that knew no other has left it.
func schema4Database(t *testing.T) (url string, conn *pgx.Conn) {
	t.Helper()
	url = pgtest.EmptyURL(t)
	conn = connect(t, url)
	exec(t, conn, "create schema paddock")
	for version := 1; version <= 4; version++ {
		paths, err := filepath.Glob(fmt.Sprintf("%04d_*.up.sql", version))
		if err != nil || len(paths) != 1 {
			t.Fatalf("version %d has the files %q, %v", version, paths, err)
		}
		execFile(t, conn, paths[0])
	}
	exec(t, conn, "create table paddock.schema_migrations (version bigint not null primary key, dirty boolean not null)")
	exec(t, conn, "insert into paddock.schema_migrations values (4, false)")
	return url, conn
}

// schema4WithRows creates a database with a row of every kind that a replica of schema 4 writes.
func schema4WithRows(t *testing.T) (url string, conn *pgx.Conn) {
	t.Helper()
	url, conn = schema4Database(t)
	execFile(t, conn, "testdata/schema4.sql")
	return url, conn
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
