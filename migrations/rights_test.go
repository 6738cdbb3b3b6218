package migrations_test

import (
	"context"
	"strings"
	"testing"
)

// TestUpgradeKeepsTheRightsOfTheRoleThatServes makes the grants of docs/operations.md on schema 4, and migrates.
func TestUpgradeKeepsTheRightsOfTheRoleThatServes(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	database := conn.Config().Database
	role := "app" + database[len(database)-13:]
	exec(t, conn, "create role "+role)
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "drop owned by "+role+"; drop role "+role); err != nil {
			t.Error(err)
		}
	})
	_, section, _ := strings.Cut(readFile(t, "../docs/operations.md"), "\ngrant usage on schema paddock to paddock_app;\n")
	section, _, _ = strings.Cut(section, "```")
	if !strings.Contains(section, "alter default privileges") {
		t.Fatalf("docs/operations.md has other grants: %s", section)
	}
	exec(t, conn, strings.ReplaceAll("grant usage on schema paddock to paddock_app; "+section, "paddock_app", role))
	up(t, url)
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
