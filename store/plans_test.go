package store_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// TestEveryBatchLooksUpByKey although PostgreSQL has never looked at the tables: it believes
// then that they are nearly empty, and that reading all of them costs nothing.
//
// So it does if it has looked while there was no more than one lock.
func TestEveryBatchLooksUpByKey(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]string{"never": "select", "at an empty table": "vacuum analyze paddock.locks"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := pgtest.Conn(t)
			exec(t, conn, statementIn(t, "settings"), "250", false)
			exec(t, conn, "alter table paddock.locks set (autovacuum_enabled = false)")
			exec(t, conn, look)
			exec(t, conn, "insert into paddock.locks (name) select 'a:' || i from generate_series(1, 5000) i")
			looksUpByKey(t, conn)
		})
	}
}

func looksUpByKey(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for name, want := range map[string][]string{
		"lock_anchors":      {"Index Cond: ((name = n.name) AND (slot = 0))"},
		"create_anchors":    {"Index Cond: ((name = n.name) AND (slot = 0))"},
		"save_anchors":      {"TID Cond: (ctid = n.at)"},
		"save_bare_anchors": {"TID Cond: (ctid = n.at)"},
		"save_anchor":       {"TID Cond: (ctid = $1)"},
		"save_bare_anchor":  {"TID Cond: (ctid = $1)"},
		"drop_waiters":      {"Index Cond: ((name = (n.name)::text) AND (place = n.place))"},
		"read_queue":        {"Index Cond: (name = ANY ($1))"},
		"read_slots":        {"Index Cond: ((name = ANY ($1)) AND (slot > 0))"},
		"endings":           {"Index Cond: (lease_ref = ANY ($1))"},
		"look":              {"Index Cond: ((name = n.name) AND (slot = 0))"},
		"swap":              {"TID Cond: (ctid = n.at)", "Index Cond: (lease_ref = n.unused)", "CTE mark\n"},
		"swap_renewals":     {"TID Cond: (ctid = n.at)"},
		"swap_crowded": {"TID Cond: (ctid = n.at)", "Index Cond: (lease_ref = ANY ($10))", "CTE mark\n",
			"Index Cond: ((name = (n_1.name)::text) AND (place = n_1.place))"},
	} {
		// The sequence is one row, and has no index.
		plan := strings.ReplaceAll(planOf(t, conn, name), "Seq Scan on event_ids", "")
		plan = strings.ReplaceAll(plan, "(n.at = ctid)", "(ctid = n.at)") // PostgreSQL 16 and 17 swap the sides
		for _, line := range want {
			if !strings.Contains(plan, line) {
				t.Errorf("%s is not done with %s:\n%s", name, line, plan)
			}
		}
		for _, node := range []string{"Seq Scan", "Materialize", "Hash", "Merge"} {
			if strings.Contains(plan, node) {
				t.Errorf("%s is done with a %s:\n%s", name, node, plan)
			}
		}
	}
}

func statementIn(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("sql/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// planOf returns how PostgreSQL goes about a statement, whatever its parameters.
func planOf(t *testing.T, conn *pgx.Conn, name string) string {
	t.Helper()
	prepared, err := conn.Prepare(t.Context(), name, statementIn(t, name))
	if err != nil {
		t.Fatal(err)
	}
	nulls := strings.TrimSuffix(strings.Repeat("null, ", len(prepared.ParamOIDs)), ", ")
	rows, err := conn.Query(t.Context(), fmt.Sprintf("explain (costs off) execute %s (%s)", name, nulls), pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
