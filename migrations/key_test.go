package migrations_test

import (
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// TestEveryTableHasAPrimaryKey: without one, a publication for all tables refuses each update and delete.
func TestEveryTableHasAPrimaryKey(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	exec(t, conn, "set search_path = public; "+readFile(t, "../docs/fencing/install.sql"))
	if got := lines(t, conn, `select c.oid::regclass::text from pg_class c
	    where c.relkind in ('r', 'p') and c.relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
	      and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`); len(got) != 0 {
		t.Errorf("tables without a primary key: %q", got)
	}
	if n := number(t, conn, "select count(*) from pg_class where relname in ('horizon', 'paddock_fences', 'schema_migrations')"); n != 3 {
		t.Errorf("%d of 3 tables exist", n)
	}
}
