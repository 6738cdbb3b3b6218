package fencing_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// connectWithNotices returns a connection and the notices that it receives.
func connectWithNotices(t *testing.T, url string) (conn *pgx.Conn, notices *[]string) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	notices = &[]string{}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { *notices = append(*notices, n.Severity+": "+n.Message) }
	conn, err = pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return conn, notices
}

// listObjects lists all objects in the database that are not PostgreSQL's.
const listObjects = `
select coalesce(array_agg(what order by what), '{}') from (
	select 'relation ' || oid::regclass::text from pg_class where relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
	union all select 'function ' || oid::regprocedure::text from pg_proc where pronamespace::regnamespace::text !~ '^(pg_|information_schema)'
	union all select 'type ' || oid::regtype::text from pg_type where typnamespace::regnamespace::text !~ '^(pg_|information_schema)'
	union all select 'trigger ' || tgname || ' on ' || tgrelid::regclass::text from pg_trigger
	union all select 'schema ' || nspname from pg_namespace where nspname !~ '^pg_'
) as all_there_is (what)`

func TestInstallAndUninstallAreIdempotent(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	conn, notices := connectWithNotices(t, url)
	must(t, conn, userTables+"create trigger mine before update on accounts for each row execute function suppress_redundant_updates_trigger()")
	before := value[[]string](t, conn, listObjects)
	must(t, conn, paddock.InstallFence)
	must(t, conn, "select paddock_fence_guard('accounts'), paddock_fence_guard('ledger', 'l'), paddock_fence('r', 8)")
	during := value[[]string](t, conn, listObjects)
	must(t, conn, paddock.InstallFence)
	if again := value[[]string](t, conn, listObjects); !slices.Equal(during, again) {
		t.Errorf("the objects were %q, and after the second install %q", during, again)
	}
	refused(t, conn, "PF001", "select paddock_fence('r', 7)")
	must(t, conn, paddock.UninstallFence)
	must(t, conn, paddock.UninstallFence)
	if after := value[[]string](t, conn, listObjects); !slices.Equal(before, after) {
		t.Errorf("there were %q, and are %q", before, after)
	}
	if len(*notices) > 0 {
		t.Errorf("the server sent notices: %q", *notices)
	}
}

func TestInstallReplacesAnEarlierRelease(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "select paddock_fence('r', 8)")
	must(t, conn, "create or replace function paddock_fence(resource text, token bigint) returns void language sql as ''")
	must(t, conn, "select paddock_fence('r', 7)")
	must(t, conn, paddock.InstallFence)
	refused(t, conn, "PF001", "select paddock_fence('r', 7)")
}

func TestConcurrentInstallsSucceed(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	var wg sync.WaitGroup
	for range 4 {
		conn := connect(t, url)
		wg.Go(func() {
			if err := run(t.Context(), conn, paddock.InstallFence); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestInstallBeginsNoSecondTableOfTokensUnasked: a schema that comes before the one with the tokens in the search_path
// was created since, and a new table there would accept the tokens that the old one refuses.
func TestInstallBeginsNoSecondTableOfTokensUnasked(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "select paddock_fence('r', 8); create schema app")
	for _, path := range []string{"app, public", "app, none", `app, "$user"`} {
		must(t, conn, "set search_path = "+path)
		refused(t, conn, "42P07", paddock.InstallFence)
	}
	for _, path := range []string{"public, app", "public", "app", "app, public"} { // where it is; and in both, once asked
		must(t, conn, "set search_path = "+path)
		must(t, conn, paddock.InstallFence)
	}
	refused(t, conn, "PF001", "select public.paddock_fence('r', 7)")
	must(t, conn, "select app.paddock_fence('r', 7)")
}

// TestInstallIsRefusedBesidePaddocksOwnTables, whose rights are those of the service.
func TestInstallIsRefusedBesidePaddocksOwnTables(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	for _, path := range []string{"paddock, public", "paddock"} {
		must(t, conn, "set search_path = "+path)
		refused(t, conn, "3F000", paddock.InstallFence)
	}
}

func TestUninstallIsRefusedIfAnObjectDependsOnIt(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "select paddock_fence_guard('accounts'); create view fences as select * from paddock_fences")
	before := value[[]string](t, conn, listObjects)
	refused(t, conn, "2BP01", paddock.UninstallFence)
	if after := value[[]string](t, conn, listObjects); !slices.Equal(before, after) {
		t.Errorf("there were %q, and are %q", before, after)
	}
}

// TestFenceIgnoresTheCallersSearchPath uses several search paths, and a temporary table with the name of the fence's.
func TestFenceIgnoresTheCallersSearchPath(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, `create schema "My Fences"; set search_path = "My Fences";`+paddock.InstallFence)
	must(t, conn, "reset search_path; create temporary table paddock_fences (resource text primary key, token bigint, seen_at timestamptz)")
	for _, path := range []string{"public", `"My Fences"`, "pg_temp, public", "''", "none", "pg_catalog, pg_temp"} {
		must(t, conn, "set search_path = "+path)
		must(t, conn, `select "My Fences".paddock_fence('r', 8), public.paddock_fence('r', 6)`)
		refused(t, conn, "PF001", `select "My Fences".paddock_fence('r', 7)`)
		refused(t, conn, "PF001", "select public.paddock_fence('r', 5)")
		must(t, conn, `select "My Fences".paddock_fence_guard('public.accounts', 'r')`)
		refused(t, conn, "PF001", "begin; set local paddock.token = '7'; delete from public.accounts")
	}
	must(t, conn, "set search_path = public;"+paddock.UninstallFence)
	must(t, conn, `set search_path = "My Fences";`+paddock.UninstallFence+paddock.UninstallFence)
	if n := value[int](t, conn, "select count(*) from pg_temp.paddock_fences"); n != 0 {
		t.Errorf("%d rows are in the temporary table", n)
	}
	must(t, conn, "delete from public.accounts")
}

func TestInstallErrorNamesTheReason(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.EmptyURL(t))
	before := value[[]string](t, conn, listObjects)
	newer := strings.ReplaceAll(paddock.InstallFence, "140000", "990000")
	if pg := refusal(t, conn, "0A000", newer); !strings.Contains(pg.Hint, "PostgreSQL 14 or newer") {
		t.Errorf("on a server too old: %q, %q", pg.Message, pg.Hint)
	}
	for _, sql := range []string{paddock.InstallFence, paddock.UninstallFence} {
		if pg := refusal(t, conn, "3F000", "set search_path = none;"+sql); !strings.Contains(pg.Hint, "search_path") {
			t.Errorf("with no schema: %q, %q", pg.Message, pg.Hint)
		}
	}
	if after := value[[]string](t, conn, listObjects); !slices.Equal(before, after) {
		t.Errorf("there were %q, and are %q", before, after)
	}
}

func TestEveryObjectHasAComment(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	const mute = `
		select coalesce(array_agg(what), '{}') from (
			select oid::regprocedure::text, obj_description(oid, 'pg_proc') from pg_proc where proname like 'paddock%'
			union all select oid::regclass::text, obj_description(oid, 'pg_class') from pg_class where relname in ('paddock_fences', 'paddock_operations')
		) as made (what, comment) where comment is null`
	if left := value[[]string](t, conn, mute); len(left) > 0 {
		t.Errorf("%q have no comment", left)
	}
}
