package row

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

const (
	byName   = "Index Cond: (name = n.name)"
	written  = "Index Scan using records_pkey on records r"
	endedKey = "Index Cond: (key = u.key)"
	// Each session that loses leases is locked and written by its key.
	lossLocked  = "Index Cond: (ref = t.ref)"
	lossCounted = "Index Cond: (ref = ANY (ARRAY[alive.ref]))"
	partKeys    = "Index Cond: ((name = (d.name)::text) AND (slot = d.slot) AND (place = d.place))"
)

// A planned statement is in the right form if its plan has these lines.
type planned struct {
	text string
	want []string
}

// decisions are the statements of decisions, each variant of a template by itself. They run with the settings of
// package database.
func decisions() map[string]planned {
	all := map[string]planned{
		"look":          {sqlLook.In(""), []string{byName}},
		"look, locking": {sqlLookLock.In(""), []string{byName, "LockRows"}},
		"parts":         {sqlParts.In(""), []string{byName, "Index Cond: (name = (n.name)::text)", "Index Cond: (id = p.replica)"}},
		"endings":       {sqlEndings.In(""), []string{"Index Cond: (key = n.key)", "Index Cond: (id = ("}},
	}
	for v, text := range sqlSwaps {
		p := planned{text.In(""), []string{written, "epochs_pkey"}}
		if v.Endings {
			p.want = append(p.want, endedKey)
		}
		if v.Parts {
			p.want = append(p.want, partKeys)
		}
		if v.Sessions && !v.Losses {
			p.want = append(p.want, "Index Cond: (ref = ANY (", "LockRows")
		}
		if v.Losses {
			p.want = append(p.want, lossLocked, lossCounted)
		}
		all["swap"+flagsOf(v)] = p
	}
	return all
}

// flagsOf returns what the variant of a swap has, in few letters: the name of a prepared statement has 63.
func flagsOf(v variant) (text string) {
	names := []string{"endings", "parts", "events", "sessions", "losses", "single", "whole"}
	for i, set := range []bool{v.Endings, v.Parts, v.Events, v.Sessions, v.Losses, v.Single, v.AllOrNone} {
		if set {
			text += " " + names[i]
		}
	}
	return text
}

// reads are the other statements. They run with the settings of the database.
func reads() map[string]planned {
	page := "Index Cond: ((name > $1) AND (name >= $2) AND (name < $3))"
	return map[string]planned{
		"locked":      {sqlLockedNow.In(""), []string{"(name = ANY ($1))"}},
		"existing":    {sqlExisting.In(""), []string{"(name = ANY ($1))"}},
		"read":        {sqlRead.In(""), []string{page}},
		"read, queue": {sqlReadQueue.In(""), []string{page}},
		"fence":       {sqlFence.In(""), []string{"Index Cond: (name = $1)"}},
		"slot": {sqlSlot.In(""), []string{
			"Index Cond: ((name = $1) AND (slot = $2) AND (place = 0))",
			"Index Cond: ((name = $1) AND (slot >= 1) AND (slot <= ($2 - 1)) AND (place = 0))",
		}},
	}
}

// ofSessions are the statements about sessions, whose plans are not checked.
func ofSessions() map[string]planned {
	return map[string]planned{
		"sessions":          {sqlSessions.In(""), nil},
		"expire_sessions":   {sqlExpireSessions.In(""), nil},
		"locked_sessions":   {sqlLockedSessions.In(""), nil},
		"sessions_of":       {sqlSessionsOf.In(""), nil},
		"lock_sessions":     {sqlLockSessions.In(""), nil},
		"end_sessions":      {sqlEndSessions.In(""), nil},
		"open_session":      {sqlOpenSession.In(""), nil},
		"save_session":      {sqlSaveSession.In(""), nil},
		"count_of_sessions": {sqlCountOfSessions.In(""), nil},
		"locks_of_session":  {sqlLocksOfSession.In(""), nil},
		"left_of_sessions":  {sqlLeftOfSessions.In(""), nil},
	}
}

// TestStatementsPrepare has PostgreSQL read every statement, so that a renamed column fails here and not in a request.
func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	for _, all := range []map[string]planned{decisions(), reads(), ofSessions()} {
		for name, p := range all {
			if _, err := conn.Prepare(t.Context(), name, p.text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestStatementsLookUpByKey although PostgreSQL has never analyzed the tables: it assumes then that they are nearly
// empty, and that reading all of them costs nothing. It assumes the same if they were analyzed while they were empty.
// Decisions keep their plans, so these are also right if they were made before the tables had rows.
func TestStatementsLookUpByKey(t *testing.T) {
	t.Parallel()
	tables := []string{"records", "parts", "event_batches", "event_refs", "sessions"}
	for name, before := range map[string]string{
		"never analyzed": "select", "analyzed while empty": "vacuum analyze paddock." + strings.Join(tables, ", paddock."),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := pgtest.Conn(t)
			for _, table := range tables {
				exec(t, conn, "alter table paddock."+table+" set (autovacuum_enabled = false)")
			}
			exec(t, conn, before)
			settings, err := os.ReadFile("../database/sql/settings.sql")
			if err != nil {
				t.Fatal(err)
			}
			decide := func() {
				t.Helper()
				exec(t, conn, "begin")
				exec(t, conn, string(settings), "250", true)
				looksUpByKey(t, conn, decisions(), "Seq Scan", "Materialize", "Hash Join", "Merge")
				exec(t, conn, "commit")
			}
			exec(t, conn, "insert into paddock.records (name) select 'a:' || i from generate_series(1, 5000) i")
			exec(t, conn, `insert into paddock.parts (name, slot, place, mode, ttl_ms, attachment, acquired_at, expires_at, lease_id, holder)
				select 'a:' || i, 0, i, 1, 1, i, now(), now(), gen_random_uuid(), 'h' from generate_series(1, 5000) i`)
			decide()
			exec(t, conn, "insert into paddock.event_batches select i, now(), '{}' from generate_series(1, 5000) i")
			exec(t, conn, "insert into paddock.event_refs select i, i from generate_series(1, 5000) i")
			exec(t, conn, `insert into paddock.sessions (ref, ttl_ms, grace_ms, opened_at, expires_at, id, holder)
				select i, 1, 0, now(), now(), gen_random_uuid(), 'h' from generate_series(1, 5000) i`)
			decide()
			exec(t, conn, "set plan_cache_mode = force_generic_plan")
			looksUpByKey(t, conn, reads(), "Seq Scan")
		})
	}
}

// looksUpByKey fails unless the plans have the lines that are wanted, and none of the bad nodes.
func looksUpByKey(t *testing.T, conn *pgx.Conn, statements map[string]planned, bad ...string) {
	t.Helper()
	// Sequences are one row, and have no index. PostgreSQL 16 and 17 swap the sides of a TID condition.
	same := strings.NewReplacer("Seq Scan on event_batch_ids", "", "(n.tid = ctid)", "(ctid = n.tid)")
	for name, p := range statements {
		plan := same.Replace(planOf(t, conn, p.text))
		for _, line := range p.want {
			if !strings.Contains(plan, line) {
				t.Errorf("%s is not done with %s:\n%s", name, line, plan)
			}
		}
		for _, node := range bad {
			if strings.Contains(plan, node) {
				t.Errorf("%s is done with a %s:\n%s", name, node, plan)
			}
		}
	}
}

// planOf returns how PostgreSQL runs a statement, whatever its parameters.
func planOf(t *testing.T, conn *pgx.Conn, text string) string {
	t.Helper()
	prepared, err := conn.Prepare(t.Context(), "planned", text)
	if err != nil {
		t.Fatal(err)
	}
	nulls := strings.TrimSuffix(strings.Repeat("null, ", len(prepared.ParamOIDs)), ", ")
	rows, err := conn.Query(t.Context(), "explain (costs off) execute planned ("+nulls+")", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Deallocate(t.Context(), "planned"); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
