package cells_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/cells"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// blockers are the transactions that each step of a move may wait for.
var blockers = map[string]struct {
	before string // the step before it
	cell   string
	locks  string // what the other transaction does
	waits  int    // for so often as it must be seen waiting, mostly more than a Catalog tries
}{
	"a decision at the target":                 {"", "spare", "lock table paddock.records in row exclusive mode", 9},
	"a decision at the source":                 {cells.Steps[0], "main", "lock table paddock.records in row exclusive mode", 9},
	"a heartbeat at the source":                {cells.Steps[1], "main", "select from paddock.sessions for update", 2},
	"a decision at the target, for the switch": {cells.Steps[1], "spare", "lock table paddock.records in row exclusive mode", 9},
	"a heartbeat at the target":                {cells.Steps[1], "spare", "lock table paddock.sessions in row exclusive mode", 9},
	"a decision at the source, at the end":     {cells.Steps[2], "main", "lock table paddock.records in row exclusive mode", 9},
	"an ended session at the target":           {cells.Steps[2], "spare", "select from paddock.sessions for update", 2},
}

// A blocked is a move that waits for another transaction.
type blocked struct {
	*harness
	group string
	held  lock.Grant
	end   func()     // ends the other transaction
	moved chan error // the result of the move
}

// block moves a group from main to spare, with a lease, and one in a session that is closed on the way. The other
// transaction begins after the step before.
func (h *harness) block(before, cell, locks string, turn time.Duration) *blocked {
	h.Helper()
	b := &blocked{harness: h, group: h.groupOf("main", 0), moved: make(chan error, 1)}
	b.held = h.acquire("main", acquire(b.group+":x"))
	s := h.holdInSession(b.group+":in-session", time.Hour)
	other := pgtest.Connect(h, h.url(cell))
	begin := func() {
		pgtest.Exec(h, other, "begin")
		pgtest.Exec(h, other, locks)
	}
	b.end = func() { pgtest.Exec(h, other, "rollback") }
	if before == "" {
		begin()
	}
	go func() {
		b.moved <- cells.PinWithin(h.Context(), "", h.cells, []string{b.group}, "spare", turn, func(step string) error {
			if step == cells.Steps[2] { // its end has no effect there
				if err := h.in("main").CloseSession(h.Context(), lock.CloseSession{ID: s.ID}); !errors.Is(err, lock.ErrUnknownOutcome) {
					h.Errorf("closing the session is answered %v, although a lock of it has left", err)
				}
			}
			if step == before {
				begin()
			}
			return nil
		})
	}()
	return b
}

// TestACommandWaitsForItsTurn at each step, for longer than a statement waits for what is locked.
func TestACommandWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	for name, c := range blockers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, "main", "spare")
			b := h.block(c.before, c.cell, c.locks, 5*time.Minute) // a busy machine shows few waits in database.TurnTimeout
			conn, seen := pgtest.Connect(t, h.url(c.cell)), map[time.Time]bool{}
			await.Until(t, "it has waited often", func() bool {
				var since time.Time
				const waiting = `select coalesce(max(l.waitstart), 'epoch') from pg_locks l join pg_stat_activity a using (pid)
					where a.datname = current_database() and a.application_name = '' and not l.granted`
				if err := conn.QueryRow(t.Context(), waiting).Scan(&since); err != nil {
					t.Fatal(err)
				}
				if since.Unix() > 0 {
					seen[since] = true
				}
				select {
				case err := <-b.moved:
					t.Fatalf("it has ended after %d waits: %v", len(seen), err)
				default:
				}
				return len(seen) >= c.waits
			})
			b.end()
			if err := <-b.moved; err != nil {
				t.Fatal(err)
			}
			h.isIn("spare", b.group)
			h.renew("spare", b.held)
		})
	}
}

// TestACommandThatGivesUpSaysWhatItHasWaitedFor. Then the group is in one cell at most, and the same command finishes it.
func TestACommandThatGivesUpSaysWhatItHasWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range blockers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, "main", "spare")
			b := h.block(c.before, c.cell, c.locks, time.Millisecond)
			err := <-b.moved
			if e := (*database.BlockedError)(nil); !errors.As(err, &e) || e.Where != "the cell "+c.cell || len(e.Users) == 0 {
				t.Errorf("it returns %v", err)
			}
			if owners := h.owners(b.group); len(owners) > 1 {
				t.Errorf("the group is in %q", owners)
			}
			b.end()
			h.pin("spare", b.group)
			h.isIn("spare", b.group)
			h.renew("spare", b.held)
		})
	}
}

// TestACommandIsToldOfAnother that works on the same database for longer than it waits.
func TestACommandIsToldOfAnother(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	first := h.block(cells.Steps[1], "spare", "lock table paddock.records in row exclusive mode", database.TurnTimeout)
	await.Until(t, "the first command waits", func() bool {
		return h.number("spare", "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())") > 0 &&
			len(h.owners(first.group)) == 0
	})
	other := h.groupOf("main", 1)
	err := cells.PinWithin(t.Context(), "", h.cells, []string{other}, "spare", time.Millisecond, func(string) error { return nil })
	if !errors.Is(err, cells.ErrOther) {
		t.Errorf("the second command returns %v", err)
	}
	h.isIn("main", other)
	first.end()
	if err := <-first.moved; err != nil {
		t.Error(err)
	}
	h.isIn("spare", first.group)
}
