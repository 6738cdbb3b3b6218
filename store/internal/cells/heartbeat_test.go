package cells_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/cells"
)

// TestNoHeartbeatIsDecidedWhileAMoveReadsTheClock in the cell to which a session moves with its leases: a heartbeat that did
// not find the session there came before, so its holder counts on nothing later. The move is held up at its last row.
func TestNoHeartbeatIsDecidedWhileAMoveReadsTheClock(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	s := h.holdInSession(g+":x", time.Hour)
	holdsUp := pgtest.Connect(t, h.url("spare"))
	pgtest.Exec(t, holdsUp, "begin")
	pgtest.Exec(t, holdsUp, "insert into paddock.placement values ($1, 'main', 1, 'refused')", g)
	moved := make(chan error, 1)
	go func() {
		moved <- cells.PinAnd(t.Context(), "", h.cells, []string{g}, "spare", func(string) error { return nil })
	}()
	const waits = `select count(*) from pg_locks w join pg_locks h using (pid) join pg_stat_activity a using (pid)
		where a.datname = current_database() and not w.granted and w.locktype = 'transactionid'
		  and h.granted and h.relation = 'paddock.sessions'::regclass and h.mode = 'ExclusiveLock'`
	await.Until(t, "the move waits with the table of sessions locked", func() bool { return h.number("spare", waits) > 0 })
	pgtest.Exec(t, holdsUp, "rollback")
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	if _, err := h.in("spare").RenewSession(t.Context(), lock.RenewSession{ID: s.ID}); err != nil {
		t.Error(err)
	}
}

// TestASessionKeepsATTLThatIsChangedWhileItMoves at the source, while the move waits for its turn at the target.
func TestASessionKeepsATTLThatIsChangedWhileItMoves(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	s := h.holdInSession(g+":x", time.Minute)
	holdsUp := pgtest.Connect(t, h.url("spare"))
	err := cells.PinAnd(t.Context(), "", h.cells, []string{g}, "spare", func(step string) error {
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
