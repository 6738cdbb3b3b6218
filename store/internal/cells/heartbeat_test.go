package cells_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/cells"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// TestASessionHasItsTTLFromAfterTheLastHeartbeatThatDidNotFindIt in the cell to which it moves with its leases: its holder
// counts from the instant when the heartbeat was sent. The move is held up when it has read the clock.
func TestASessionHasItsTTLFromAfterTheLastHeartbeatThatDidNotFindIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	s, err := h.in("main").OpenSession(t.Context(), lock.OpenSession{Holder: "worker", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	a := acquire(g + ":x")
	a.SessionID, a.TTL = s.ID, 0
	h.acquire("main", a)
	holdsUp, watches := pgtest.Connect(t, h.url("spare")), pgtest.Connect(t, h.url("spare"))
	pgtest.Exec(t, holdsUp, "begin")
	pgtest.Exec(t, holdsUp, "insert into paddock.placement values ($1, 'main', 1, 'refused')", g) // the last row that a move writes
	moved := make(chan error, 1)
	go func() {
		moved <- cells.PinWithin(t.Context(), "", h.cells, []string{g}, "spare", database.TurnTimeout, func(string) error { return nil })
	}()
	// Heartbeats go on. sent is when the last one was sent that did not find the session.
	var mu sync.Mutex
	var sent time.Time
	var answered int
	var heartbeats sync.WaitGroup
	over := make(chan struct{})
	heartbeats.Go(func() {
		for {
			var now time.Time
			if err := watches.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now); err != nil {
				t.Error(err)
				return
			}
			_, err := h.in("spare").RenewSession(t.Context(), lock.RenewSession{ID: s.ID})
			if err == nil {
				return
			}
			if !errors.Is(err, lock.ErrSessionLost) {
				t.Error(err)
			}
			mu.Lock()
			sent, answered = now, answered+1
			mu.Unlock()
			select {
			case <-over:
				return
			default:
			}
		}
	})
	// The move is let go in a late attempt, which waits for long, after a heartbeat was answered meanwhile, or waits itself.
	looks := pgtest.Connect(t, h.url("spare"))
	const waiting = `select coalesce(max(l.waitstart) filter (where a.application_name = '' and l.locktype = 'transactionid'), 'epoch'),
			count(*) filter (where a.application_name <> '' and l.relation = 'paddock.sessions'::regclass) > 0
		from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted`
	var since time.Time
	var attempts, before int
	var excluded bool
	await.Until(t, "a heartbeat comes while the move waits", func() bool {
		var attempt time.Time
		if err := looks.QueryRow(t.Context(), waiting).Scan(&attempt, &excluded); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if attempt.Unix() == 0 {
			return false
		}
		if !attempt.Equal(since) {
			since, before, attempts = attempt, answered, attempts+1
		}
		return attempts > 10 && (excluded || answered > before+1)
	})
	close(over)
	if !excluded {
		heartbeats.Wait()
	}
	pgtest.Exec(t, holdsUp, "rollback")
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	heartbeats.Wait()
	end := h.number("spare", "select (extract(epoch from expires_at) * 1000000)::bigint from paddock.sessions where ref = $1", int64(s.ID.Ref()))
	if promised := sent.Add(time.Hour); time.UnixMicro(end).Before(promised) {
		t.Errorf("the session ends %v before the end that a heartbeat may have told", promised.Sub(time.UnixMicro(end)))
	}
}

// TestASessionKeepsATTLThatIsChangedWhileItMoves at the source, while the move waits for its turn at the target.
func TestASessionKeepsATTLThatIsChangedWhileItMoves(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	s, err := h.in("main").OpenSession(t.Context(), lock.OpenSession{Holder: "worker", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	a := acquire(g + ":x")
	a.SessionID, a.TTL = s.ID, 0
	h.acquire("main", a)
	holdsUp := pgtest.Connect(t, h.url("spare"))
	err = cells.PinAnd(t.Context(), "", h.cells, []string{g}, "spare", func(step string) error {
		if step != cells.Steps[1] {
			return nil
		}
		pgtest.Exec(t, holdsUp, "begin")
		pgtest.Exec(t, holdsUp, "lock table paddock.records in row exclusive mode")
		go func() {
			const waits = "select count(*) from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and a.application_name = '' and not l.granted"
			await.Until(t, "the move waits", func() bool { return h.number("spare", waits) > 0 })
			if _, err := h.in("main").RenewSession(t.Context(), lock.RenewSession{ID: s.ID, TTL: time.Hour}); err != nil {
				t.Error(err)
			}
			pgtest.Exec(t, holdsUp, "rollback")
		}()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if ttl := h.number("spare", "select ttl_ms from paddock.sessions where ref = $1", int64(s.ID.Ref())); ttl != time.Hour.Milliseconds() {
		t.Errorf("the session has a TTL of %d ms", ttl)
	}
}
