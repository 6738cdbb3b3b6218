package migrations_test

import (
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
)

// TestMigrationKeepsTheRightsOfTheRoleThatServes makes the grants of docs/operations.md, and migrates to a release with
// another table, another sequence and another function.
func TestMigrationKeepsTheRightsOfTheRoleThatServes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn := connect(t, url)
	role := newRole(t, conn)
	_, section, _ := strings.Cut(readFile(t, "../docs/operations.md"), "\ngrant usage on schema paddock to paddock_app;\n")
	section, _, _ = strings.Cut(section, "```")
	if !strings.Contains(section, "alter default privileges") {
		t.Fatalf("docs/operations.md has other grants: %s", section)
	}
	exec(t, conn, strings.ReplaceAll("grant usage on schema paddock to paddock_app; "+section, "paddock_app", role))
	const more = `create table paddock.made_up (id bigserial primary key);
	    create function paddock.made_up() returns bigint language sql return 1;`
	if err := migrations.UpWith(t.Context(), migrations.Next(more, ""), url); err != nil {
		t.Fatal(err)
	}
	denied := lines(t, conn, `select c.relname from pg_class c
	    where c.relnamespace = 'paddock'::regnamespace and c.relname <> 'schema_migrations'
	      and (c.relkind in ('r', 'v') and not (has_table_privilege($1, c.oid, 'select')
	               and has_table_privilege($1, c.oid, 'insert') and has_table_privilege($1, c.oid, 'update')
	               and has_table_privilege($1, c.oid, 'delete'))
	           or c.relkind = 'S' and not has_sequence_privilege($1, c.oid, 'usage'))`, role)
	if len(denied) != 0 {
		t.Errorf("the role that serves has no rights on %q", denied)
	}
	denied = lines(t, conn, `select proname from pg_proc
	    where pronamespace = 'paddock'::regnamespace and not has_function_privilege($1, oid, 'execute')`, role)
	if len(denied) != 0 {
		t.Errorf("the role that serves may not call %q", denied)
	}
}
