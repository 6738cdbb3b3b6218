package store_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open returns a store on the database, closed after the test.
func open(t *testing.T, url string) *store.Store { return openWith(t, url, store.Options{}) }

func openWith(t *testing.T, url string, o store.Options) *store.Store {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := store.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// connect returns a connection beside the store's, as another application has one.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// number returns the one number that the query gives.
func number(t *testing.T, conn *pgx.Conn, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// patience is how long until waits on a machine however slow.
const patience = 2 * time.Minute

// until asks again until the condition holds.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// waiting returns how many sessions wait for a lock that another session has. Without the first statement, PostgreSQL
// would show throughout a transaction the sessions that its first look has found.
func waiting(t *testing.T, conn *pgx.Conn) int64 {
	t.Helper()
	exec(t, conn, "select pg_stat_clear_snapshot()")
	return number(t, conn, `select count(*) from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock'`)
}

func newID() lock.LeaseID { return lock.LeaseID(uuid.New()) }

func acquire(name string) lock.Acquire {
	return lock.Acquire{Name: name, LeaseID: newID(), Holder: "worker", TTL: time.Minute}
}

func mustAcquire(t *testing.T, s lock.Service, a lock.Acquire) lock.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), a)
	if err != nil {
		t.Fatalf("acquire %s: %v", a.Name, err)
	}
	return g
}

func mustRelease(t *testing.T, s lock.Service, g lock.Grant) {
	t.Helper()
	if err := s.Release(t.Context(), lock.Release{Name: g.Name, LeaseID: g.ID}); err != nil {
		t.Fatalf("release %s: %v", g.Name, err)
	}
}

// eventsOf returns all events of the lock.
func eventsOf(t *testing.T, s lock.Service, name string) []lock.Event {
	t.Helper()
	page, err := s.Events(t.Context(), lock.EventQuery{Name: name, Limit: lock.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}
