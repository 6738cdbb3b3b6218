package migrations_test

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// gate is an advisory lock. The second migration of the slow release waits for it half-way.
const gate = "4711"

func slow() fs.FS {
	return migrations.Next(`
	    alter table paddock.records add column made_up integer;
	    select pg_advisory_xact_lock(`+gate+`);
	    create table paddock.made_up (id bigint primary key);`, `
	    drop table paddock.made_up;
	    select pg_advisory_xact_lock(`+gate+`);
	    alter table paddock.records drop column made_up;`)
}

const (
	atTheGate = "from pg_locks where locktype = 'advisory' and objid = " + gate + " and not granted " +
		"and database = (select oid from pg_database where datname = current_database())"
	openTheGate  = "select pg_advisory_unlock(" + gate + ")"
	closeTheGate = "select pg_advisory_lock(" + gate + ")"
)

// TestMigrationContinuesAfterALostConnection ends the connections of Up and Down half-way, as the end of the server or
// of the process that migrates does. Nothing of the migration is left, and the next Up or Down is as if there had been
// none before.
func TestMigrationContinuesAfterALostConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn := connect(t, url)
	for _, c := range []struct {
		from, to uint
		migrate  func() error
	}{
		{1, 2, func() error { return migrations.UpWith(t.Context(), slow(), url) }},
		{2, 1, func() error { return migrations.DownToWith(t.Context(), slow(), url, 1) }},
	} {
		before := shape(t, conn)
		exec(t, conn, closeTheGate)
		done := make(chan error, 1)
		go func() { done <- c.migrate() }()
		waitFor(t, conn, "select exists (select "+atTheGate+")")
		exec(t, conn, "select pg_terminate_backend(pid) "+atTheGate)
		if err := <-done; err == nil {
			t.Error("a migration succeeded whose connection was ended")
		}
		exec(t, conn, openTheGate)
		assertVersion(t, url, c.from)
		if diff := cmp.Diff(before, shape(t, conn)); diff != "" {
			t.Errorf("half a migration is left (-before +after):\n%s", diff)
		}
		if err := c.migrate(); err != nil {
			t.Error(err)
		}
		assertVersion(t, url, c.to)
	}
}
