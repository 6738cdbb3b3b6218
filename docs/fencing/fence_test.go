package fencing_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

func TestRefusalNamesBothTokens(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "select paddock_fence('accounts:42', 8)")
	pg := refusal(t, conn, "PF001", "select paddock_fence('accounts:42', 7)")
	if pg.Message != `token 7 is stale for resource "accounts:42"` ||
		pg.Detail != "token shown: 7, greatest token seen: 8" ||
		!strings.Contains(pg.Hint, "roll back and stop") {
		t.Errorf("got %q, %q, %q", pg.Message, pg.Detail, pg.Hint)
	}
}

func TestFenceArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	for call, state := range map[string]string{
		"'a', 1": "", "'b', 9007199254740991": "", "repeat('a', 1000), 1": "",
		"repeat('ä', 500), 1": "", "token => 1, resource => 'c'": "",
		"'a', 0": "PF002", "'a', -1": "PF002", "'a', 9007199254740992": "PF002", "'a', null": "PF002",
		"'', 1": "PF002", "null, 1": "PF002", "repeat('a', 1001), 1": "PF002", "repeat('ä', 501), 1": "PF002",
	} {
		err := run(t.Context(), conn, "select paddock_fence("+call+")")
		if sqlstate(err) != state || state == "" && err != nil {
			t.Errorf("%s: %v, want SQLSTATE %q", call, err, state)
		}
	}
}

func TestManyWritesUnderOneTokenLeaveOneRowVersion(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "set synchronous_commit = off; select paddock_fence('r', 7)")
	const where = "select format('%s of %s', ctid, xmin) from paddock_fences"
	before := value[string](t, conn, where)
	must(t, conn, "do $$ begin for i in 1..10000 loop perform paddock_fence('r', 7); commit; end loop; end $$")
	if after := value[string](t, conn, where); after != before {
		t.Errorf("the row was at %s, and is at %s", before, after)
	}
}

// TestFenceRunsWithTheRightsOfItsCaller grants the rights that README.md lists.
func TestFenceRunsWithTheRightsOfItsCaller(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.EmptyURL(t))
	app := "app_" + strings.ToLower(rand.Text())
	must(t, conn, fmt.Sprintf(`create schema bank; set search_path = bank; %s
		create table accounts (id int); select paddock_fence_guard('accounts'); create role %[2]s;
		grant usage on schema bank to %[2]s; grant insert on accounts to %[2]s; set role %[2]s`, paddock.InstallFence, app))
	const write = "begin; set local paddock.token = '8'; insert into accounts values (1); commit"
	refused(t, conn, "42501", "select paddock_fence('r', 8)")
	refused(t, conn, "42501", write)
	must(t, conn, "reset role; grant select, insert, update on paddock_fences to "+app+"; set role "+app)
	must(t, conn, "select paddock_fence('r', 8); "+write)
	refused(t, conn, "PF001", "select paddock_fence('r', 7)")
	must(t, conn, "reset role; drop owned by "+app+"; drop role "+app)
}

// TestSuccessorWaitsForAStoppedTransaction until the server ends it.
func TestSuccessorWaitsForAStoppedTransaction(t *testing.T) {
	t.Parallel()
	s := newHarness(t)
	stopped, next := s.sessions[0], s.sessions[1]
	stopped.start("begin; select paddock_fence('r', 7)")
	stopped.mustEnd("the fence", "")
	next.start("select paddock_fence('r', 8)")
	next.mustWait("the next fence")
	// idle_in_transaction_session_timeout does the same.
	must(t, s.watch, fmt.Sprintf("select pg_terminate_backend(%d)", stopped.pid))
	if err := <-next.step; err != nil {
		t.Errorf("the next fence: %v", err)
	}
	next.step = nil
}
