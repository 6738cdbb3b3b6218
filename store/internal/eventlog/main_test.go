package eventlog

import (
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	connect = pgtest.Connect
	exec    = pgtest.Exec
	number  = pgtest.Number
	until   = await.Until
)

// open returns a Log on the database, whose Run does not run.
func open(t *testing.T, url string) *Log {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	db, err := database.Open(t.Context(), database.At(url), "", false, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	t.Cleanup(db.Stop)
	return New(db, make(chan struct{}), func(string) error { return nil })
}

// openAndRun returns a Log that reads new events for subscribers until the test ends.
func openAndRun(t *testing.T, url string) *Log {
	t.Helper()
	l := open(t, url)
	var running sync.WaitGroup
	running.Go(l.Run)
	t.Cleanup(func() {
		l.db.Stop()
		running.Wait()
	})
	return l
}

// A transaction writes one batch of events, as sql/swap.sql of package row does.
type transaction struct {
	t     *testing.T
	conn  *pgx.Conn
	batch int64
}

// begin starts a transaction that has set its mark and drawn its batch.
func begin(t *testing.T, conn *pgx.Conn) *transaction {
	t.Helper()
	x := &transaction{t: t, conn: conn}
	exec(t, conn, "begin")
	x.mark(x.lastDrawn())
	x.draw()
	return x
}

func (x *transaction) lastDrawn() int64 {
	x.t.Helper()
	return number(x.t, x.conn, "select case when is_called then last_value else 0 end from paddock.event_batch_ids")
}

func (x *transaction) mark(batch int64) {
	x.t.Helper()
	exec(x.t, x.conn, "select pg_advisory_xact_lock_shared($1)", row.MarkSpace("")|batch)
}

func (x *transaction) draw() {
	x.t.Helper()
	x.batch = number(x.t, x.conn, "select nextval('paddock.event_batch_ids')")
}

func (x *transaction) commit()   { x.t.Helper(); exec(x.t, x.conn, "commit") }
func (x *transaction) rollback() { x.t.Helper(); exec(x.t, x.conn, "rollback") }

// write writes the events, numbered in this order, with the records of their locks and the references. It returns the
// events with their ids.
func (x *transaction) write(events ...lock.Event) []lock.Event {
	x.t.Helper()
	var names []string
	fields := map[string][]any{}
	last := map[string]int64{}
	for i := range events {
		e := &events[i]
		if fields[e.Name] == nil {
			names, fields[e.Name] = append(names, e.Name), []any{e.Name, x.record(e.Name)}
		}
		e.ID = x.batch*row.EventsPerBatch + int64(i)
		e.Revision = number(x.t, x.conn, `update paddock.records set revision = revision + 1, last_event = $2
			where name = $1 returning revision`, e.Name, x.batch)
		if e.Revision%row.RefInterval == 0 {
			last[e.Name] = 1
		}
		if last[e.Name] > 0 {
			last[e.Name] = e.ID
		}
		if e.Ref != 0 {
			x.refer(int64(e.Ref), e.ID)
		}
		fields[e.Name] = append(fields[e.Name],
			[]any{i, e.Slot, e.Revision, e.Kind, e.Mode, e.Holder, e.Token, e.Place, e.Reason, 0})
	}
	entries := make([]json.RawMessage, 0, len(names))
	for _, name := range names {
		entry, err := json.Marshal(fields[name])
		if err != nil {
			x.t.Fatal(err)
		}
		entries = append(entries, entry)
		if last[name] > 0 {
			x.refer(row.NameKey(name), last[name])
		}
	}
	exec(x.t, x.conn, "insert into paddock.event_batches (id, at, entries) values ($1, clock_timestamp(), $2::json[])",
		x.batch, entries)
	return events
}

// record creates the record of a lock unless there is one, and returns the batch of its newest event.
func (x *transaction) record(name string) int64 {
	x.t.Helper()
	exec(x.t, x.conn, "insert into paddock.records (name) values ($1) on conflict do nothing", name)
	return number(x.t, x.conn, "select last_event from paddock.records where name = $1", name)
}

func (x *transaction) refer(key, id int64) {
	x.t.Helper()
	exec(x.t, x.conn, "insert into paddock.event_refs (key, id) values ($1, $2) on conflict do nothing", key, id)
}

// commit writes the events as one batch, and returns them with their ids.
func commit(t *testing.T, conn *pgx.Conn, events ...lock.Event) []lock.Event {
	t.Helper()
	x := begin(t, conn)
	events = x.write(events...)
	x.commit()
	return events
}

// forgetLock deletes the record of an idle lock, and writes the reference to its newest event.
func forgetLock(t *testing.T, conn *pgx.Conn, name string) {
	t.Helper()
	exec(t, conn, `with gone as (
			delete from paddock.records where name = $2 returning last_event
		)
		insert into paddock.event_refs (key, id)
		select $1, b.id * 4096 + (e -> -1 ->> 0)::bigint
		from gone join paddock.event_batches b on b.id = gone.last_event, unnest(b.entries) e
		where e ->> 0 = $2
		on conflict do nothing`, row.NameKey(name), name)
}

// granted returns an event of each of the locks.
func granted(names ...string) []lock.Event {
	var events []lock.Event
	for _, name := range names {
		events = append(events, lock.Event{Name: name, Kind: lock.Granted, Mode: lock.Exclusive, Holder: "worker", Token: 1})
	}
	return events
}

// page returns a page, which must not fail.
func page(t *testing.T, l *Log, q paddock.EventQuery) paddock.Page[lock.Event] {
	t.Helper()
	p, err := l.Page(t.Context(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eventsOf returns the events of the lock, at most a page.
func eventsOf(t *testing.T, l *Log, name string) []lock.Event {
	t.Helper()
	return page(t, l, paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit}).Items
}

// readAll reads pages from the query's cursor until one is the last or empty. No page may report a gap.
func readAll(t *testing.T, l *Log, q paddock.EventQuery) []lock.Event {
	t.Helper()
	var all []lock.Event
	for {
		p := page(t, l, q)
		if p.Gap {
			t.Fatalf("a gap after %s", q.Cursor)
		}
		all, q.Cursor = append(all, p.Items...), p.Next
		if len(p.Items) == 0 || p.Next == "" {
			return all
		}
	}
}

// selectedBy returns those of the events that the query selects.
func selectedBy(q paddock.EventQuery, events []lock.Event) []lock.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e lock.Event) bool { return !q.Selects(&e) })
}

// sameEvents ends the test unless the events are those wanted, by id, name and revision.
func sameEvents(t *testing.T, what string, got, want []lock.Event) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i].ID != want[i].ID || got[i].Name != want[i].Name ||
			got[i].Revision != want[i].Revision {
			t.Fatalf("%s: %d events, want %d; they differ from number %d on:\n%+v\n%+v",
				what, len(got), len(want), i, got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
		}
	}
}
