package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestReadyNamesAMissingTable takes each table and each sequence away from a running store.
func TestReadyNamesAMissingTable(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	s, conn := open(t, databaseURL), connect(t, databaseURL)
	var relations []string
	err := conn.QueryRow(t.Context(), `select array_agg(relname::text order by relname) from pg_class
		where relnamespace = 'paddock'::regnamespace and relkind in ('r', 'S')`).Scan(&relations)
	if err != nil || !slices.Contains(relations, "records") {
		t.Fatalf("the schema has %q, %v", relations, err)
	}
	for _, name := range relations {
		exec(t, conn, "alter table paddock."+name+" rename to elsewhere")
		err := s.Ready(t.Context())
		refusal := new(lock.Error)
		named := errors.As(err, &refusal) && strings.Contains(refusal.Detail, "lacks tables or functions of the service: "+name+". ")
		if err == nil || !named && name != "schema_migrations" { // without a version nothing is known of the others
			t.Errorf("without %s: %v", name, err)
		}
		exec(t, conn, "alter table paddock.elsewhere rename to "+name)
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("with %s again: %v", name, err)
		}
	}
}

// TestReadyNamesAMissingFunction drops each function of the schema under a running store.
func TestReadyNamesAMissingFunction(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	s, conn := open(t, databaseURL), connect(t, databaseURL)
	rows, _ := conn.Query(t.Context(), `select proname::text, oid::regprocedure::text, pg_get_functiondef(oid) from pg_proc
		where pronamespace = 'paddock'::regnamespace`)
	type function struct{ Name, Signature, Definition string }
	functions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[function])
	if err != nil || len(functions) < 4 {
		t.Fatalf("the schema has %q, %v", functions, err)
	}
	for _, f := range functions {
		exec(t, conn, "drop function "+f.Signature+" cascade")
		missing := "lacks tables or functions of the service: " + f.Name + "(). "
		if refusal := new(lock.Error); !errors.As(s.Ready(t.Context()), &refusal) || !strings.Contains(refusal.Detail, missing) {
			t.Errorf("without %s: %v", f.Name, refusal)
		}
		if f.Name == "decided_too_late" { // every commit calls it
			_, err := s.Acquire(t.Context(), acquire("l"))
			if refusal := new(lock.Error); !errors.As(err, &refusal) || !strings.Contains(refusal.Detail, "lacks tables or functions") {
				t.Errorf("an acquire without %s: %v", f.Name, err)
			}
		}
		exec(t, conn, f.Definition)
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("with %s again: %v", f.Name, err)
		}
	}
	mustAcquire(t, s, acquire("l"))
}
