package migrations_test

import (
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
)

// TestAMigrationHoldsUpNoDecision while another session, a pg_dump for example, reads the tables.
func TestAMigrationHoldsUpNoDecision(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	reader, replica := connect(t, url), connect(t, url)
	for _, migrate := range []func() error{
		func() error { return migrations.DownTo(t.Context(), url, 11) },
		func() error { return migrations.Up(t.Context(), url) },
	} {
		for _, sql := range []string{"begin", "select from paddock.records", "select from paddock.epochs"} {
			if _, err := reader.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		migrated := make(chan error, 1)
		go func() { migrated <- migrate() }()
		waitFor(t, replica, `select exists (select from pg_locks where relation = 'paddock.records'::regclass and not granted)`)
		if _, err := replica.Exec(t.Context(), "set lock_timeout = '10s'"); err != nil {
			t.Fatal(err)
		}
		if _, err := replica.Exec(t.Context(), "insert into paddock.records (name) values (gen_random_uuid()::text)"); err != nil {
			t.Errorf("a decision beside the migration: %v", err)
		}
		if _, err := reader.Exec(t.Context(), "commit"); err != nil {
			t.Fatal(err)
		}
		if err := <-migrated; err != nil {
			t.Fatal(err)
		}
	}
}
