package epoch

import (
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/store/internal/database"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A harness is a database with a Monitor, and a connection beside the Monitor's.
type harness struct {
	*testing.T
	url     string
	outside *pgx.Conn
	monitor *Monitor
}

// newHarness returns a fresh database, whose epoch the Monitor has seen.
func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{T: t, url: pgtest.URL(t)}
	h.outside, h.monitor = pgtest.Connect(t, h.url), h.another()
	return h
}

// another returns the Monitor of another process, which has seen the epoch.
func (h *harness) another() *Monitor {
	h.Helper()
	db, err := database.Open(h.Context(), database.At(h.url), "", false, nil, slog.New(slog.NewTextHandler(h.Output(), nil)))
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		db.Stop()
		db.Close()
	})
	m := New(db)
	if _, err := m.Refresh(); err != nil {
		h.Fatal(err)
	}
	return m
}

func (h *harness) exec(sql string, args ...any) {
	h.Helper()
	pgtest.Exec(h, h.outside, sql, args...)
}

// number returns the result of a query, one number.
func (h *harness) number(sql string, args ...any) int64 {
	h.Helper()
	return pgtest.Number(h, h.outside, sql, args...)
}

// epochs fails the test unless there are that many epochs.
func (h *harness) epochs(want int64) {
	h.Helper()
	if n := h.number("select count(*) from paddock.epochs"); n != want {
		h.Errorf("there are %d epochs, want %d", n, want)
	}
}

func (h *harness) read() Epoch {
	h.Helper()
	e, err := Read(h.Context(), h.outside, "")
	if err != nil {
		h.Fatal(err)
	}
	return e
}

// event adds a batch with one event.
func (h *harness) event(batch int64) {
	h.Helper()
	h.exec("insert into paddock.event_batches (id, at, entries) values ($1, clock_timestamp(), array[$2::json])", batch,
		`["a",0,[7,0,1,1,1,"h",-256,0,"",0]]`)
}

// draw sets the last batch drawn.
func (h *harness) draw(batch int64) {
	h.Helper()
	h.exec("select setval('paddock.event_batch_ids', $1)", batch)
}

// failOver makes the database look as one that continues the history of another server: the newest epoch is about a
// timeline that is not this server's.
const failOver = `update paddock.epochs set timeline = 'FFFFFFFF' where epoch = (select max(epoch) from paddock.epochs)`
