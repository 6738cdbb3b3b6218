package fencing_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
)

// isNew returns the answer to an operation.
func isNew(t *testing.T, conn *pgx.Conn, arguments string) bool {
	t.Helper()
	return value[bool](t, conn, "select paddock_fence("+arguments+")")
}

func TestAnOperationIsNewOnce(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	for _, c := range []struct {
		arguments string
		want      bool
	}{
		{"'accounts', 7, 'booking:1'", true},
		{"'accounts', 7, 'booking:1'", false},
		{"'accounts', 7, 'booking:2'", true},
		{"'accounts', 9, 'booking:1'", false}, // another worker repeats it
		{"'orders', 7, 'booking:1'", true},
	} {
		if got := isNew(t, conn, c.arguments); got != c.want {
			t.Errorf("%s: %t", c.arguments, got)
		}
	}
	refused(t, conn, "PF001", "select paddock_fence('accounts', 8, 'booking:1')") // 9 is known from a repetition
	refused(t, conn, "PF001", "select paddock_fence('accounts', 8, 'booking:3')")
	if !isNew(t, conn, "'accounts', 9, 'booking:3'") {
		t.Error("a refused call has recorded its operation")
	}
	must(t, conn, "begin; select paddock_fence('accounts', 9, 'booking:4'); rollback")
	if !isNew(t, conn, "'accounts', 9, 'booking:4'") {
		t.Error("a transaction that rolled back has recorded its operation")
	}
}

func TestOperationIDsHaveBounds(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	for id, characters := range map[string]int{"''": 0, "null": 0, "repeat('a', 201)": 201, "repeat('ä', 201)": 201} {
		pg := refusal(t, conn, "PF002", "select paddock_fence('r', 1, "+id+")")
		if pg.Message != fmt.Sprintf("the operation_id has %d characters", characters) || pg.Hint == "" {
			t.Errorf("%s: %q, %q", id, pg.Message, pg.Hint)
		}
	}
	for _, arguments := range []string{"'', 1, 'o'", "'r', 0, 'o'", "null, 1, 'o'", "'r', null, 'o'"} {
		refused(t, conn, "PF002", "select paddock_fence("+arguments+")")
	}
	if got := value[string](t, conn, seen); got != "" {
		t.Errorf("the tokens are %q", got)
	}
	for _, arguments := range []string{"repeat('🐎', 250), 1, repeat('🐎', 200)", "token => 1, resource => 'r', operation_id => 'o'"} {
		if !isNew(t, conn, arguments) || isNew(t, conn, arguments) {
			t.Errorf("%s: not new once", arguments)
		}
	}
}

// TestTheSecondOfTwoTransactionsWaitsForTheFirst and does the work if the first has rolled back, at every isolation
// level, whether or not the token is known.
func TestTheSecondOfTwoTransactionsWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t)
			for _, known := range []int{6, 7, 8} {
				for _, end := range []string{"commit", "rollback"} {
					s.repeatOperation(level, end, known)
				}
			}
		})
	}
}

// repeatOperation lets a transaction with token 8 begin while one with the same operation is open, which ends so.
func (s *harness) repeatOperation(level, end string, known int) {
	s.Helper()
	resource := fmt.Sprintf("%s:%d", end, known)
	token := min(known, 7)
	must(s.T, s.observer, fmt.Sprintf("select paddock_fence('%s', %d)", resource, token))
	write := func(token int) string {
		return fmt.Sprintf("begin isolation level %[1]s; insert into ledger select '%[2]s', %[3]d where paddock_fence('%[2]s', %[3]d, 'o')",
			level, resource, token)
	}
	first, second := s.sessions[0], s.sessions[1]
	first.begin(write(token))
	first.mustEnd("the first write", "")
	second.begin(write(known))
	second.mustWait("the second write")
	first.begin(end)
	first.mustEnd("its "+end, "")
	if second.settle() && sqlstate(second.err) == "40001" && level != levels[0] && end == "commit" {
		must(s.T, second.conn, "rollback")
		second.begin(write(known))
	}
	second.mustEnd("the second write", "")
	second.begin("commit")
	second.mustEnd("the second commit", "")
	want := token
	if end == "rollback" {
		want = known
	}
	written := value[[]int](s.T, s.observer, "select coalesce(array_agg(token), '{}') from ledger where resource = $1", resource)
	if len(written) != 1 || written[0] != want {
		s.Errorf("%s, known %d, %s: written under %v", level, known, end, written)
	}
}

// TestEachOperationIsWrittenOnce, though eight workers try each, at every isolation level, and some of them roll back.
func TestEachOperationIsWrittenOnce(t *testing.T) {
	t.Parallel()
	const workers, operations = 8, 60
	url := newDatabase(t)
	var wg sync.WaitGroup
	for i := range workers {
		conn := connect(t, url)
		random := mathrand.New(mathrand.NewPCG(uint64(i), 7))
		wg.Go(func() {
			for n := range operations {
				if err := book(t.Context(), conn, random, n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	written := value[[]int](t, connect(t, url), "select array_agg(token order by token) from ledger")
	if len(written) != operations {
		t.Errorf("%d operations were written %d times: %v", operations, len(written), written)
	}
	for n, got := range written {
		if got != n {
			t.Fatalf("operation %d is missing or repeated: %v", n, written)
		}
	}
}

// book tries operation n until it is committed or known.
func book(ctx context.Context, conn *pgx.Conn, random *mathrand.Rand, n int) error {
	for {
		level := levels[random.IntN(len(levels))]
		sql := fmt.Sprintf("begin isolation level %s; insert into ledger select 'once', %d where paddock_fence('once', 7, 'n%[2]d')", level, n)
		if random.IntN(4) == 0 {
			if err := run(ctx, conn, sql+"; rollback"); err != nil && sqlstate(err) != "40001" {
				return err
			}
		} else if err := run(ctx, conn, sql+"; commit"); err == nil || sqlstate(err) != "40001" {
			return err
		}
		if err := run(ctx, conn, "rollback"); err != nil {
			return err
		}
	}
}

const old = "select count(*) from paddock_operations where operation_id like 'old%'"

// newDatabaseWithOldOperations returns a database with 250 operations of 31 days ago, and one of 29 days ago.
func newDatabaseWithOldOperations(t *testing.T) (url string) {
	t.Helper()
	url = newDatabase(t)
	must(t, connect(t, url), `
		insert into paddock_operations select 'elsewhere', 'old' || i, now() - interval '31 days' from generate_series(1, 250) as i;
		insert into paddock_operations values ('elsewhere', 'recent', now() - interval '29 days 23 hours')`)
	return url
}

// TestOldOperationsArePruned by calls for another resource, a bounded number at a time.
func TestOldOperationsArePruned(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabaseWithOldOperations(t))
	before := 250
	for calls := 1; before > 0; calls++ {
		if calls > 5000 {
			t.Fatalf("%d old operations are left", before)
		}
		must(t, conn, "select paddock_fence('r', 7, 'again')")
		after := value[int](t, conn, old)
		if before-after > 100 {
			t.Errorf("a call has pruned %d operations", before-after)
		}
		before = after
	}
	if isNew(t, conn, "'elsewhere', 7, 'recent'") || !isNew(t, conn, "'elsewhere', 7, 'old1'") {
		t.Error("other operations than the old ones were pruned")
	}
}

// TestPruningIsLeftToReadCommitted, where it cannot fail.
func TestPruningIsLeftToReadCommitted(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabaseWithOldOperations(t))
	must(t, conn, "begin isolation level repeatable read; select paddock_fence('r', 7, i::text) from generate_series(1, 1000) as i; commit")
	if n := value[int](t, conn, old); n != 250 {
		t.Errorf("%d of 250 old operations are left", n)
	}
}

func TestPruningWaitsForNoOtherTransaction(t *testing.T) {
	t.Parallel()
	url := newDatabaseWithOldOperations(t)
	one, other := connect(t, url), connect(t, url)
	const prune = "select paddock_fence('%s', 7, i::text) from generate_series(1, 2000) as i"
	must(t, one, "begin; "+fmt.Sprintf(prune, "one"))
	if n := value[int](t, one, old); n != 0 {
		t.Fatalf("%d old operations are left", n)
	}
	must(t, other, "set lock_timeout = '1ms'; "+fmt.Sprintf(prune, "other"))
	must(t, one, "rollback")
}

// TestPruningReadsTheIndexByAge, and not all operations.
func TestPruningReadsTheIndexByAge(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "insert into paddock_operations select 'r', i::text from generate_series(1, 20000) as i; analyze paddock_operations")
	_, query, _ := strings.Cut(paddock.InstallFence, "any (array(")
	query, _, found := strings.Cut(query, "limit ")
	if !found {
		t.Fatal("install.sql has no such query")
	}
	rows, err := conn.Query(t.Context(), "explain "+query+" limit 100 for update skip locked")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !strings.Contains(strings.Join(plan, "\n"), "Index Scan using paddock_operations_by_age") {
		t.Errorf("%v, the plan is\n%s", err, strings.Join(plan, "\n"))
	}
}

// TestOperationsNeedTheDocumentedRights checks the grants that README.md lists.
func TestOperationsNeedTheDocumentedRights(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	app := "app_" + strings.ToLower(rand.Text())
	must(t, conn, fmt.Sprintf("create role %[1]s; grant select, insert, update on paddock_fences to %[1]s; set role %[1]s", app))
	const call = "select paddock_fence('r', 8, 'o')"
	refused(t, conn, "42501", call)
	for _, missing := range []string{"select", "insert", "update", "delete"} {
		must(t, conn, fmt.Sprintf("reset role; grant select, insert, update, delete on paddock_operations to %[1]s; revoke %[2]s on paddock_operations from %[1]s; set role %[1]s", app, missing))
		refused(t, conn, "42501", call) // each time, not only when it prunes
	}
	must(t, conn, "reset role; grant select, insert, update, delete on paddock_operations to "+app+"; set role "+app)
	must(t, conn, call)
	must(t, conn, "reset role; revoke all on paddock_operations from "+app+"; alter function paddock_fence(text, bigint, text) security definer; set role "+app)
	must(t, conn, call)
	must(t, conn, "reset role; drop owned by "+app+"; drop role "+app)
}

// TestInstallAddsOperationsToAnEarlierRelease, which had none.
func TestInstallAddsOperationsToAnEarlierRelease(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "drop function paddock_fence(text, bigint, text); drop table paddock_operations; select paddock_fence('r', 8)")
	must(t, conn, paddock.InstallFence)
	refused(t, conn, "PF001", "select paddock_fence('r', 7, 'o')")
	if !isNew(t, conn, "'r', 8, 'o'") {
		t.Error("the operation is not new")
	}
	must(t, conn, paddock.InstallFence)
	if isNew(t, conn, "'r', 8, 'o'") {
		t.Error("a second install has dropped the operations")
	}
}
