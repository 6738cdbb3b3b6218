package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
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
		named := errors.As(err, &refusal) && strings.Contains(refusal.Detail, "lacks tables, functions or triggers of the service: "+name+". ")
		if err == nil || !named && name != "schema_migrations" { // without a version nothing is known of the others
			t.Errorf("without %s: %v", name, err)
		}
		exec(t, conn, "alter table paddock.elsewhere rename to "+name)
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("with %s again: %v", name, err)
		}
	}
}

// TestReadyNamesAMissingFunction takes each function of the schema away from a running store.
func TestReadyNamesAMissingFunction(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	s, conn := open(t, databaseURL), connect(t, databaseURL)
	rows, _ := conn.Query(t.Context(), "select proname::text from pg_proc where pronamespace = 'paddock'::regnamespace")
	functions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(functions) < 4 {
		t.Fatalf("the schema has %q, %v", functions, err)
	}
	for _, f := range functions {
		exec(t, conn, "alter function paddock."+f+" rename to elsewhere")
		missing := "lacks tables, functions or triggers of the service: " + f + "(). "
		if refusal := new(lock.Error); !errors.As(s.Ready(t.Context()), &refusal) || !strings.Contains(refusal.Detail, missing) {
			t.Errorf("without %s: %v", f, refusal)
		}
		if f == "decided_too_late" { // every commit calls it
			_, err := s.Acquire(t.Context(), acquire("l"))
			if refusal := new(lock.Error); !errors.As(err, &refusal) || !strings.Contains(refusal.Detail, "lacks tables or functions") {
				t.Errorf("an acquire without %s: %v", f, err)
			}
		}
		exec(t, conn, "alter function paddock.elsewhere rename to "+f)
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("with %s again: %v", f, err)
		}
	}
	mustAcquire(t, s, acquire("l"))
}

// TestAMissingTriggerIsNamed by a running store, and by one that is to start.
func TestAMissingTriggerIsNamed(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	s, conn := open(t, databaseURL), connect(t, databaseURL)
	const missing = "lacks tables, functions or triggers of the service: trigger policy_only_grows on epochs. "
	for _, away := range []string{"alter table paddock.epochs disable trigger policy_only_grows", "drop trigger policy_only_grows on paddock.epochs"} {
		exec(t, conn, away)
		if refusal := new(lock.Error); !errors.As(s.Ready(t.Context()), &refusal) || !strings.Contains(refusal.Detail, missing) {
			t.Errorf("%s: %v", away, refusal)
		}
		second, err := store.Open(t.Context(), databaseURL, store.Options{})
		if err == nil {
			second.Close()
		}
		if refusal := new(lock.Error); !errors.As(err, &refusal) || !strings.Contains(refusal.Detail, missing) {
			t.Errorf("%s: it starts with %v", away, err)
		}
	}
}
