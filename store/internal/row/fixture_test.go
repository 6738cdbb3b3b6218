package row

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

var (
	connect = pgtest.Connect
	exec    = pgtest.Exec
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A tester is a test, or one of package rapid.
type tester interface {
	rapid.TB
	Context() context.Context
}

// A fixture is a database, with a connection as decisions use it, and one of another session.
type fixture struct {
	url     string
	db      *database.DB
	conn    *pgx.Conn
	outside *pgx.Conn
}

func newFixture(t *testing.T) *fixture { return fixtureOf(t, pgtest.URL(t)) }

func fixtureOf(t *testing.T, url string) *fixture {
	t.Helper()
	db, err := database.Open(t.Context(), database.At(url), "", false, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Stop(); db.Close() })
	conn, err := db.Deciding.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	f := &fixture{url: url, db: db, conn: conn.Conn(), outside: connect(t, url)}
	return f
}

// exec runs a statement in the other session.
func (f *fixture) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	exec(t, f.outside, sql, args...)
}

// until repeats the query in a session of its own until it returns true.
func (f *fixture) until(t *testing.T, sql string) {
	t.Helper()
	conn := connect(t, f.url)
	await.Until(t, sql, func() bool { return pgtest.Number(t, conn, "select ("+sql+")::integer") > 0 })
}

// waitsForLock is a query that tells whether a session waits for a lock of another.
const waitsForLock = `select exists (select from pg_stat_activity
	where datname = current_database() and wait_event_type = 'Lock')`

func (f *fixture) look(t tester, names ...string) View {
	t.Helper()
	slices.Sort(names)
	v, err := Look{Names: names, Create: names}.Run(t.Context(), f.conn)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// swapOf returns a Swap with the changes, all decided when v was read.
func swapOf(v View, changes ...*Change) *Swap {
	return &Swap{Now: v.Epoch.Now, Latest: v.Epoch.Now.Add(MaxLag), Epoch: v.Epoch, Changes: changes}
}

// change returns a change of the lock.
func (v View) change(name string, change func(*lock.Record), events ...lock.Event) *Change {
	c := &Change{At: v.Epoch.Now, Before: v.Rows[name], After: v.Rows[name].Record, Events: events}
	change(&c.After)
	for i := range c.Events {
		c.After.Revision++
		c.Events[i].Name, c.Events[i].Revision, c.Events[i].At = name, c.After.Revision, v.Epoch.Now
	}
	c.After.ChangedAt = v.Epoch.Now
	return c
}

func (f *fixture) run(t tester, s *Swap) Written {
	t.Helper()
	w, err := s.Run(t.Context(), f.conn)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// grant returns a change that grants an exclusive lease of a minute.
func grant(token lock.Token, now time.Time) func(*lock.Record) {
	return func(r *lock.Record) {
		r.Token, r.LastEnd = token, 0
		r.Leases = []lock.Lease{{
			ID: lock.LeaseID(uuid.New()), Name: r.Name, Mode: lock.Exclusive, Holder: "h", Token: token, TTL: time.Minute,
			AcquiredAt: now, ExpiresAt: now.Add(time.Minute),
		}}
	}
}
