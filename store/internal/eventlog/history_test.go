package eventlog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// TestHistoryIsComplete writes random batches, and prunes a lock in between and at the end. From each cursor, in pages of
// several lengths and in both orders, the history of each lock must be exactly its events.
func TestHistoryIsComplete(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			url := pgtest.URL(t)
			l, conn := open(t, url), connect(t, url)
			names := []string{"busy", "pruned", "rare"}
			of := map[string][]lock.Event{}
			for range 250 {
				if rng.IntN(12) == 0 {
					forgetLock(t, conn, "pruned")
				}
				var batch []string
				for range 1 + rng.IntN(4)*rng.IntN(4) {
					batch = append(batch, names[min(rng.IntN(20)/9, 2)])
				}
				for _, e := range commit(t, conn, granted(batch...)...) {
					of[e.Name] = append(of[e.Name], e)
				}
			}
			forgetLock(t, conn, "pruned")
			for _, name := range names {
				for range 20 {
					from := rng.IntN(len(of[name]))
					q := paddock.EventQuery{Names: []string{name}, Limit: 1 + rng.IntN(150), Cursor: strconv.FormatInt(of[name][from].ID, 10)}
					want := of[name][from+1:]
					sameEvents(t, fmt.Sprintf("%+v", q), readAll(t, l, q), want)

					q.Descending, want = true, slices.Clone(of[name][:from])
					slices.Reverse(want)
					sameEvents(t, fmt.Sprintf("%+v", q), readAll(t, l, q), want)
				}
				sameEvents(t, name, readAll(t, l, paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit}), of[name])
			}
		})
	}
}

// TestHistoryAfterPruning: of a history whose first events were deleted, the rest is found.
func TestHistoryAfterPruning(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	var all []lock.Event
	for range 40 {
		all = append(all, commit(t, conn, granted("a")...)...)
	}
	for _, gone := range []int{1, 15, 16, 17, 39, 40} {
		exec(t, conn, "delete from paddock.event_batches where id <= $1", epoch.BatchOf(all[gone-1].ID))
		exec(t, conn, "update paddock.horizon set pruned = $1", all[gone-1].ID)
		for _, limit := range []int{1, 7, 100} {
			sameEvents(t, fmt.Sprint(gone, " pruned"), readAll(t, l, paddock.EventQuery{Names: []string{"a"}, Limit: limit}), all[gone:])
		}
	}
}

// TestNamesWithOneKey has two locks whose names have the same key in the references.
func TestNamesWithOneKey(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	of := map[string][]lock.Event{}
	for i := range 150 {
		names := []string{"a"}
		if i%3 > 0 {
			names = []string{"b", "b", "a"}[i%2:]
		}
		for _, e := range commit(t, conn, granted(names...)...) {
			of[e.Name] = append(of[e.Name], e)
		}
	}
	for _, key := range []int64{row.NameKey("a"), row.NameKey("b")} {
		exec(t, conn, `insert into paddock.event_refs (key, id)
			select $1, id from paddock.event_refs where key = any ($2) on conflict do nothing`,
			key, []int64{row.NameKey("a"), row.NameKey("b")})
	}
	for _, name := range []string{"a", "b"} {
		for _, limit := range []int{1, 2, 20, 100} {
			sameEvents(t, name, readAll(t, l, paddock.EventQuery{Names: []string{name}, Limit: limit}), of[name])
		}
	}
}

// longHistory writes n batches of ten locks each, one of them the lock "long". Its references are as they are in
// production: one each 16 revisions.
func longHistory(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	exec(t, conn, `insert into paddock.event_batches (id, at, entries)
		select nextval('paddock.event_batch_ids'), clock_timestamp(), array(
			select json_build_array(case j when 0 then 'long' else 'other:' || j end, i - 1,
			                        json_build_array(j, 0, i, 1, 1, 'holder', i, 0, '', 0))
			from generate_series(0, 9) j)
		from generate_series(1, $1::integer) i`, n)
	exec(t, conn, `insert into paddock.event_refs (key, id)
		select $1::bigint, i * 4096 from generate_series(16, $2::integer, 16) i
		union all
		select (random() * 9e18)::bigint, i from generate_series(1, $2) i`, row.NameKey("long"), n)
	exec(t, conn, "insert into paddock.records (name, revision, last_event) values ('long', $1, $1)", n)
}

// A plan is a node of a plan that was executed.
type plan struct {
	Node      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Plans     []plan
}

// read returns how many rows of the table were read.
func (p plan) read(table string) float64 {
	var n float64
	if p.Relation == table {
		n = (p.Rows + p.Filtered + p.Rechecked) * p.Loops
	}
	for _, child := range p.Plans {
		n += child.read(table)
	}
	return n
}

// TestLongHistoryIsReadByTheEntry reads pages all over a history of 20,000 events, among 180,000 events of other
// locks. Each page reads about as many batches as it has events, whether PostgreSQL has statistics of the tables or
// not.
func TestLongHistoryIsReadByTheEntry(t *testing.T) {
	t.Parallel()
	const events = 20_000
	for name, prepare := range map[string]string{"without statistics": "select 1", "with statistics": "analyze"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			l, conn := open(t, url), connect(t, url)
			exec(t, conn, "alter table paddock.event_batches set (autovacuum_enabled = false)")
			exec(t, conn, "alter table paddock.event_refs set (autovacuum_enabled = false)")
			longHistory(t, conn, events)
			exec(t, conn, prepare)
			for _, limit := range []int{1, paddock.DefaultLimit, paddock.MaxLimit} {
				for _, after := range []int64{0, 1, 15, 16, 17, 7777, events - 900, events - 17, events - 1, events} {
					got := page(t, l, paddock.EventQuery{Names: []string{"long"}, Limit: limit, Cursor: strconv.FormatInt(lastOf(after), 10)}).Items
					if len(got) != min(limit, int(events-after)) || len(got) > 0 && got[0].Revision != after+1 {
						t.Errorf("the page of %d after %d has %d events", limit, after, len(got))
					}
					if slices.ContainsFunc(got, func(e lock.Event) bool { return e.Name != "long" || e.Revision != epoch.BatchOf(e.ID) }) {
						t.Errorf("the page of %d after %d has wrong events", limit, after)
					}
					limit := min(limit, nextStep.events)
					for _, back := range []bool{false, true} {
						batches, refs := readByHistory(t, conn, limit, lastOf(after), back)
						if batches > float64(limit+3*row.RefInterval+refsFor(limit)) || refs > float64(refsFor(limit)+1) {
							t.Errorf("the page of %d next to %d reads %v batches and %v references; back: %t", limit, after, batches, refs, back)
						}
					}
				}
			}
		})
	}
}

// readByHistory returns how many batches and references sql/history.sql reads for a page.
func readByHistory(t *testing.T, conn *pgx.Conn, limit int, next int64, back bool) (batches, refs float64) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // it only reads
	b := &pgx.Batch{}
	database.QueueSettings(b, database.RowTimeout)
	if err := tx.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Prepare(t.Context(), "history", sqlHistory.In("")); err != nil {
		t.Fatal(err)
	}
	var text []byte
	err = tx.QueryRow(t.Context(), fmt.Sprintf(
		"explain (analyze, timing off, format json) execute history (%d, 'long', %d, %d, %t)",
		row.NameKey("long"), next, refsFor(limit), back), pgx.QueryExecModeSimpleProtocol).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	var explained []struct{ Plan plan }
	if err := json.Unmarshal(text, &explained); err != nil {
		t.Fatal(err)
	}
	return explained[0].Plan.read("event_batches"), explained[0].Plan.read("event_refs")
}

// TestAHistoryThatLeadsBackToItselfIsRead to its end. The events of the earliest schema have ids from 1 on, so their
// row is the one with the id 0, which also stands for no row.
func TestAHistoryThatLeadsBackToItselfIsRead(t *testing.T) {
	t.Parallel()
	for name, previous := range map[string]map[int64]string{
		"its own row": {0: "0", 1: "0"},
		"a later row": {0: "2", 1: "0", 2: "1"},
		"no number":   {0: `"x"`, 1: "0", 2: "1"},
		"no row":      {0: "-5", 1: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			l, conn := open(t, url), connect(t, url)
			var want []int64
			for id := range int64(len(previous)) {
				exec(t, conn, `insert into paddock.event_batches (id, at, entries)
					values ($1, now(), array[json_build_array('a', $2::json, '[1,0,1,1,1,"h",7,0,"",0]'::json)])`, id, previous[id])
				want = append(want, id*row.EventsPerBatch+1)
			}
			exec(t, conn, "insert into paddock.records (name, revision, last_event) values ('a', 5, $1)", len(previous)-1)
			exec(t, conn, "select setval('paddock.event_batch_ids', 10)")
			for _, descending := range []bool{false, true} {
				page, err := l.Page(t.Context(), paddock.EventQuery{Names: []string{"a"}, Limit: 100, Descending: descending}, nil)
				var got []int64
				for _, e := range page.Items {
					got = append(got, e.ID)
				}
				slices.Sort(got)
				if err != nil || name != "no number" && !slices.Equal(got, want) {
					t.Errorf("descending %t: %v, %v; want %v", descending, got, err, want)
				}
			}
		})
	}
}
