package migrations_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
)

// stepsToSchema4 is how many migrations Down reverts to get there.
func stepsToSchema4() int { return int(migrations.Latest()) - 4 }

func up(t *testing.T, url string) {
	t.Helper()
	if err := migrations.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
}

// recordRows and partRows are the rows of locks after the conversion. A place that is kept for ten seconds from the
// conversion on is kept "soon".
const (
	recordRows = `select row_to_json(r)::text from paddock.records r order by name`
	partRows   = `select regexp_replace(row_to_json(p)::text, '"kept_until":(\d+)',
	        case when (rest ->> 'kept_until')::bigint / 1000000 - extract(epoch from clock_timestamp()) between 0 and 10
	             then '"kept_until":"soon"' else '"kept_until":\1' end)
	    from paddock.parts p order by name, slot, place`
)

// TestEveryKindOfRowIsConverted compares all fields with those in testdata/records.txt.
func TestEveryKindOfRowIsConverted(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	exec(t, conn, "set timezone = 'UTC'")
	up(t, url)
	got := append(lines(t, conn, recordRows), lines(t, conn, partRows)...)
	want := strings.Split(strings.TrimSpace(readFile(t, "testdata/records.txt")), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the rows differ (-want +got):\n%s", diff)
	}
}

// schema4Rows are the rows of schema 4. A waiter is detached by a conversion, and kept for ten seconds if it was not
// detached before; those fields are left out, and changed_at of slots, which has no meaning.
var schema4Rows = []string{
	`select case when slot = 0 then row_to_json(l)::text
	             else regexp_replace(row_to_json(l)::text, '"changed_at":"[^"]*"', '') end
	from paddock.locks l order by name, slot`,
	`select row_to_json(w)::text from (
	    select name, place, lease_id, mode, capacity, holder, ttl_ms, grace_ms, max_hold_ms, metadata, joined_at, until,
	           alive_until, offered,
	           case when attachment = 0 and kept_until < clock_timestamp() then kept_until end as kept_until
	    from paddock.waiters) w
	order by name, place`,
	`select row_to_json(e)::text from paddock.events e order by id`,
}

// TestDownKeepsLeasesWaitersTokensAndEvents rolls a release back, and migrates up again.
func TestDownKeepsLeasesWaitersTokensAndEvents(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	var before, after [][]string
	for _, sql := range schema4Rows {
		before = append(before, lines(t, conn, sql))
	}
	shapeBefore := shape(t, conn)
	up(t, url)
	records := lines(t, conn, recordRows)
	if err := migrations.Down(t.Context(), url, stepsToSchema4()); err != nil {
		t.Fatal(err)
	}
	for _, sql := range schema4Rows {
		after = append(after, lines(t, conn, sql))
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the rows differ (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(shapeBefore, shape(t, conn)); diff != "" {
		t.Errorf("the schema differs (-before +after):\n%s", diff)
	}
	if got := lines(t, conn, `select place::text from paddock.waiters where attachment <> 0 or replica <> 0`); len(got) > 0 {
		t.Errorf("the waiters at %q have a call that no replica serves", got)
	}
	if got := number(t, conn, "select nextval('paddock.event_ids')"); got <= 13700 {
		t.Errorf("the next event has the id %d, which was drawn before", got)
	}
	up(t, url)
	if diff := cmp.Diff(records, lines(t, conn, recordRows)); diff != "" {
		t.Errorf("the records differ (-first +second time):\n%s", diff)
	}
}

// number returns the only value of a query.
func number(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// TestNewEventsComeAfterOldOnes checks that no wire id of an old event is given out again.
func TestNewEventsComeAfterOldOnes(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]int64{"the first event": 1, "row 3": 13700, "the end of a row": 16383} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, conn := schema4Database(t)
			exec(t, conn, "select setval('paddock.event_ids', $1)", last)
			up(t, url)
			if batch := number(t, conn, "select nextval('paddock.event_batch_ids')"); batch != last/4096+1 {
				t.Errorf("after the event %d came row %d", last, batch)
			}
		})
	}
}

// allEvents describes each event in the words of package lock.
func allEvents(t *testing.T, conn *pgx.Conn, table string) (all []string) {
	t.Helper()
	names := func(n int16, kind bool) string {
		if kind {
			return lock.Kind(n).String()
		}
		return lock.Mode(n).String()
	}
	rows, err := conn.Query(t.Context(), `select to_json(e) from (
	    select id, at, name, revision, kind, token, holder, mode, slot, place, reason from `+table+`) e order by id`)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[map[string]any])
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range texts {
		for _, field := range []string{"kind", "mode"} {
			if n, ok := e[field].(float64); ok {
				e[field] = names(int16(n), field == "kind")
			}
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

func TestHistoryKeepsIDsAndOrder(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	before := allEvents(t, conn, "paddock.events")
	up(t, url)
	if diff := cmp.Diff(before, allEvents(t, conn, "paddock.history")); diff != "" {
		t.Errorf("the events differ (-before +after):\n%s", diff)
	}
}

// TestEventsOfALockAreFoundWithoutReadingOthers walks from the newest event of each lock to the row before it, and,
// where an entry names none, to the newest earlier event in event_refs.
func TestEventsOfALockAreFoundWithoutReadingOthers(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	want := map[string][]int64{}
	for _, name := range lines(t, conn, "select distinct name from paddock.events") {
		want[name] = ids(t, conn, "select id from paddock.events where name = $1 order by id desc", name)
	}
	up(t, url)
	const next = `select coalesce(max(id) / 4096, -1) from paddock.event_refs where key = paddock.name_key($1) and id / 4096 < $2`
	for name, want := range want {
		got, batch := []int64{}, int64(1<<40)
		for previous := int64(0); ; {
			if previous == 0 {
				previous = number(t, conn, next, name, batch)
			}
			if batch = previous; batch < 0 {
				break
			}
			got = append(got, ids(t, conn, `select id from paddock.history where name = $1 and id / 4096 = $2 order by id desc`,
				name, batch)...)
			previous = number(t, conn, `select (e ->> 1)::bigint from paddock.event_batches b, unnest(entries) as u (e)
			    where b.id = $2 and e ->> 0 = $1`, name, batch)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the events of %s are %d; want %d", name, got, want)
		}
	}
	if last := number(t, conn, "select last_event from paddock.records where name = 'free'"); last != 13600/4096 {
		t.Errorf("the newest event of free is in row %d", last)
	}
}

func ids(t *testing.T, conn *pgx.Conn, sql string, args ...any) []int64 {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEndsOfLeasesAreFoundByTheirRefs checks that a repeated call still finds how its lease ended.
func TestEndsOfLeasesAreFoundByTheirRefs(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	const refs = "select lease_ref || ' ' || id from paddock.events where lease_ref is not null order by id"
	want := lines(t, conn, refs)
	up(t, url)
	for _, ref := range want {
		key, id, _ := strings.Cut(ref, " ")
		got := lines(t, conn, "select id::text from paddock.event_refs where key = $1::text::bigint", key)
		if !slices.Equal(got, []string{id}) {
			t.Errorf("the lease %s ended with the events %q; want %s", key, got, id)
		}
	}
	if len(want) != 5 {
		t.Errorf("there are %d leases that ended", len(want))
	}
}

func TestPrunedRowsAreNotConverted(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	exec(t, conn, "delete from paddock.events where id <= 8192")
	exec(t, conn, "update paddock.horizon set pruned = 8192")
	want := ids(t, conn, "select id from paddock.events order by id")
	up(t, url)
	if got := ids(t, conn, "select id from paddock.history order by id"); !slices.Equal(got, want) {
		t.Errorf("the events are %d; want %d", got, want)
	}
	if got := ids(t, conn, "select id from paddock.event_batches order by id"); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("the rows are %d", got)
	}
}
