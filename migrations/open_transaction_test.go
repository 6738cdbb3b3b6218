package migrations_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/schema4"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
)

// TestMigrationWaitsForOpenTransactions migrates while a transaction of a replica of schema 4 has drawn the id of an
// event, and has not committed it. Until it does, other replicas go on. Then the event is converted, too, and what
// they have committed meanwhile, whatever the default isolation of the database.
func TestMigrationWaitsForOpenTransactions(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	open := connect(t, url)
	tx, err := open.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const event = `insert into paddock.events (id, at, name, revision, kind, token, holder, mode, lease_ref)
	    values (4001, '2026-01-02', 'free', 35, 1, 18, 'late', 1, 4001)`
	for _, sql := range []string{
		"update paddock.locks set revision = 35 where name = 'free'",
		"select pg_advisory_xact_lock_shared(x'5ADD'::bigint << 48 | 4000)",
		event,
	} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	migrated := make(chan error)
	serializable := withSettings(t, url, "options=-c%20default_transaction_isolation%3Dserializable")
	go func() { migrated <- migrations.Up(t.Context(), serializable) }()
	waitFor(t, conn, `select exists (select from pg_locks where relation = 'paddock.locks'::regclass and not granted)`)
	grantMeanwhile(t, schema4.NewReplica(t, url))
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	const found = `select count(*) from paddock.history h join paddock.event_refs r on r.id = h.id and r.key = 4001
	    where h.id = 4001 and h.name = 'free' and h.holder = 'late'`
	if number(t, conn, found) != 1 {
		t.Error("the event of the open transaction was not converted")
	}
	if got := number(t, conn, "select revision from paddock.records where name = 'free'"); got != 35 {
		t.Errorf("the lock of the open transaction has the revision %d", got)
	}
	if got := number(t, conn, "select count(*) from paddock.records where name = 'meanwhile'"); got != 1 {
		t.Errorf("a lock that was granted during the conversion has %d rows", got)
	}
}

// waitFor polls the condition.
func waitFor(t *testing.T, conn *pgx.Conn, condition string) {
	t.Helper()
	again, enough := time.NewTicker(5*time.Millisecond), time.After(proctest.Patience)
	defer again.Stop()
	for {
		var met bool
		if err := conn.QueryRow(t.Context(), condition).Scan(&met); err != nil {
			t.Fatal(err)
		}
		if met {
			return
		}
		select {
		case <-again.C:
		case <-enough:
			t.Fatalf("timed out waiting for %s", condition)
		}
	}
}

// grantMeanwhile grants a lock, and repeats that like a replica whose statement has waited too long.
func grantMeanwhile(t *testing.T, r *schema4.Replica) {
	t.Helper()
	for {
		_, _, err := r.Grant(t.Context(), "meanwhile", lock.LeaseID(uuid.New()), time.Minute)
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "55P03" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}
