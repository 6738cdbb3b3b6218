package store_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestACursorWaitsForTransactionsThatAreOpen plays a replica that has marked and
// drawn its event ids and is slow to commit. Events with greater ids, committed
// before, are not shown until it has; then all come, in order.
func TestACursorWaitsForTransactionsThatAreOpen(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, slow := open(t, url), connect(t, url)
	mustAcquire(t, s, acquire("before"))

	draw, err := os.ReadFile("sql/draw.sql")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, slow, "begin")
	rows, err := slow.Query(t.Context(), string(draw), 0, 1, int64(0x5ADD)<<48)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := pgx.CollectExactlyOneRow(rows, pgx.RowToMap)
	if err != nil {
		t.Fatal(err)
	}
	lower := drawn["ids"].([]any)[0]
	mustAcquire(t, s, acquire("after"))

	page, err := s.Events(t.Context(), lock.EventQuery{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Name != "before" {
		t.Fatalf("before the slow commit: %+v, %v", page.Items, err)
	}
	exec(t, slow, `insert into paddock.events (id, at, name, revision, kind, mode, token)
		values ($1, clock_timestamp(), 'slow', 1, 1, 1, 1000)`, lower)
	exec(t, slow, "commit")
	page, err = s.Events(t.Context(), lock.EventQuery{Cursor: page.Next})
	if err != nil || len(page.Items) != 2 || page.Items[0].Name != "slow" || page.Items[1].Name != "after" {
		t.Fatalf("after the slow commit: %+v, %v", page.Items, err)
	}
}

// TestWhatWasToldIsNotTakenBack plays a transaction that has read its mark before others
// drew ids, and sets it late. What they wrote was told meanwhile, and is told still.
func TestWhatWasToldIsNotTakenBack(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, late := open(t, url), connect(t, url)
	mustAcquire(t, s, acquire("a"))
	if events := eventsOf(t, s, "a"); len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	exec(t, late, "begin")
	exec(t, late, "select pg_advisory_xact_lock_shared($1)", int64(0x5ADD)<<48)
	if events := eventsOf(t, s, "a"); len(events) != 1 {
		t.Errorf("%d events beside a mark that is late", len(events))
	}
	mustAcquire(t, s, acquire("b"))
	if events := eventsOf(t, s, "b"); len(events) != 0 {
		t.Errorf("%d events after a mark that is set", len(events))
	}
}

// TestAForeignAdvisoryLockHidesNoEvents: only Paddock's own marks count.
func TestAForeignAdvisoryLockHidesNoEvents(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, foreign := open(t, url), connect(t, url)
	exec(t, foreign, "begin")
	exec(t, foreign, "select pg_advisory_xact_lock(0), pg_advisory_xact_lock_shared(7), pg_advisory_xact_lock(1, 1)")
	mustAcquire(t, s, acquire("a"))
	if events := eventsOf(t, s, "a"); len(events) != 1 {
		t.Errorf("%d events", len(events))
	}
}
