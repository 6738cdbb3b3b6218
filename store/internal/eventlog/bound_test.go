package eventlog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// TestPagesEndBeforeOpenTransactions has a transaction draw its batch and commit late. Later batches that are
// committed before are not shown until then; then all events come, in order.
func TestPagesEndBeforeOpenTransactions(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	before := commit(t, conn, granted("before")...)
	slow := begin(t, connect(t, url))
	after := commit(t, conn, granted("after")...)

	p := page(t, l, paddock.EventQuery{})
	sameEvents(t, "before the slow commit", p.Items, before)
	if events := eventsOf(t, l, "after"); len(events) > 0 {
		t.Errorf("the history of a lock shows %+v", events)
	}
	late := slow.write(granted("slow")...)
	slow.commit()
	sameEvents(t, "after the slow commit", page(t, l, paddock.EventQuery{Cursor: p.Next}).Items, append(late, after...))
	sameEvents(t, "the history", eventsOf(t, l, "after"), after)
}

// TestBoundDoesNotGoBack has a transaction read its mark before others draw ids, and set it late. The events that were
// shown meanwhile are shown again.
func TestBoundDoesNotGoBack(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	late := &transaction{t: t, conn: connect(t, url)}
	exec(t, late.conn, "begin")
	mark := late.lastDrawn()
	a := commit(t, conn, granted("a")...)
	sameEvents(t, "at first", eventsOf(t, l, "a"), a)
	late.mark(mark)
	sameEvents(t, "beside the late mark", eventsOf(t, l, "a"), a)
	b := commit(t, conn, granted("b")...)
	if events := eventsOf(t, l, "b"); len(events) > 0 {
		t.Errorf("after the mark: %+v", events)
	}
	late.rollback()
	sameEvents(t, "after the rollback", eventsOf(t, l, "b"), b)
}

// TestForeignAdvisoryLocksHideNoEvents: only Paddock's own marks count, and only those of this database.
func TestForeignAdvisoryLocksHideNoEvents(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn, outside, other := open(t, url), connect(t, url), connect(t, url), connect(t, pgtest.URL(t))
	exec(t, outside, "begin")
	exec(t, outside, "select pg_advisory_xact_lock(0), pg_advisory_xact_lock_shared(7), pg_advisory_xact_lock(1, 1)")
	exec(t, other, "select pg_advisory_lock_shared($1)", row.MarkSpace(""))
	a := commit(t, conn, granted("a")...)
	sameEvents(t, "the events", eventsOf(t, l, "a"), a)
}

// TestSequenceIsNoBound: batches that were drawn and not committed are drawn again after a crash of PostgreSQL.
// Readers that had cursors before the crash get the events of these batches, too.
func TestSequenceIsNoBound(t *testing.T) {
	t.Parallel()
	server, url := pgtest.Server(t)
	l := openAndRun(t, url)
	outside := connect(t, url)
	exec(t, outside, "alter system set wal_writer_delay = '10s'") // only commits flush the log
	exec(t, outside, "select pg_reload_conf()")
	commit(t, outside, granted("held")...)
	const refused, changes = 100, 10
	for round := range 3 {
		conn := connect(t, url)
		exec(t, conn, "begin")
		exec(t, conn, "select nextval('paddock.event_batch_ids') from generate_series(1, $1::integer)", refused)
		exec(t, conn, "rollback")
		now := page(t, l, paddock.EventQuery{Cursor: paddock.CursorNow})
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			for { // a wait fails while the server is away
				p, err := l.Page(t.Context(), paddock.EventQuery{Cursor: now.Next, Wait: lock.MaxWait}, nil)
				if err == nil && len(p.Items) > 0 || t.Context().Err() != nil {
					return
				}
			}
		}()
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn = connect(t, url)
		var want []lock.Event
		for range changes {
			want = append(want, commit(t, conn, granted(fmt.Sprintf("after:%d", round))...)...)
		}
		<-waited
		sameEvents(t, "after the crash", readAll(t, l, paddock.EventQuery{Cursor: now.Next}), want)
	}
}

// A writer takes the steps of one transaction after the other.
type writer struct {
	name string
	x    transaction
	next int   // the step
	seen int64 // the mark
	own  []lock.Event
}

// step takes the next step, and returns the events that it committed.
func (w *writer) step(rng *rand.Rand) []lock.Event {
	w.x.t.Helper()
	w.next++
	switch w.next {
	case 1:
		exec(w.x.t, w.x.conn, "begin")
		w.seen = w.x.lastDrawn()
	case 2:
		w.x.mark(w.seen)
	case 3:
		w.x.draw()
	case 4:
		names := []string{w.name, w.name + ":x", w.name}
		w.own = w.x.write(granted(names[:1+rng.IntN(3)]...)...)
	default:
		w.next = 0
		if rng.IntN(5) == 0 {
			w.x.rollback()
			return nil
		}
		w.x.commit()
		return w.own
	}
	return nil
}

// TestReadersMissNothing interleaves the steps of writers at random, and reads pages in between. The pages must
// contain each committed event once, in the order of ids.
func TestReadersMissNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 0))
			url := pgtest.URL(t)
			l := open(t, url)
			var writers []*writer
			for i := range 5 {
				writers = append(writers, &writer{name: fmt.Sprintf("w:%d", i), x: transaction{t: t, conn: connect(t, url)}})
			}
			q := paddock.EventQuery{}
			var got []lock.Event
			read := func() {
				q.Limit = 1 + rng.IntN(5)
				p := page(t, l, q)
				got, q.Cursor = append(got, p.Items...), p.Next
			}
			want := map[int64]lock.Event{}
			for range 600 {
				for _, e := range writers[rng.IntN(len(writers))].step(rng) {
					want[e.ID] = e
				}
				if rng.IntN(3) == 0 {
					read()
				}
			}
			for _, w := range writers {
				for w.next > 0 {
					for _, e := range w.step(rng) {
						want[e.ID] = e
					}
				}
			}
			checkRead(t, append(got, readAll(t, l, q)...), want)
		})
	}
}

// checkRead ends the test unless the events are those wanted, in the order of their ids.
func checkRead(t *testing.T, got []lock.Event, want map[int64]lock.Event) {
	t.Helper()
	var last int64
	for _, e := range got {
		if w, ok := want[e.ID]; !ok || w.Name != e.Name || w.Revision != e.Revision || e.ID <= last {
			t.Fatalf("read %+v after event %d, want %+v", e, last, w)
		}
		last = e.ID
	}
	if len(got) != len(want) {
		t.Fatalf("read %d of %d events", len(got), len(want))
	}
}

// TestSubscribersMissNothing has writers run concurrently, and subscribers to all events, to prefixes and to a lock.
func TestSubscribersMissNothing(t *testing.T) {
	t.Parallel()
	const writers, steps = 6, 200
	url := pgtest.URL(t)
	l := openAndRun(t, url)
	start := page(t, l, paddock.EventQuery{Cursor: paddock.CursorNow}).Next
	queries := []paddock.EventQuery{
		{}, {Cursor: start, Limit: 3}, {Cursor: start, Prefix: "w:1"}, {Names: []string{"w:2"}}, {Cursor: start, Prefix: "w:", Limit: 7},
	}
	read := make([][]lock.Event, len(queries))
	var reading, writing sync.WaitGroup
	for i, q := range queries {
		reading.Go(func() { read[i] = followToEnd(t, l, q) })
	}
	committed := make([]map[int64]lock.Event, writers)
	for i := range writers {
		w := &writer{name: fmt.Sprintf("w:%d", i), x: transaction{t: t, conn: connect(t, url)}}
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		committed[i] = map[int64]lock.Event{}
		writing.Go(func() {
			for n := 0; n < steps || w.next > 0; n++ {
				for _, e := range w.step(rng) {
					committed[i][e.ID] = e
				}
			}
		})
	}
	writing.Wait()
	end := granted("w:1", "w:2")
	end[0].Reason, end[1].Reason = theEnd, theEnd
	commit(t, connect(t, url), end...)
	reading.Wait()
	for i, q := range queries {
		want := map[int64]lock.Event{}
		for _, events := range committed {
			for id, e := range events {
				if (len(q.Names) == 0 || e.Name == q.Names[0]) && strings.HasPrefix(e.Name, q.Prefix) {
					want[id] = e
				}
			}
		}
		checkRead(t, read[i], want)
	}
}

// theEnd is the reason of the last events of a test.
const theEnd = "the end"

// followToEnd waits for one page after the other until an event is theEnd, and returns the events before it.
func followToEnd(t *testing.T, l *Log, q paddock.EventQuery) (all []lock.Event) {
	q.Wait = lock.MaxWait
	for {
		p, err := l.Page(t.Context(), q, nil)
		if err != nil || p.Gap {
			t.Errorf("%+v: gap %t, %v", q, p.Gap, err)
			return all
		}
		for _, e := range p.Items {
			if e.Reason == theEnd {
				return all
			}
			all = append(all, e)
		}
		q.Cursor = p.Next
	}
}
