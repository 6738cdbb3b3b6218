package waiters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// A rows is rows of locks and waiters, made by hand.
type rows struct {
	t       *testing.T
	conn    *pgx.Conn
	replica lock.Replica // serves the waiters
	places  int64
}

// hold makes the lock, with an exclusive lease of the task for an hour.
func (r *rows) hold(name, task string) {
	r.t.Helper()
	exec(r.t, r.conn, `insert into paddock.records (name, token, revision, lease_id, mode, holder, ttl_ms, acquired_at, expires_at, rest)
		values ($1, 1, 1, $2, 1, 'holder of ' || $1, 1000, now(), now() + interval '1 h', json_build_object('task', $3::text))`, name, uuid.New(), task)
}

// wait makes a waiter of the task in the queue of the lock, for an hour.
func (r *rows) wait(name, task string) {
	r.t.Helper()
	r.places++
	exec(r.t, r.conn, `insert into paddock.parts (name, slot, place, attachment, replica, mode, ttl_ms, acquired_at, expires_at, lease_id, holder, rest)
		values ($1, 0, $2, $2, $3, 1, 1000, now(), now() + interval '1 h', $4, 'waiter for ' || $1, json_build_object('task', $5::text))`,
		name, r.places, int64(r.replica), uuid.New(), task)
}

func newRows(t *testing.T) (*replica, *rows) {
	t.Helper()
	url := pgtest.URL(t)
	r := newEngine().replica(t, url, noLimit)
	return r, &rows{t: t, conn: connect(t, url), replica: r.self}
}

// waitForEachOther makes so many tasks, each of which holds a lock and waits for those of all of them.
func (r *rows) waitForEachOther(tasks int) {
	r.t.Helper()
	for i := range tasks {
		r.hold(fmt.Sprint("n", i), fmt.Sprint("t", i))
	}
	exec(r.t, r.conn, `insert into paddock.parts (name, slot, place, attachment, mode, ttl_ms, acquired_at, expires_at, lease_id, holder, rest)
		select 'n' || i, 0, j + 1, 1, 1, 1000, now(), now() + interval '1 h', gen_random_uuid(), 'h', json_build_object('task', 't' || j)
		from generate_series(0, $1 - 1) i, generate_series(0, $1 - 1) j`, tasks)
}

// TestASearchForPairsLooksUpByKey whatever PostgreSQL knows about the tables: it reads the waiters of a task, never
// all.
func TestASearchForPairsLooksUpByKey(t *testing.T) {
	t.Parallel()
	_, all := newRows(t)
	exec(t, all.conn, "alter table paddock.parts set (autovacuum_enabled = false)")
	all.waitForEachOther(101)
	for _, prepare := range []string{"select 1", "analyze paddock.parts"} {
		exec(t, all.conn, prepare)
		rows, err := all.conn.Query(t.Context(), "explain (costs off) "+sqlWaitsOfHolders.In(""), []string{"n0"}, maxPairs)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan := strings.Join(lines, "\n")
		if err != nil || strings.Contains(plan, "Join Filter") || strings.Contains(plan, "Seq Scan on parts") {
			t.Errorf("after %s: %v, the plan is\n%s", prepare, err, plan)
		}
	}
}

// TestASearchForPairsIsNotCompiled: compiling it takes more than fifty times as long as running it.
func TestASearchForPairsIsNotCompiled(t *testing.T) {
	t.Parallel()
	r, all := newRows(t)
	exec(t, all.conn, `create function assert_no_jit() returns boolean stable language plpgsql as $$
		begin
			if current_setting('jit')::boolean then raise 'jit is on'; end if;
			return true;
		end $$`)
	exec(t, all.conn, "alter table paddock.parts rename to stored_parts")
	exec(t, all.conn, "create view paddock.parts as select * from paddock.stored_parts where assert_no_jit()")
	_, err := all.conn.Exec(t.Context(), sqlWaitsOfHolders.In(""), []string{"n0"}, maxPairs)
	if err == nil || !strings.Contains(err.Error(), "jit is on") {
		t.Errorf("with jit the search must fail, or this test proves nothing: %v", err)
	}
	if _, err := r.readPairs(t.Context(), []string{"n0"}, maxPairs); err != nil {
		t.Error(err)
	}
}

// TestPairsOfLocksAreLimited: of many tasks that wait at all locks of each other, at most as many pairs are read as
// asked for.
func TestPairsOfLocksAreLimited(t *testing.T) {
	t.Parallel()
	r, all := newRows(t)
	const tasks = 101 // more than maxPairs together
	all.waitForEachOther(tasks)
	for limit, want := range map[int]int{
		2: 2, maxChainPairs: maxChainPairs, maxPairs: maxPairs, 2 * maxPairs: tasks * tasks,
	} {
		pairs, err := r.readPairs(t.Context(), []string{"n0"}, limit)
		if err != nil || len(pairs) != want {
			t.Errorf("with the limit %d, %d pairs are read, %v; want %d", limit, len(pairs), err, want)
		}
		if pairs[0].from != "n0" {
			t.Errorf("the first pair is %v", pairs[0])
		}
	}
	locks, _, err := r.readSuspects(t.Context(), []string{"n0"})
	if err != nil || len(locks) < tasks/2 || len(locks) > tasks { // those of which no pair is read are missing
		t.Errorf("%d locks are read, %v", len(locks), err)
	}
}

// TestASearchReadsAtMostMaxSuspects of the locks of a circle.
func TestASearchReadsAtMostMaxSuspects(t *testing.T) {
	t.Parallel()
	r, all := newRows(t)
	const locks = maxSuspects + 1
	for i := range locks {
		all.hold(fmt.Sprintf("n%04d", i), fmt.Sprint("t", i))
		all.wait(fmt.Sprintf("n%04d", (i+1)%locks), fmt.Sprint("t", i))
	}
	found, _, err := r.readSuspects(t.Context(), []string{"n0000"})
	if err != nil || len(found) != maxSuspects {
		t.Errorf("%d locks are read, %v", len(found), err)
	}
}

// TestAChainReadsAtMostMaxChainLocks: with more of them, it does not say that a task waits for nothing. The parts of
// one task wait at so many locks, all of which another task holds.
func TestAChainReadsAtMostMaxChainLocks(t *testing.T) {
	t.Parallel()
	for locks, want := range map[int]lock.ChainEnd{maxChainLocks: lock.ChainNotWaiting, maxChainLocks + 1: lock.ChainLimit} {
		r, all := newRows(t)
		all.hold("a", "t")
		all.wait("a", "")
		for i := range locks {
			all.hold(fmt.Sprintf("n%02d", i), "u")
			all.wait(fmt.Sprintf("n%02d", i), fmt.Sprint("t.", i))
		}
		only := row.Only("a")
		only.Queue = true
		first, err := only.ReadOne(t.Context(), r.db.Rest, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		chain, err := r.Chain(t.Context(), first)
		if err != nil || chain == nil || len(chain.Steps) != 2 || chain.End != want || chain.Steps[0].WaitsFor != "holder of a" {
			t.Errorf("with %d locks, the chain is %+v, %v; want the end %s", locks, chain, err, want)
		}
	}
}

// TestLocksAreReachedNearestFirst, each once, by the pairs that lead to them.
func TestLocksAreReachedNearestFirst(t *testing.T) {
	t.Parallel()
	pairs := []pair{{"a", "c"}, {"a", "b"}, {"x", "y"}, {"b", "d"}, {"c", "a"}, {"d", "e"}, {"c", "e"}, {"a", "a"}}
	if got := fmt.Sprint(reachable("a", pairs)); got != "[c b e d]" {
		t.Errorf("the locks are %s", got)
	}
}
