package migrations_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
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

func assertVersion(t *testing.T, url string, want uint) {
	t.Helper()
	got, err := migrations.Version(t.Context(), url)
	if err != nil || got != want {
		t.Errorf("at version %d, error %v; want version %d", got, err, want)
	}
}

func TestUpDownUpLeavesTheSameSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	assertVersion(t, url, 0)
	conn := connect(t, url)
	var shapes [][]string // the schema's shape at each version
	up := func() {
		if err := migrations.Up(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		assertVersion(t, url, migrations.Latest())
		shapes = append(shapes, shape(t, conn))
	}
	up()
	up()
	if err := migrations.Down(t.Context(), url, int(migrations.Latest())); err != nil {
		t.Fatal(err)
	}
	assertVersion(t, url, 0)
	if left := shape(t, conn); len(left) != 0 {
		t.Errorf("after down the schema still has:\n%s", strings.Join(left, "\n"))
	}
	up()
	for _, got := range shapes[1:] {
		if diff := cmp.Diff(shapes[0], got); diff != "" {
			t.Errorf("the schema differs (-first +later):\n%s", diff)
		}
	}
	if len(shapes[0]) == 0 {
		t.Error("the schema is empty")
	}
}

func TestEachStepDownIsUndoneByUp(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn := connect(t, url)
	want := shape(t, conn)
	for steps := range int(migrations.Latest()) {
		if err := migrations.Down(t.Context(), url, steps+1); err != nil {
			t.Fatal(err)
		}
		assertVersion(t, url, migrations.Latest()-uint(steps)-1)
		if err := migrations.Up(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, shape(t, conn)); diff != "" {
			t.Errorf("after %d steps down and up (-before +after):\n%s", steps+1, diff)
		}
	}
}

func TestManyReplicasMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := migrations.Up(t.Context(), url); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	assertVersion(t, url, migrations.Latest())
}

func TestDownRefusesMoreStepsThanThereAre(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for _, steps := range []int{-1, 0, int(migrations.Latest()) + 1} {
		if err := migrations.Down(t.Context(), url, steps); err == nil {
			t.Errorf("%d steps down succeeded", steps)
		}
	}
	assertVersion(t, url, migrations.Latest())
}

func TestDownToAVersion(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	if err := migrations.DownTo(t.Context(), url, migrations.Latest()+1); err == nil {
		t.Error("down to a version above the latest succeeded")
	}
	for _, to := range []uint{migrations.Latest(), 7, 7, 0} {
		if err := migrations.DownTo(t.Context(), url, to); err != nil {
			t.Errorf("down to %d: %v", to, err)
		}
		assertVersion(t, url, to)
	}
}

func TestRefusedMigrationCanBeRepeated(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	conn := connect(t, url)
	exec(t, conn, "create schema paddock")
	exec(t, conn, "create table paddock.locks ()")
	err := migrations.Up(t.Context(), url)
	if err == nil || !strings.Contains(err.Error(), `relation "locks" already exists`) ||
		strings.Contains(err.Error(), "fillfactor") {
		t.Errorf("the error is %v", err)
	}
	assertVersion(t, url, 0)
	exec(t, conn, "drop table paddock.locks")
	if err := migrations.Up(t.Context(), url); err != nil {
		t.Error(err)
	}
}

func TestNewerSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	newer := migrations.Latest() + 1
	exec(t, connect(t, url), "update paddock.schema_migrations set version = $1", newer)
	var err *migrations.NewerError
	if got := migrations.Up(t.Context(), url); !errors.As(got, &err) || err.Version != newer ||
		err.Latest != migrations.Latest() {
		t.Errorf("the error is %v", got)
	}
	assertVersion(t, url, newer)
}

func TestUpStopsWaitingWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	// The advisory lock of a process that migrates.
	exec(t, connect(t, url), "select pg_advisory_lock(x'706164646f636b'::bigint)")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("cause")
	done := make(chan error)
	go func() { done <- migrations.Up(ctx, url) }()
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	assertVersion(t, url, 0)
}

func TestPoolSettingsInTheURLAreIgnored(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	if err := migrations.Up(t.Context(), withSettings(t, url, "pool_max_conns=5")); err != nil {
		t.Error(err)
	}
}

func TestMigratedDatabaseNeedsNoRightToCreate(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn := connect(t, url)
	database := conn.Config().Database
	role := "reader" + database[len(database)-13:]
	exec(t, conn, "create role "+role+" login")
	exec(t, conn, "grant "+role+" to current_user")
	exec(t, conn, "grant usage on schema paddock to "+role+"; grant select on paddock.schema_migrations to "+role)
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "drop owned by "+role+"; drop role "+role); err != nil {
			t.Error(err)
		}
	})
	if err := migrations.Up(t.Context(), withSettings(t, url, "options=-c%20role%3D"+role)); err != nil {
		t.Error(err)
	}
}
