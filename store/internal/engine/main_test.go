package engine

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience is how long a test waits for something that happens soon, on a machine however slow.
const patience = time.Minute

// A replica is an Engine whose statements are counted.
type replica struct {
	*testing.T
	*Engine
	*statements
	self lock.Replica
}

// newReplica returns a replica with one worker. It is stopped after the test.
func newReplica(t *testing.T, url string, self lock.Replica) *replica {
	t.Helper()
	db, err := database.Open(t.Context(), database.At(url), "", false, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{T: t, statements: new(statements), self: self}
	config := db.Deciding.Config()
	config.ConnConfig.Tracer = r.statements
	db.Deciding.Close()
	if db.Deciding, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	epochs := epoch.New(db)
	catalog := policy.New(db, epochs, nil)
	e, err := epochs.Refresh()
	if err == nil {
		err = catalog.RefreshIfChanged(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Engine = New(Options{DB: db, Epochs: epochs, Policy: catalog, Self: self, Workers: 1, Publish: func([]*row.Outcome) {}})
	r.maxLag = time.Minute
	t.Cleanup(func() { db.Stop(); r.Wait(); db.Close() })
	return r
}

// statements counts the statements of a replica that decide. It is a tracer of pgx.
type statements struct {
	mu                         sync.Mutex
	looks, lockingLooks, swaps int
	afterLook                  func() // called after each look that locks nothing
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, s, new(bool))
}

func (s *statements) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.Contains(q.SQL, "written as ("):
		s.swaps++
	case strings.Contains(q.SQL, "for update") && strings.Contains(q.SQL, "made as ("):
		s.lockingLooks++
	case strings.Contains(q.SQL, "made as ("):
		s.looks++
		*ctx.Value(s).(*bool) = true
	}
}

func (s *statements) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	s.mu.Lock()
	after := s.afterLook
	s.mu.Unlock()
	if after != nil && *ctx.Value(s).(*bool) {
		after()
	}
}

// used fails unless there were as many statements since the last call.
func (r *replica) used(looks, lockingLooks, swaps int) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looks != looks || r.lockingLooks != lockingLooks || r.swaps != swaps {
		r.Errorf("there were %d looks, %d that lock, and %d swaps; want %d, %d and %d",
			r.looks, r.lockingLooks, r.swaps, looks, lockingLooks, swaps)
	}
	r.looks, r.lockingLooks, r.swaps = 0, 0, 0
}

// reset forgets the statements so far.
func (r *replica) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks, r.lockingLooks, r.swaps = 0, 0, 0
}

// wants acquires the lock, or the set of several.
func wants(names ...string) lock.Acquire {
	a := lock.Acquire{LeaseID: lock.LeaseID(uuid.New()), Holder: "h", TTL: time.Minute}
	for _, name := range names {
		a.Locks = append(a.Locks, lock.Member{Name: name})
	}
	a, err := a.Resolve(lock.Bounds{MinTTL: lock.MinTTL, MaxTTL: lock.MaxTTL, MaxWaiters: lock.DefaultMaxWaiters})
	if err != nil {
		panic(err)
	}
	return a
}

// endOf releases what a has acquired.
func endOf(a lock.Acquire) lock.Release {
	return lock.Release{Locks: a.Names(), LeaseID: a.LeaseID}
}

// must decides the command, which must not be refused.
func (r *replica) must(cmd lock.Command) *row.Outcome {
	r.Helper()
	out, err := r.Do(r.Context(), cmd)
	if err != nil {
		r.Fatalf("%T of %v: %v", cmd, cmd.Names(), err)
	}
	return out
}

func (r *replica) acquires(name string) lock.Lease { r.Helper(); return r.must(wants(name)).Leases[0] }

func (r *replica) releases(l lock.Lease) {
	r.Helper()
	r.must(lock.Release{Locks: []string{l.Name}, LeaseID: l.ID})
}

func (r *replica) renews(l lock.Lease) lock.Lease {
	r.Helper()
	return r.must(lock.Renew{Locks: []string{l.Name}, LeaseID: l.ID}).Leases[0]
}

// joins makes a call of the replica wait for the lock.
func (r *replica) joins(name string, change func(*lock.Acquire)) lock.Acquire {
	r.Helper()
	a := wants(name)
	a.Wait, a.Replica, a.Attachment = lock.MaxWait, r.self, lock.Attachment(uuid.New().ID())+1
	if change != nil {
		change(&a)
	}
	if out := r.must(a); !out.Queued {
		r.Fatalf("the call does not wait: %+v", out)
	}
	return a
}

// cache returns the cache of the only worker.
func (r *replica) cache() *cache { return &r.workers[0].cache }

// A session is a connection to the database beside the replicas.
type session struct {
	*testing.T
	*pgx.Conn
	url string
}

func connect(t *testing.T, url string) *session {
	t.Helper()
	return &session{t, pgtest.Connect(t, url), url}
}

func (s *session) exec(sql string, args ...any) {
	s.Helper()
	pgtest.Exec(s, s.Conn, sql, args...)
}

func (s *session) number(sql string, args ...any) int64 {
	s.Helper()
	return pgtest.Number(s, s.Conn, sql, args...)
}

// until repeats the query, in another session, until it returns true.
func (s *session) until(sql string) {
	s.Helper()
	other := connect(s.T, s.url)
	await.Until(s, sql, func() bool { return other.number("select ("+sql+")::integer") > 0 })
}

// events are all events, with their ids.
const events = `(select b.id * 4096 + (e.value ->> 0)::bigint as id, entry ->> 0 as name, (e.value ->> 2)::bigint as revision
	from paddock.event_batches b, unnest(b.entries) as entry, json_array_elements(entry) with ordinality e (value, ord)
	where ord > 2 and (e.value ->> 0)::bigint between 0 and 4095) events`

// waitsForLock is a query that tells whether a session waits for a lock of another.
const waitsForLock = `select exists (select from pg_stat_activity
	where datname = current_database() and wait_event_type = 'Lock')`
