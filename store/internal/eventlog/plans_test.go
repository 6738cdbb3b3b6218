package eventlog

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

var manyEvents = flag.Int64("eventlog.events", 240_000, "how many events there are in the tests of query plans")

// writeMany writes the events: a grant and a release of one of a thousand locks in each batch, a batch in each 100 ms, up to
// now.
func writeMany(t *testing.T, conn *pgx.Conn, events int64) {
	t.Helper()
	exec(t, conn, `with drawn as (select setval('paddock.event_batch_ids', $1::bigint))
		insert into paddock.event_batches (id, at, entries)
		select i, clock_timestamp() - ($1::bigint - i) * interval '100 milliseconds', array[format(
		       '["jobs:%s",%s,[0,0,%s,1,1,"worker-%s",%s,0,"",0],[1,0,%s,2,1,"worker-%s",%s,0,"",0]]',
		       i % 1000, greatest(i - 1000, 0), i / 1000 * 2 + 1, i % 500, i * 256, i / 1000 * 2 + 2, i % 500, i * 256)::json]
		from drawn, generate_series(1::bigint, $1) i`, events/2)
	exec(t, conn, `insert into paddock.records (name, revision, last_event)
		select 'jobs:' || i % 1000, i / 1000 * 2 + 2, i from generate_series($1::bigint - 999, $1) i`, events/2)
	exec(t, conn, `insert into paddock.event_refs (key, id)
		select paddock.name_key('jobs:' || i % 1000), i * 4096 from generate_series(8::bigint, $1) i where i / 1000 % 8 = 0`, events/2)
}

// TestNoPageReadsTheWholeTable, with statistics and before there are any, and with the plans for any parameters, which
// PostgreSQL makes of a statement that it has run a few times, as with those for the given ones.
func TestNoPageReadsTheWholeTable(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	began := time.Now()
	writeMany(t, conn, *manyEvents)
	t.Logf("%d events are written in %v", *manyEvents, time.Since(began).Round(time.Millisecond))
	now := time.Now()
	queries := map[string]paddock.EventQuery{
		"all":                      {},
		"of a kind":                {Kinds: []lock.Kind{lock.Released}},
		"of no kind that is there": {Kinds: []lock.Kind{lock.Revoked}},
		"no deadlock":              {Deadlock: true},
		"of a prefix":              {Prefix: "jobs:77"},
		"of no prefix":             {Prefix: "none:"},
		"of a holder":              {Holder: "worker-77"},
		"of no holder":             {Holder: "nobody"},
		"since":                    {Since: now.Add(-time.Hour)},
		"around":                   {Since: now.Add(-2 * time.Hour), Until: now.Add(-2*time.Hour + 10*time.Minute)},
		"until":                    {Until: now.Add(-time.Hour)},
		"of no holder, around":     {Holder: "nobody", Since: now.Add(-2 * time.Hour), Until: now.Add(-2*time.Hour + 10*time.Minute)},
		"of a lock":                {Names: []string{"jobs:77"}},
		"of a lock and no kind":    {Names: []string{"jobs:77"}, Kinds: []lock.Kind{lock.Revoked}},
		"of a lock never used":     {Names: []string{"jobs:none"}},
		"of a cursor in between":   {Cursor: fmt.Sprint(*manyEvents / 4 * row.EventsPerBatch), Holder: "worker-77"},
	}
	analyze := "vacuum analyze paddock.event_batches, paddock.event_refs, paddock.records"
	for _, table := range []string{"new", "analyzed", "with moved batches"} {
		switch table {
		case "with moved batches":
			exec(t, conn, `insert into paddock.event_batches (id, at, entries, moved)
				select $1::bigint + i, clock_timestamp() - i * interval '1 second', '{}', true from generate_series(1, 20) i`, *manyEvents)
			fallthrough
		case "analyzed":
			exec(t, conn, analyze)
		}
		for what, q := range queries {
			q.Descending = true
			began := time.Now()
			p := page(t, l, q)
			t.Logf("%s: %d events in %v, next %q", what, len(p.Items), time.Since(began).Round(time.Millisecond), p.Next)
			if strings.Contains(what, "no ") && q.Since.IsZero() && q.Names == nil {
				checkSearch(t, l, what, q, p)
			}
			q, err := q.Resolve()
			if err != nil {
				t.Fatal(err)
			}
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				exec(t, conn, "set plan_cache_mode = "+mode)
				checkPlans(t, conn, l, fmt.Sprintf("%s, %s, %s", what, table, mode), q)
			}
		}
	}
}

// checkSearch checks that the first page of a query that selects nothing says how far it has searched, and that the last one
// comes to an end.
func checkSearch(t *testing.T, l *Log, what string, q paddock.EventQuery, p paddock.Page[lock.Event]) {
	t.Helper()
	if len(p.Items) > 0 || p.Next == "" || p.SearchedTo.IsZero() || time.Since(p.SearchedTo) < time.Hour {
		t.Errorf("%s: the first page is %+v", what, p)
	}
	q.Cursor = strconv.FormatInt(firstOf(500), 10)
	if p := page(t, l, q); len(p.Items) > 0 || p.Next != "" || !p.SearchedTo.IsZero() {
		t.Errorf("%s: the last page is %+v", what, p)
	}
}

// checkPlans checks the plans of the statements of a step of the page.
func checkPlans(t *testing.T, conn *pgx.Conn, l *Log, what string, q paddock.EventQuery) {
	t.Helper()
	cursor, err := parseCursor(q)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := l.span(t.Context(), q, cursor)
	if err != nil {
		t.Fatal(err)
	}
	b := &pgx.Batch{}
	l.queueEvents(b, q, ids.before, nextStep)
	for _, s := range b.QueuedQueries {
		checkPlan(t, conn, what, s.SQL, s.Arguments...)
	}
	since, until := rangeOf(q)
	checkPlan(t, conn, what+", seek", sqlSeek.In(""), since, until, readsHistory(q))
}

// maxBlocks bounds what a statement reads: a step reads 1000 rows. A table with 240,000 events has 3000 blocks, one with ten
// million 130,000.
const maxBlocks = 2000

var (
	wholeTable = regexp.MustCompile(`Seq Scan on event_(batches|refs)`)
	blocksRead = regexp.MustCompile(`Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`)
)

// checkPlan checks that the statement reads a bounded part of the table, and none of it as a whole.
func checkPlan(t *testing.T, conn *pgx.Conn, what, sql string, args ...any) {
	t.Helper()
	exec(t, conn, "prepare checked as "+sql)
	defer exec(t, conn, "deallocate checked")
	rows, err := conn.Query(t.Context(), "explain (analyze, buffers) execute checked("+literals(args)+")", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan, blocks := strings.Join(lines, "\n"), 0
	for _, n := range blocksRead.FindStringSubmatch(plan)[1:] {
		one, _ := strconv.Atoi(n) // none: empty
		blocks += one
	}
	if blocks > maxBlocks || wholeTable.MatchString(plan) {
		t.Errorf("%s: reads %d blocks:\n%s", what, blocks, plan)
	}
}

// literals returns the arguments as SQL.
func literals(args []any) string {
	var all []string
	for _, a := range args {
		switch a := a.(type) {
		case string:
			all = append(all, "'"+a+"'")
		case pgtype.Timestamptz:
			v, err := a.Value()
			if at, ok := v.(time.Time); ok {
				v = at.Format(time.RFC3339Nano)
			}
			if err != nil {
				v = err
			}
			all = append(all, fmt.Sprintf("'%v'", v))
		default:
			all = append(all, fmt.Sprint(a))
		}
	}
	return strings.Join(all, ", ")
}
