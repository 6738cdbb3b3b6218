package migrations_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
)

// killedMoments is how many times the connections of a migration are terminated, at differentMoments moments.
const killedMoments, differentMoments = 30, 6

// TestKilledMigrationIsContinued terminates the connections of Up and Down at many moments, as the end of the process
// or of the server does.
func TestKilledMigrationIsContinued(t *testing.T) {
	t.Parallel()
	url, want := pgtest.EmptyURL(t), shape(t, connect(t, pgtest.URL(t)))
	var killed int
	for i := range killedMoments {
		moment := i % differentMoments
		if killDuring(t, url, moment, func() error { return migrations.Up(t.Context(), url) }) {
			killed++
		}
		up(t, url)
		if diff := cmp.Diff(want, shape(t, connect(t, url))); diff != "" {
			t.Fatalf("killed at moment %d, the schema differs (-want +got):\n%s", moment, diff)
		}
		if killDuring(t, url, moment, func() error { return migrations.DownTo(t.Context(), url, 0) }) {
			killed++
		}
		if err := migrations.DownTo(t.Context(), url, 0); err != nil {
			t.Fatal(err)
		}
		if left := shape(t, connect(t, url)); len(left) != 0 {
			t.Fatalf("killed at moment %d, down left %q", moment, left)
		}
	}
	t.Logf("%d of %d migrations were killed", killed, 2*killedMoments)
	if killed < differentMoments {
		t.Error("so most ended before")
	}
}

// killDuring runs migrate, and terminates its connections when the transaction of a migration was seen that many times
// and once more. It reports whether migrate failed.
func killDuring(t *testing.T, url string, moment int, migrate func() error) bool {
	t.Helper()
	conn := connect(t, url)
	ctx, over := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { defer over(); done <- migrate() }()
	for seen := 0; ctx.Err() == nil; {
		const migrating = `from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
		    and backend_type = 'client backend' and query like 'begin%schema_migrations%'`
		if number(t, conn, "select count(*) "+migrating) > 0 {
			if seen++; seen > moment {
				exec(t, conn, "select pg_terminate_backend(pid) "+migrating)
				break
			}
		}
	}
	return <-done != nil
}
