package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

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
		named := errors.As(err, &refusal) && strings.Contains(refusal.Detail, "lacks tables of the service: "+name+". ")
		if err == nil || !named && name != "schema_migrations" { // without a version nothing is known of the others
			t.Errorf("without %s: %v", name, err)
		}
		exec(t, conn, "alter table paddock.elsewhere rename to "+name)
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("with %s again: %v", name, err)
		}
	}
}
