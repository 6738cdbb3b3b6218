package fencing_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// connectGuarded returns a connection to a database whose accounts are connectGuarded, and have
// seen token 8.
func connectGuarded(t *testing.T) *pgx.Conn {
	t.Helper()
	conn := connect(t, newDatabase(t))
	must(t, conn, "select paddock_fence_guard('accounts'), paddock_fence('public.accounts', 8)")
	return conn
}

const (
	under7 = "begin; set local paddock.token = '7'; "
	under8 = "begin; set local paddock.token = '8'; "
)

// merge is for PostgreSQL 15 and newer; others delete.
const merge = `
do $do$ begin
	execute case when current_setting('server_version_num')::int < 150000 then 'delete from accounts'
		else 'merge into accounts a using (values (1)) v (id) on a.id = v.id 
			when matched then update set balance = 0' end;
end $do$`

// TestEveryWayToWriteAGuardedTablePassesTheFence, each without a token, with a
// stale one and with a good one.
func TestEveryWayToWriteAGuardedTablePassesTheFence(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]string{
		"insert":             "insert into accounts values (3, 100)",
		"update":             "update accounts set balance = 0",
		"update of no row":   "update accounts set balance = 0 where false",
		"delete":             "delete from accounts",
		"truncate":           "truncate accounts",
		"upsert":             "insert into accounts values (1, 0) on conflict (id) do update set balance = excluded.balance",
		"merge":              merge,
		"with":               "with gone as (delete from accounts returning id) select count(*) from gone",
		"through a view":     "update rich set balance = 0",
		"through a function": "select spend()",
		"prepared":           "deallocate all; prepare p as delete from accounts; execute p",
		"a cascade":          "delete from owners where id = 1",
		"a cascading key":    "update owners set id = 9 where id = 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := connectGuarded(t)
			must(t, conn, `
				create view rich as select * from accounts where balance > 50;
				create function spend() returns void language sql as 'update accounts set balance = balance - 1';
				create table owners (id bigint primary key);
				insert into owners values (1), (2);
				alter table accounts add foreign key (id) references owners on delete cascade on update cascade`)
			refused(t, conn, "PF002", write)
			refused(t, conn, "PF001", under7+write)
			if name == "insert" {
				write = "insert into owners values (3); " + write
			}
			must(t, conn, under8+write+"; commit")
		})
	}
}

func TestCopyIntoGuardedTablePassesTheFence(t *testing.T) {
	t.Parallel()
	conn := connectGuarded(t)
	row := func() *strings.Reader { return strings.NewReader("3\t100\t{}\n") }
	if _, err := conn.PgConn().CopyFrom(t.Context(), row(), "copy accounts from stdin"); sqlstate(err) != "PF002" {
		t.Errorf("without a token: %v", err)
	}
	for begin, want := range map[string]string{under7: "PF001", under8: ""} {
		must(t, conn, begin)
		_, err := conn.PgConn().CopyFrom(t.Context(), row(), "copy accounts from stdin")
		if sqlstate(err) != want || want == "" && err != nil {
			t.Errorf("%s: %v", begin, err)
		}
		must(t, conn, "rollback")
	}
}

func TestInvalidTokenErrorSaysWhatToSet(t *testing.T) {
	t.Parallel()
	conn := connectGuarded(t)
	for _, token := range []string{"", "abc", "-1", "0", "1.5", " 41", "12345678901234567890", "9007199254740992"} {
		refused(t, conn, "PF002", "begin; set local paddock.token = '"+token+"'; delete from accounts")
	}
	must(t, conn, under8+"delete from accounts; commit")
	pg := refusal(t, conn, "PF002", "delete from accounts")
	if !strings.Contains(pg.Message, "public.accounts") || !strings.Contains(pg.Hint, "SET LOCAL paddock.token = '41'") {
		t.Errorf("got %q, %q", pg.Message, pg.Hint)
	}
}

// TestPartitionsNeedAGuardOfTheirOwn: partitions do not inherit statement triggers.
func TestPartitionsNeedAGuardOfTheirOwn(t *testing.T) {
	t.Parallel()
	conn := connectGuarded(t)
	must(t, conn, `
		create table moves (id bigint, day int) partition by range (day);
		create table moves_1 partition of moves for values from (0) to (100);
		select paddock_fence_guard('moves'), paddock_fence('public.moves', 8)`)
	const parent, partition = "insert into moves values (1, 50)", "insert into moves_1 values (2, 50)"
	refused(t, conn, "PF002", parent)
	refused(t, conn, "PF001", under7+parent)
	must(t, conn, under8+parent+"; commit")
	must(t, conn, partition)
	must(t, conn, "select paddock_fence_guard('moves_1', 'public.moves')")
	refused(t, conn, "PF001", under7+partition)
	must(t, conn, under8+partition+"; "+parent+"; commit")
}

// TestReplicatedWritesAreNotGuarded is what README.md lists as not covered.
func TestReplicatedWritesAreNotGuarded(t *testing.T) {
	t.Parallel()
	conn := connectGuarded(t)
	must(t, conn, "begin; set local session_replication_role = replica; update accounts set balance = 0; commit")
	refused(t, conn, "PF002", "update accounts set balance = 0")
}

func TestGuardIsAddedReplacedAndRemoved(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	guard := func(sql string) string { return value[string](t, conn, sql) }
	must(t, conn, `create schema "My Bank"; create table "My Bank"."Accounts" (id int)`)
	for sql, want := range map[string]string{
		`select paddock_fence_guard('"My Bank"."Accounts"')`:                   `"My Bank"."Accounts"`,
		`select paddock_fence_guard('"My Bank"."Accounts"', 'it''s \ mine')`:   `it's \ mine`,
		`select paddock_fence_guard(relation => 'ledger', resource => null)`:   "public.ledger",
		`select paddock_fence_guard('accounts', 'first')`:                      "first",
		`select paddock_fence_guard('accounts', repeat('ä', 500))`:             strings.Repeat("ä", 500),
		`select paddock_fence_guard('accounts'::regclass::oid::regclass, '%')`: "%",
	} {
		if got := guard(sql); got != want {
			t.Errorf("%s guards %q, want %q", sql, got, want)
		}
	}
	guard("select paddock_fence_guard('accounts', 'second')")
	must(t, conn, under7+"update accounts set balance = 0; truncate accounts; commit")
	seen := value[[]string](t, conn, "select array_agg(resource order by resource) from paddock_fences")
	if len(seen) != 1 || seen[0] != "second" {
		t.Errorf("seen were %q, want that of the second guard only", seen)
	}
	must(t, conn, `select paddock_fence_unguard('accounts'); select paddock_fence_unguard('accounts');
		update accounts set balance = 0; truncate accounts`)
}

func TestGuardRefusesOtherRelations(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "create view rich as select * from accounts; create sequence numbers")
	for relation, state := range map[string]string{
		"'rich'": "42809", "'numbers'": "42809", "'accounts_pkey'": "42809", "null": "42809",
		"0::oid::regclass": "42809",
		"'paddock_fences'": "42809", "'none'": "42P01",
		"'accounts', ''": "PF002", "'accounts', repeat('a', 1001)": "PF002",
	} {
		refused(t, conn, state, "select paddock_fence_guard("+relation+")")
	}
}
