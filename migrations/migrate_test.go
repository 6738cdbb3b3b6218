package migrations_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
)

func assertVersion(t *testing.T, url string, want uint) {
	t.Helper()
	got, err := migrations.Version(t.Context(), url, "")
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
		if err := migrations.Up(t.Context(), url, "", nil); err != nil {
			t.Fatal(err)
		}
		assertVersion(t, url, migrations.Latest())
		shapes = append(shapes, shape(t, conn))
	}
	up()
	up()
	if err := migrations.Down(t.Context(), url, "", int(migrations.Latest()), nil); err != nil {
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

// TestManyReplicasMigrateAtOnce migrates an empty database, and then one of the release before.
func TestManyReplicasMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	next := migrations.Next("alter table paddock.records add column made_up integer;", "")
	for version, up := range []func() error{
		func() error { return migrations.Up(t.Context(), url, "", nil) },
		func() error { return migrations.UpWith(t.Context(), next, url) },
	} {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := up(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		assertVersion(t, url, uint(version)+1)
	}
}

func TestDownRefusesMoreStepsThanThereAre(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for _, steps := range []int{-1, 0, int(migrations.Latest()) + 1} {
		if err := migrations.Down(t.Context(), url, "", steps, nil); err == nil {
			t.Errorf("%d steps down succeeded", steps)
		}
	}
	assertVersion(t, url, migrations.Latest())
}

// TestUpAndDownToAVersion goes to the version of a made-up next release, and back. This release leaves that version
// alone.
func TestUpAndDownToAVersion(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn := connect(t, url)
	first := shape(t, conn)
	next := migrations.Next("alter table paddock.records add column made_up integer;",
		"alter table paddock.records drop column made_up;")
	exec(t, conn, "insert into paddock.records (name) values ('kept')")
	if err := migrations.UpWith(t.Context(), next, url); err != nil {
		t.Fatal(err)
	}
	assertVersion(t, url, 2)
	exec(t, conn, "update paddock.records set made_up = 1 where name = 'kept'")
	for name, err := range map[string]error{
		"up": migrations.Up(t.Context(), url, "", nil), "down": migrations.DownTo(t.Context(), url, "", 0, nil),
	} {
		var newer *migrations.NewerError
		if !errors.As(err, &newer) || newer.Version != 2 || newer.Latest != migrations.Latest() {
			t.Errorf("%s of the release before: %v", name, err)
		}
	}
	for _, to := range []uint{2, 1, 1} {
		if err := migrations.DownToWith(t.Context(), next, url, to); err != nil {
			t.Errorf("down to %d: %v", to, err)
		}
		assertVersion(t, url, to)
	}
	if diff := cmp.Diff(first, shape(t, conn)); diff != "" {
		t.Errorf("the schema differs (-before +after):\n%s", diff)
	}
	if n := number(t, conn, "select count(*) from paddock.records where name = 'kept'"); n != 1 {
		t.Errorf("%d rows are left of 1", n)
	}
	if err := migrations.DownToWith(t.Context(), next, url, 2); err == nil {
		t.Error("down to a version above that of the schema succeeded")
	}
	if err := migrations.DownToWith(t.Context(), next, url, 0); err != nil {
		t.Error(err)
	}
	assertVersion(t, url, 0)
}

// TestRefusedMigrationCanBeRepeated: what PostgreSQL refuses leaves nothing behind, and the error names its line.
func TestRefusedMigrationCanBeRepeated(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn := connect(t, url)
	want := shape(t, conn)
	exec(t, conn, "create table public.taken ()")
	const file = "alter table paddock.records add column made_up integer;\n\ncreate table public.taken ();\n"
	err := migrations.UpWith(t.Context(), migrations.Next(file, ""), url)
	if err == nil || !strings.Contains(err.Error(), `relation "taken" already exists`) ||
		!strings.Contains(err.Error(), "from version 1 to 2") {
		t.Errorf("the error is %v", err)
	}
	err = migrations.UpWith(t.Context(), migrations.Next("select 1;\n\nselect nothing;\n", ""), url)
	if err == nil || !strings.Contains(err.Error(), "0002_made_up.up.sql, line 3") {
		t.Errorf("the error is %v", err)
	}
	assertVersion(t, url, 1)
	if diff := cmp.Diff(want, shape(t, conn)); diff != "" {
		t.Errorf("the schema differs (-before +after):\n%s", diff)
	}
	exec(t, conn, "drop table public.taken")
	if err := migrations.UpWith(t.Context(), migrations.Next(file, ""), url); err != nil {
		t.Error(err)
	}
	assertVersion(t, url, 2)
}

func TestUpStopsWaitingWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	// The advisory lock of a process that migrates.
	exec(t, connect(t, url), "select pg_advisory_lock(x'706164646f636b'::bigint)")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("cause")
	done := make(chan error)
	go func() { done <- migrations.Up(ctx, url, "", nil) }()
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	assertVersion(t, url, 0)
}

func TestPoolSettingsInTheURLAreIgnored(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	if err := migrations.Up(t.Context(), withSettings(t, url, "pool_max_conns=5"), "", nil); err != nil {
		t.Error(err)
	}
}

func TestMigratedDatabaseNeedsNoRightToCreate(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn := connect(t, url)
	role := newRole(t, conn)
	exec(t, conn, "grant usage on schema paddock to "+role+"; grant select on paddock.schema_migrations to "+role)
	if err := migrations.Up(t.Context(), withSettings(t, url, "options=-c%20role%3D"+role), "", nil); err != nil {
		t.Error(err)
	}
}
