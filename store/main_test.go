package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// There are hundreds of calls of these.
var (
	connect = pgtest.Connect // beside the store's, as another application has one
	exec    = pgtest.Exec
	number  = pgtest.Number
	until   = await.Until
)

// open returns a store on the database, closed after the test.
func open(t *testing.T, url string) *store.Store { return replica.Store(t, url, store.Options{}) }

// patience is how long a test waits on a machine however slow.
const patience = 2 * time.Minute

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
	return lock.Acquire{Locks: lock.One(name), LeaseID: newID(), Holder: "worker", TTL: time.Minute}
}

func mustAcquire(t *testing.T, s paddock.Service, a lock.Acquire) lock.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), a)
	if err != nil {
		t.Fatalf("acquire %s: %v", a.Locks[0].Name, err)
	}
	return g
}

func mustRelease(t *testing.T, s paddock.Service, g lock.Grant) {
	t.Helper()
	if err := s.Release(t.Context(), lock.Release{Locks: []string{g.Name}, LeaseID: g.ID}); err != nil {
		t.Fatalf("release %s: %v", g.Name, err)
	}
}

// eventsOf returns all events of the lock.
func eventsOf(t *testing.T, s paddock.Service, name string) []lock.Event {
	t.Helper()
	page, err := s.Events(t.Context(), paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}
