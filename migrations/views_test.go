package migrations_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// documentedQuery matches a query in docs/operations.md and its output.
var documentedQuery = regexp.MustCompile("(?s)```sql\n(.*?)```\n\n```\n(.*?)```")

// TestDocumentedQueriesShowWhatTheDocumentSays runs the queries of docs/operations.md for the views.
func TestDocumentedQueriesShowWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(readFile(t, "../docs/operations.md"), "\n## Reading the tables\n")
	section, _, _ = strings.Cut(section, "\n## ")
	conn := pgtest.Conn(t)
	execFile(t, conn, "testdata/views.sql")
	queries := documentedQuery.FindAllStringSubmatch(section, -1)
	for _, q := range queries {
		if diff := cmp.Diff(cells(q[2]), output(t, conn, q[1])); diff != "" {
			t.Errorf("%s\nshows other rows (-document +database):\n%s", q[1], diff)
		}
	}
	if len(queries) != 3 {
		t.Errorf("docs/operations.md has %d queries", len(queries))
	}
}

// cells returns the header and the rows of psql's output.
func cells(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "--") || strings.HasPrefix(line, "(") {
			continue
		}
		row := strings.Split(line, "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		all = append(all, row)
	}
	return all
}

// output returns the header and the rows of a query as psql shows them.
func output(t *testing.T, conn *pgx.Conn, sql string) (all [][]string) {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil || len(results) != 1 {
		t.Fatalf("%s: %d results, %v", sql, len(results), err)
	}
	var header []string
	for _, f := range results[0].FieldDescriptions {
		header = append(header, f.Name)
	}
	all = append(all, header)
	for _, values := range results[0].Rows {
		var row []string
		for _, v := range values {
			row = append(row, string(v))
		}
		all = append(all, row)
	}
	return all
}

// TestStateOfALease checks each state of the view paddock.leases, of exclusive leases and of others.
func TestStateOfALease(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	const (
		record = `insert into paddock.records (name, lease_id, mode, token, acquired_at, expires_at, ttl_ms, holder, rest)
		    select 'lock', gen_random_uuid(), 1, 7, now, now + $1 * interval '1 s', $2, 'me', case when $3::text is not null
		        then json_build_object($3::text, case when $3 = 'grace' then $4::bigint * 1000
		             else (extract(epoch from now) + $4::bigint) * 1000000 end::bigint, 'metadata', '{"x":1}') end
		    from clock_timestamp() as now`
	)
	part := strings.NewReplacer("paddock.records (", "paddock.parts (slot, place, attachment, ", "select ", "select 2, 0, 0, ").
		Replace(record)
	for _, c := range []struct {
		expiresIn, ttl int
		field          *string // of the column rest: grace, in seconds; or claim_by, in seconds from now
		value          int
		want           string
	}{
		{60, 30000, nil, 0, "held"},
		{60, 30000, text("grace"), 60, "held"},
		{60, 30000, text("claim_by"), 60, "unclaimed"},
		{60, 30000, text("claim_by"), -1, "expired"},
		{-1, 30000, nil, 0, "expired"},
		{-1, 30000, text("grace"), 60, "grace"},
		{-60, 30000, text("grace"), 30, "expired"},
		{-1, 0, text("grace"), 60, "revoked"},
		{-60, 0, text("grace"), 30, "expired"},
	} {
		exec(t, conn, record, c.expiresIn, c.ttl, c.field, c.value)
		exec(t, conn, part, c.expiresIn, c.ttl, c.field, c.value)
		got := lines(t, conn, `select concat_ws(' ', name, slot, holder, mode, token, ttl, state, metadata ->> 'x') from paddock.leases order by slot`)
		x := ""
		if c.field != nil {
			x = " 1"
		}
		ttl := map[int]string{0: "00:00:00", 30000: "00:00:30"}[c.ttl]
		want := []string{"lock 0 me exclusive 7 " + ttl + " " + c.want + x, "lock 2 me exclusive 7 " + ttl + " " + c.want + x}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: (-want +got):\n%s", c, diff)
		}
		exec(t, conn, "delete from paddock.records")
		exec(t, conn, "delete from paddock.parts")
	}
}

func text(s string) *string { return &s }

// TestViewsShowNoSecret looks for a column of the type of a lease_id.
func TestViewsShowNoSecret(t *testing.T) {
	t.Parallel()
	got := lines(t, pgtest.Conn(t), `select attrelid::regclass || '.' || attname from pg_attribute
	    where attrelid = any (array['paddock.leases', 'paddock.queue', 'paddock.history']::regclass[])
	      and atttypid = 'uuid'::regtype`)
	if len(got) != 0 {
		t.Errorf("lease_ids are shown: %q", got)
	}
}
