package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestACursorWaitsForTransactionsThatAreOpen makes the commit of one replica slow. Events of later batches, committed
// before by another replica, are not shown until it has ended; then all come, in order.
func TestACursorWaitsForTransactionsThatAreOpen(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, slow, outside := open(t, url), open(t, url), connect(t, url)
	mustAcquire(t, s, acquire("before"))
	mustRelease(t, slow, mustAcquire(t, slow, acquire("slow")))
	shown, err := s.Events(t.Context(), lock.EventQuery{})
	if err != nil || len(shown.Items) != 3 {
		t.Fatalf("at first: %+v, %v", shown.Items, err)
	}
	exec(t, outside, slowCommits)
	exec(t, outside, "begin")
	exec(t, outside, "select pg_advisory_xact_lock(1, 1)")
	committed := start(slow, t.Context(), acquire("slow"))
	until(t, "the commit waits", func() bool { return waiting(t, outside) > 0 })
	mustAcquire(t, s, acquire("after"))

	page, err := s.Events(t.Context(), lock.EventQuery{Cursor: shown.Next})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("before the slow commit: %+v, %v", page.Items, err)
	}
	if events := eventsOf(t, s, "after"); len(events) != 0 {
		t.Errorf("the history of a lock shows %+v before the slow commit", events)
	}
	exec(t, outside, "commit")
	committed.granted(t)
	page, err = s.Events(t.Context(), lock.EventQuery{Cursor: page.Next})
	if err != nil || len(page.Items) != 2 || page.Items[0].Name != "slow" || page.Items[1].Name != "after" {
		t.Errorf("after the slow commit: %+v, %v", page.Items, err)
	}
}

// TestAForeignAdvisoryLockHidesNoEvents: only Paddock's own marks count.
func TestAForeignAdvisoryLockHidesNoEvents(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	exec(t, outside, "begin")
	exec(t, outside, "select pg_advisory_xact_lock(0), pg_advisory_xact_lock_shared(7), pg_advisory_xact_lock(1, 1)")
	mustAcquire(t, s, acquire("a"))
	if events := eventsOf(t, s, "a"); len(events) != 1 {
		t.Errorf("%d events", len(events))
	}
}

// TestReadersMissNothingAfterACrash has refused calls draw ids of events, which roll back and which a crash of
// PostgreSQL takes back, while readers have cursors, and PostgreSQL is killed then.
func TestReadersMissNothingAfterACrash(t *testing.T) {
	t.Parallel()
	server, url := pgtest.Server(t)
	s := open(t, url)
	outside := connect(t, url)
	exec(t, outside, "alter system set wal_writer_delay = '10s'") // nothing but commits flushes the log
	exec(t, outside, "select pg_reload_conf()")
	_ = outside.Close(t.Context())
	mustAcquire(t, s, acquire("held"))
	const refused, granted = 100, 10
	for round := range 3 {
		for range refused {
			if _, err := s.Acquire(t.Context(), acquire("held")); !errors.Is(err, lock.ErrHeld) {
				t.Fatalf("err = %v, want lock_held", err)
			}
		}
		now, err := s.Events(t.Context(), lock.EventQuery{Cursor: lock.CursorNow})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("after:%d", round)
		free, err := s.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan lock.Lock, 1)
		go func() { seen <- changedFrom(t.Context(), s, free) }()
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range granted {
			mustRelease(t, s, mustAcquire(t, s, acquire(name)))
		}
		if l := <-seen; l.Revision == 0 {
			t.Errorf("round %d: a blocking read was not answered, although the lock has changed", round)
		}
		page, err := s.Events(t.Context(), lock.EventQuery{Cursor: now.Next, Name: name, Limit: lock.MaxLimit})
		if err != nil || len(page.Items) != 2*granted || page.Gap {
			t.Errorf("round %d: a reader with a cursor of before the crash is told %d of %d events (gap: %t), %v",
				round, len(page.Items), 2*granted, page.Gap, err)
		}
	}
}

// changedFrom returns the lock once it is another than was seen, again while the database is away; unchanged if a
// blocking read was answered only when its wait was over.
func changedFrom(ctx context.Context, s lock.Service, seen lock.Lock) lock.Lock {
	for {
		l, err := s.Watch(ctx, lock.Watch{Name: seen.Name, Seen: seen.Version(), Wait: 15 * time.Second})
		if err == nil || ctx.Err() != nil {
			return l
		}
	}
}
