package pgserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/pgserver"
	"github.com/paddock-lock/paddock/internal/testkit/testmain"
)

// childDir is an environment variable: if set, the test binary runs a server in that directory and waits to be
// killed.
const childDir = "PADDOCK_POSTGRES_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if _, err := pgserver.Find(context.Background()); err != nil { // reported once, and not by every test
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testmain.M{M: m}.Run())
}

// child commits a row, prints "committed", and waits.
func child(dir string) error {
	ctx := context.Background()
	s, err := pgserver.Start(ctx, pgserver.Options{Dir: dir, Database: "kept", Cached: true})
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.URL("kept"))
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "create table kept as select 42 as n"); err != nil {
		return err
	}
	fmt.Println("committed")
	select {}
}

// newDir returns a directory that the server's account can enter.
func newDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start starts a server until the end of t. One in a temporary directory begins with a copied data directory.
func start(t *testing.T, opts pgserver.Options) *pgserver.Server {
	t.Helper()
	opts.Cached = opts.Dir == ""
	opts.Stderr = t.Output()
	s, err := pgserver.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// query returns the single value of a statement in a database of s.
func query[T any](t *testing.T, s *pgserver.Server, database, sql string) T {
	t.Helper()
	conn := connect(t, s, database)
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return value
}

// insertRow creates the table kept with one row, n = 42.
func insertRow(t *testing.T, s *pgserver.Server, database string) {
	t.Helper()
	conn := connect(t, s, database)
	_, err := conn.Exec(t.Context(), "create table kept as select 42 as n")
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, s *pgserver.Server, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// eventually repeats ok until it returns true, or the test ends.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("still waiting: %s", what)
		}
	}
}
