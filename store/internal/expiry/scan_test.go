package expiry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/store/internal/row"
)

var (
	connect = pgtest.Connect
	exec    = pgtest.Exec
	until   = await.Until
)

// list returns the column that the query returns.
func list[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return values
}

// none is an interval.
const none = time.Duration(0)

const addLock = `insert into paddock.records (name, lease_id, expires_at, parts, last_event, changed_at)
	values ($1, $2, clock_timestamp() + $3::interval, $4, $5, clock_timestamp() - $6::interval)`

// TestScanSetsTimersForLocksThatTimeChanges, all but those that are free.
func TestScanSetsTimersForLocksThatTimeChanges(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	w, conn, id := New(openDB(t, url), nil), connect(t, url), uuid.New()
	const soon = 200 * time.Millisecond
	before := time.Now()
	exec(t, conn, addLock, "expired", id, -time.Minute, 0, 1, none)
	exec(t, conn, addLock, "free", nil, nil, 0, 1, none)
	exec(t, conn, addLock, "held", id, time.Hour, 0, 1, none)
	exec(t, conn, addLock, "queue", id, time.Hour, 3, 1, none)
	exec(t, conn, addLock, "readers", nil, nil, 3, 1, none)
	exec(t, conn, addLock, "soon", id, soon, 0, 1, none)
	if next, err := w.scanChunk("", always, time.Hour, new(LockCounts)); err != nil || next != "" {
		t.Fatalf("continues after %q, %v", next, err)
	}
	var names []string
	until(t, "all are due but one", func() bool {
		names = append(names, w.takeDue()...)
		return len(names) >= 4
	})
	if after := time.Since(before); after < soon {
		t.Errorf("they are due after %v, want %v", after, soon)
	}
	if want := []string{"expired", "queue", "readers", "soon"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("due are %q, want %q", names, want)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if timers := slices.Collect(maps.Keys(w.timers)); !slices.Equal(timers, []string{"held"}) {
		t.Errorf("further timers are of %q", timers)
	}
}

// TestAPassWithRestsLeavesLateEndsToLaterPasses, and one without rests does not.
func TestAPassWithRestsLeavesLateEndsToLaterPasses(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, conn := openDB(t, url), connect(t, url)
	w := New(db, nil)
	exec(t, conn, addLock, "late at the start", uuid.New(), 2*horizon, 0, 1, none)
	var run sync.WaitGroup
	run.Go(func() { w.Scan(time.Hour) })
	defer func() { db.Stop(); run.Wait() }()
	timed := func(want ...string) {
		t.Helper()
		until(t, fmt.Sprintf("%q have timers", want), func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Equal(slices.Sorted(maps.Keys(w.timers)), want)
		})
	}
	timed("late at the start")
	until(t, "the first pass has ended", func() bool { return !w.LockCounts().At.IsZero() })
	exec(t, conn, "begin")
	exec(t, conn, addLock, "late", uuid.New(), 2*horizon, 0, 1, none)
	exec(t, conn, addLock, "soon", uuid.New(), horizon/2, 0, 1, none)
	exec(t, conn, "commit")
	timed("late at the start", "soon")
	w.ScanSoon()
	timed("late", "late at the start", "soon")
}

// addIdle adds locks that are or are not idle for an hour, and returns those that are.
func addIdle(t *testing.T, conn *pgx.Conn) (idle []string) {
	t.Helper()
	exec(t, conn, addLock, "held", uuid.New(), time.Hour, 0, 11, 2*time.Hour)
	exec(t, conn, addLock, "idle", nil, nil, 0, 12, 2*time.Hour)
	exec(t, conn, addLock, "new", nil, nil, 0, 13, time.Minute)
	exec(t, conn, addLock, "readers", nil, nil, 1, 14, 2*time.Hour)
	exec(t, conn, addLock, "unused", nil, nil, 0, 0, 2*time.Hour)
	exec(t, conn, addLock, "without events", nil, nil, 0, 15, 2*time.Hour)
	exec(t, conn, addLock, "closed", nil, nil, 0, 16, 2*time.Hour)
	exec(t, conn, addLock, "opened", nil, nil, 0, 17, 2*time.Hour)
	for name, at := range map[string]time.Time{"closed": time.Now().Add(time.Hour), "opened": time.Now().Add(-time.Hour)} {
		exec(t, conn, "update paddock.records set rest = json_build_object('closed_until', $2::bigint) where name = $1", name, at.UnixMicro())
	}
	exec(t, conn, `insert into paddock.event_batches (id, at, entries)
		select i, now(), '{}' from generate_series(11, 14) i`)
	return []string{"idle", "opened", "unused", "without events"}
}

// TestIdleLocksAreDeletedAndTheirHistoriesStay, as far as there are events.
func TestIdleLocksAreDeletedAndTheirHistoriesStay(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	w, conn := New(openDB(t, url), nil), connect(t, url)
	addIdle(t, conn)
	if _, err := w.scanChunk("", always, time.Hour, new(LockCounts)); err != nil {
		t.Fatal(err)
	}
	left, want := list[string](t, conn, "select name from paddock.records order by 1"), []string{"closed", "held", "new", "readers"}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	batches := list[int64](t, conn, "select id / $1 from paddock.event_refs where key = $2", row.EventsPerBatch, row.NameKey("idle"))
	if !slices.Equal(batches, []int64{12}) {
		t.Errorf("the newest events of the deleted lock are in %v", batches)
	}
	if n := list[int64](t, conn, "select count(*) from paddock.event_refs"); n[0] != 1 {
		t.Errorf("%d locks have a history", n[0])
	}
}

// TestLocksThatAreUsedAgainAreNotDeleted: since the scan has read them, one was used, one is being used, and others
// have leases.
func TestLocksThatAreUsedAgainAreNotDeleted(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	w, conn := New(openDB(t, url), nil), connect(t, url)
	idle := addIdle(t, conn)
	exec(t, conn, "update paddock.records set changed_at = clock_timestamp() where name = $1", idle[0])
	exec(t, conn, "begin")
	exec(t, conn, "select from paddock.records where name = $1 for update", idle[1])
	if err := w.prune(t.Context(), append(idle, "closed", "held", "new", "readers"), time.Hour); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "commit")
	left := list[string](t, conn, "select name from paddock.records order by 1")
	if want := []string{"closed", "held", "idle", "new", "opened", "readers"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// TestALockThatIsPrunedAgainHasAHistoryStill: it was used again meanwhile, but has no further event.
func TestALockThatIsPrunedAgainHasAHistoryStill(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	w, conn := New(openDB(t, url), nil), connect(t, url)
	exec(t, conn, "insert into paddock.event_batches (id, at, entries) values (12, now(), '{}')")
	for range 2 {
		exec(t, conn, addLock, "idle", nil, nil, 0, 12, 2*time.Hour)
		if err := w.prune(t.Context(), []string{"idle"}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if keys := list[int64](t, conn, "select key from paddock.event_refs"); !slices.Equal(keys, []int64{row.NameKey("idle")}) {
		t.Errorf("keys are %v", keys)
	}
}

// TestScanContinuesAfterAFailure: a chunk that cannot be read is read again, one that cannot be pruned is left.
func TestScanContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	w, conn := New(openDB(t, url), nil), connect(t, url)
	addIdle(t, conn)
	exec(t, conn, "alter table paddock.event_refs rename to gone")
	if next, err := w.scanChunk("a", always, time.Hour, new(LockCounts)); err == nil || next != "" {
		t.Errorf("continues after %q, %v", next, err)
	}
	exec(t, conn, "alter table paddock.records rename to gone_too")
	if next, err := w.scanChunk("a", always, time.Hour, new(LockCounts)); err == nil || next != "a" {
		t.Errorf("continues after %q, %v", next, err)
	}
}

// TestScanRunsAgainAndAgain until the database is stopped.
func TestScanRunsAgainAndAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, conn := openDB(t, url), connect(t, url)
	w := New(db, nil)
	var run sync.WaitGroup
	run.Go(func() { w.Scan(time.Hour) })
	for range 2 {
		exec(t, conn, addLock, "idle", nil, nil, 0, 0, 2*time.Hour)
		until(t, "the lock is deleted", func() bool {
			return list[int64](t, conn, "select count(*) from paddock.records")[0] == 0
		})
	}
	db.Stop()
	run.Wait()
}

// TestTheScanRestsUnlessItIsUrgent compares how long passes take with how long they rest at the least.
func TestTheScanRestsUnlessItIsUrgent(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, conn := openDB(t, url), connect(t, url)
	const chunks = 10
	exec(t, conn, `insert into paddock.records (name, parts) select to_char(i, 'FM00000'), 0 from generate_series(1, $1) i`, chunks*chunkSize-1)
	w := New(db, nil)
	var run sync.WaitGroup
	run.Go(func() { w.Scan(time.Hour) })
	defer func() { db.Stop(); run.Wait() }()
	pass := func() time.Time {
		t.Helper()
		before := w.LockCounts().At
		until(t, "a pass has ended", func() bool { return w.LockCounts().At.After(before) })
		return w.LockCounts().At
	}
	const rests = (chunks - 1) * chunkRest / 2
	began := time.Now()
	if took := pass().Sub(began); took >= rests {
		t.Errorf("the first pass has taken %v", took)
	}
	began = time.Now()
	w.ScanSoon()
	pass() // which may have begun before
	if took := pass().Sub(began); took >= rests {
		t.Errorf("an urgent pass has taken %v", took)
	}
	exec(t, conn, "delete from paddock.records where name > $1", "05000") // two chunks are left
	began = time.Now()
	for range 2 {
		pass()
	}
	if took := time.Since(began); took < 3*chunkRest/2 {
		t.Errorf("two passes have taken %v", took)
	}
}

// TestAFailedSweepIsRepeated: a scan finds the lock soon.
func TestAFailedSweepIsRepeated(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, conn := openDB(t, url), connect(t, url)
	exec(t, conn, `insert into paddock.records (name, parts) select to_char(i, 'FM00000'), 0 from generate_series(1, $1) i`, 10*chunkSize)
	exec(t, conn, addLock, "expired", uuid.New(), -time.Minute, 0, 1, none)
	sweeps := make(chan time.Time, 10)
	w := New(db, func(context.Context, []string) error {
		sweeps <- time.Now()
		if len(sweeps) == 1 {
			return errors.New("not now")
		}
		return nil
	})
	var run sync.WaitGroup
	run.Go(w.Run)
	run.Go(func() { w.Scan(time.Hour) })
	defer func() { db.Stop(); run.Wait() }()
	until(t, "it is swept again", func() bool { return len(sweeps) >= 2 })
	if first, second := <-sweeps, <-sweeps; second.Sub(first) >= 10*chunkRest/2 {
		t.Errorf("it is swept again after %v", second.Sub(first))
	}
}

// TestScanCounts what it reads, over all its chunks.
func TestScanCounts(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	w, conn, id := New(openDB(t, url), nil), connect(t, url), uuid.New()
	exec(t, conn, `insert into paddock.records (name, parts) select to_char(i, 'FM00000'), 0 from generate_series(1, $1) i`, chunkSize)
	exec(t, conn, addLock, "expired", id, -time.Minute, 0, 1, none)
	exec(t, conn, addLock, "grace", id, -time.Minute, 0, 1, none)
	exec(t, conn, addLock, "held", id, time.Hour, 0, 1, none)
	exec(t, conn, addLock, "queue", id, time.Hour, 3, 1, none)
	exec(t, conn, addLock, "readers", nil, nil, 2, 1, none)
	exec(t, conn, addLock, "readers in grace", nil, nil, 1, 1, none)
	exec(t, conn, "update paddock.records set acquired_at = clock_timestamp() - interval '1 minute' where lease_id is not null")
	exec(t, conn, `update paddock.records set rest = '{"grace": 3600000}' where name = 'grace'`)
	const addPart = `insert into paddock.parts (name, slot, place, mode, ttl_ms, attachment, holder, lease_id, unclaimed, rest, acquired_at, expires_at)
		values ($1, $2, $3, 1, 1, 1, 'h', gen_random_uuid(), $4, '{"grace": 3600000}', clock_timestamp() - $5::interval, clock_timestamp() + $6::interval)`
	exec(t, conn, addPart, "queue", 0, 1, true, 3*time.Hour, time.Hour) // it is granted, and waits no longer
	exec(t, conn, addPart, "queue", 0, 2, false, 2*time.Hour, time.Hour)
	exec(t, conn, addPart, "queue", 0, 3, false, time.Hour, time.Hour)
	exec(t, conn, addPart, "readers", 1, 0, false, 4*time.Hour, time.Hour)
	exec(t, conn, addPart, "readers", 2, 0, false, 9*time.Hour, -time.Minute)
	exec(t, conn, addPart, "readers in grace", 1, 0, false, 9*time.Hour, -time.Minute)
	if got := w.LockCounts(); got != (LockCounts{}) {
		t.Errorf("before the first pass the counts are %+v", got)
	}
	var got LockCounts
	for next, first := "", true; first || next != ""; first = false {
		var err error
		if next, err = w.scanChunk(next, always, time.Hour, &got); err != nil {
			t.Fatal(err)
		}
	}
	for what, age := range map[string]struct{ got, want time.Duration }{
		"oldest wait": {got.OldestWait, 2 * time.Hour}, "oldest lease": {got.OldestLease, 4 * time.Hour},
	} {
		if age.got < age.want || age.got > age.want+time.Hour/2 {
			t.Errorf("the %s is %v, want %v", what, age.got, age.want)
		}
	}
	got.OldestWait, got.OldestLease = 0, 0
	if want := (LockCounts{All: chunkSize + 6, Held: 3, InGrace: 2, Contended: 1, Waiters: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
