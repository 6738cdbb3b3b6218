package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// refusal is the error for replicas of an earlier release. They retry errors of class 57, and answer 503 meanwhile.
const (
	refusalCode    = "57P03"
	refusalMessage = "this replica is of an earlier release than the schema of its database; " +
		"stop it and start the new release"
)

// firstStatements are the statements with which transactions of a replica of schema 4 begin, in testdata/schema4, and
// parameters for them.
func firstStatements() map[string][]any {
	names, hour := []string{"held", "new"}, time.Hour
	return map[string][]any{
		"create_anchors": {names},
		"lock_anchors":   {names},
		"look":           {names},
		"known_anchors":  {names},
		"locked_anchors": {names},
		"draw":           {1, 1, markSpace},
		"read_lock":      {"held"},
		"list_locks":     {"", "", "", "", true, true, true, 10},
		"read_queue":     {names, hour},
		"unseated":       {names, []int64{1, 2}, []int64{3, 4}},
		"events_end":     nil,
		"list_events":    {0, math.MaxInt64, "", "", 10},
		"list_events_of": {0, math.MaxInt64, "held", 10},
		"horizon":        {5},
		"endings":        {[]int64{1}},
		"epoch":          nil,
		"newest":         nil,
		"census":         {"", 10, hour},
		"prune_events":   {0, 10, hour},
		"prune_locks":    {names, hour},
		"lock_fence":     {"held"},
		"rebase_leases":  {time.Now()},
	}
}

func TestOldReplicasAreRefused(t *testing.T) {
	t.Parallel()
	url, before := schema4WithRows(t)
	for name := range firstStatements() {
		if _, err := before.Prepare(t.Context(), name, oldStatement(t, name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	up(t, url)
	after := connect(t, url)
	for name, args := range firstStatements() {
		_, err := before.Exec(t.Context(), name, args...)
		assertRefused(t, name+", prepared before the migration", err)
		_, err = after.Exec(t.Context(), oldStatement(t, name), args...)
		assertRefused(t, name, err)
	}
}

// TestOldSwapFails checks the statement that commits decisions from a cache. A replica of schema 4 that gets another error
// than a refusal from it uses the other statements.
func TestOldSwapFails(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	if _, err := conn.Prepare(t.Context(), "swap", oldStatement(t, "swap")); err != nil {
		t.Fatal(err)
	}
	up(t, url)
	now := time.Now()
	args := []any{"{}", now, now.Add(time.Hour), 1, nil, 0, now, markSpace}
	if _, err := conn.Exec(t.Context(), "swap", args...); err == nil {
		t.Error("it succeeded")
	}
	if _, err := connect(t, url).Prepare(t.Context(), "swap", oldStatement(t, "swap")); err == nil {
		t.Error("it was prepared")
	}
}

// oldStatement returns a statement of the last release with schema 4.
func oldStatement(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, "testdata/schema4/"+name+".sql")
}

func assertRefused(t *testing.T, what string, err error) {
	t.Helper()
	pg := new(pgconn.PgError)
	if !errors.As(err, &pg) || pg.Code != refusalCode || pg.Message != refusalMessage || pg.Severity != "ERROR" {
		t.Errorf("%s: %v; want a refusal", what, err)
	}
}

// markSpace is the space of the advisory locks that tell readers of schema 4 that events may be missing.
const markSpace int64 = 0x5ADD << 48

// An oldReplica grants and releases locks with the statements of the last release with schema 4, as its transactions do.
type oldReplica struct {
	conn                                 *pgx.Conn
	create, lock, draw, save, saveEvents string
	revisions, tokens                    map[string]int64 // of the locks that it wrote
	events                               []int64
}

func newOldReplica(t *testing.T, url string) *oldReplica {
	t.Helper()
	r := &oldReplica{
		conn: connect(t, url), create: oldStatement(t, "create_anchors"), lock: oldStatement(t, "lock_anchors"),
		draw: oldStatement(t, "draw"), save: oldStatement(t, "save_anchors"), saveEvents: oldStatement(t, "save_events"),
		revisions: map[string]int64{}, tokens: map[string]int64{},
	}
	exec(t, r.conn, "set lock_timeout = '250ms'")
	return r
}

// grant grants the lock once more, whoever has it.
func (r *oldReplica) grant(ctx context.Context, name string) error {
	return pgx.BeginTxFunc(ctx, r.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, r.create, []string{name}); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, r.lock, []string{name})
		if err != nil {
			return err
		}
		var at pgtype.TID
		var revision int64
		columns := make([]any, len(rows.FieldDescriptions()))
		columns[2], columns[len(columns)-2] = &revision, &at
		if _, err := pgx.ForEachRow(rows, columns, func() error { return nil }); err != nil {
			return err
		}
		var now time.Time
		var tokens, ids []int64
		err = tx.QueryRow(ctx, r.draw, 1, 1, markSpace).
			Scan(&now, &tokens, &ids, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil)
		if err != nil {
			return err
		}
		lease, revision := pgtype.UUID{Bytes: [16]byte{15: byte(revision)}, Valid: true}, revision+1
		_, err = tx.Exec(ctx, r.save, []pgtype.TID{at}, []int64{revision}, tokens, []int16{0}, []int32{0}, []int32{0},
			[]time.Time{now}, []pgtype.UUID{lease}, []int16{1}, []string{"old"}, tokens, []int64{30000}, []int64{0}, []int64{0},
			[]time.Time{now}, []time.Time{now.Add(time.Minute)}, []*string{nil}, []int64{0}, []int64{0}, []*time.Time{nil})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, r.saveEvents, ids, []time.Time{now}, []string{name}, []int32{0}, []int64{revision}, []int16{1},
			[]int16{1}, []string{"old"}, tokens, []string{""}, []int64{0}, []int64{0})
		if err == nil {
			r.revisions[name], r.tokens[name], r.events = revision, tokens[0], append(r.events, ids[0])
		}
		return err
	})
}

// TestMigrationUnderLoad migrates while replicas of schema 4 decide. They are refused from then on, and what they have
// committed is there.
func TestMigrationUnderLoad(t *testing.T) {
	t.Parallel()
	url, conn := schema4(t)
	exec(t, conn, "select setval('paddock.event_ids', 8100)")
	var replicas []*oldReplica
	var running sync.WaitGroup
	warm := make(chan struct{}, 1000)
	for n := range 3 {
		r := newOldReplica(t, url)
		replicas = append(replicas, r)
		running.Go(func() {
			err := r.run(t.Context(), n, warm)
			assertRefused(t, "an old replica", err)
		})
	}
	for range 300 {
		<-warm
	}
	up(t, url)
	running.Wait()
	var events []int64
	revisions, tokens := map[string]int64{}, map[string]int64{}
	for _, r := range replicas {
		events = append(events, r.events...)
		for name, revision := range r.revisions {
			if revision > revisions[name] {
				revisions[name], tokens[name] = revision, r.tokens[name]
			}
		}
	}
	slices.Sort(events)
	if got := ids(t, conn, "select id from paddock.history order by id"); !slices.Equal(got, events) {
		t.Errorf("there are %d events; want the %d that were committed", len(got), len(events))
	}
	for name, revision := range revisions {
		const written = "select count(*) from paddock.records where (name, revision, token) = ($1, $2, $3) and holder = 'old'"
		if number(t, conn, written, name, revision, tokens[name]) != 1 {
			t.Errorf("%s has not the revision %d and the token %d", name, revision, tokens[name])
		}
	}
	t.Logf("%d grants were committed before the migration", len(events))
}

// run grants locks until the replica is refused. Like a replica, it repeats what waits for a lock.
func (r *oldReplica) run(ctx context.Context, n int, warm chan<- struct{}) error {
	for i := 0; ; i++ {
		name := "contended"
		if i%2 == 0 {
			name = fmt.Sprintf("lock %d of %d", i%7, n)
		}
		err := r.grant(ctx, name)
		pg := new(pgconn.PgError)
		if errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01") {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case warm <- struct{}{}:
		default:
		}
	}
}
