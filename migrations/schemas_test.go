package migrations_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
)

// TestSchemasAreMigratedIndependently migrates two schemas of a database at the same time, and one of them down.
func TestSchemasAreMigratedIndependently(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	conn := connect(t, url)
	exec(t, conn, "select pg_advisory_lock(x'706164646f636b'::bigint)") // of a process that migrates the schema paddock
	names := []string{"team_a", "b"}
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() {
			if err := migrations.Up(t.Context(), url, name, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	usual := connect(t, pgtest.URL(t))
	for _, c := range []*pgx.Conn{conn, usual} {
		exec(t, c, "set search_path = ''") // so that each name is shown with its schema
	}
	want := shape(t, usual)
	for i, line := range want {
		want[i] = schema.Name("b").In(line)
	}
	slices.Sort(want)
	if err := migrations.DownTo(t.Context(), url, "team_a", 0, nil); err != nil {
		t.Error(err)
	}
	if left := shapeOf(t, conn, "team_a"); len(left) != 0 {
		t.Errorf("after down there still is %q", left)
	}
	got := shapeOf(t, conn, "b")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the schemas differ (-paddock +b):\n%s", diff)
	}
	for name, want := range map[string]uint{"team_a": 0, "b": migrations.Latest(), "": 0} {
		if got, err := migrations.Version(t.Context(), url, name); err != nil || got != want {
			t.Errorf("the schema %q is at version %d, %v; want %d", name, got, err, want)
		}
	}
	if err := migrations.Up(t.Context(), url, "Team", nil); err == nil {
		t.Error("a schema with a name that needs quotes was migrated")
	}
}

// TestTheTableOfAnotherProgramIsLeftAlone: others name a table of versions like Paddock's.
func TestTheTableOfAnotherProgramIsLeftAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	conn := connect(t, url)
	for name, columns := range map[string]string{
		"rails": "version varchar primary key", "golang_migrate": "version bigint primary key, dirty boolean not null default false",
		"ecto": "version bigint primary key, inserted_at timestamp default now()", "numbers": "version integer primary key",
		"other": "id bigint primary key",
	} {
		table := name + ".schema_migrations"
		exec(t, conn, "create schema "+name+"; create table "+table+" ("+columns+"); insert into "+table+" values ('1')")
		_, version := migrations.Version(t.Context(), url, name)
		for does, err := range map[string]error{
			"up": migrations.Up(t.Context(), url, name, nil), "down": migrations.DownTo(t.Context(), url, name, 0, nil), "version": version,
		} {
			if err == nil || !strings.Contains(err.Error(), table+" is of another program; use another schema") {
				t.Errorf("%s of %s: %v", does, name, err)
			}
		}
		if left := lines(t, conn, "select s::text from "+table+" as s"); len(left) != 1 {
			t.Errorf("%s has %q", table, left)
		}
	}
}

// TestWordsThatPostgreSQLReservesNameNoSchema compares the words with those of the server.
func TestWordsThatPostgreSQLReservesNameNoSchema(t *testing.T) {
	t.Parallel()
	for _, word := range lines(t, pgtest.Conn(t), "select word from pg_get_keywords() where catcode in ('R', 'T')") {
		if _, err := schema.Parse(word); err == nil {
			t.Errorf("a schema may have the name %s", word)
		}
	}
}
