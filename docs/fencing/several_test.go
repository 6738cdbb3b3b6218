package fencing_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
)

const seen = "select coalesce(string_agg(format('%s %s', resource, token), ', ' order by resource), '') from paddock_fences"

func TestSeveralResourcesArePassedOrNone(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "select paddock_fence('b', 8)")
	pg := refusal(t, conn, "PF001", "select paddock_fence(array['c', 'b', 'a'], 7)")
	if pg.Message != `token 7 is stale for resource "b"` || pg.Detail != "token shown: 7, greatest token seen: 8" {
		t.Errorf("got %q, %q", pg.Message, pg.Detail)
	}
	if got := value[string](t, conn, seen); got != "b 8" {
		t.Errorf("after a refusal the tokens are %q", got)
	}
	must(t, conn, "select paddock_fence(array['c', 'b', 'a', 'c', 'b'], 9)")
	if got := value[string](t, conn, seen); got != "a 9, b 9, c 9" {
		t.Errorf("the tokens are %q", got)
	}
	refused(t, conn, "PF001", "select paddock_fence('a', 8)")
}

func TestArraysOfResourcesHaveBounds(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	for call, want := range map[string]string{
		"array[]::text[], 1": "the array of resources is empty", "null::text[], 1": "the array of resources is empty",
		"array['a', null], 1": "the resource has 0 bytes", "array['a', ''], 1": "the resource has 0 bytes",
		"array['a', repeat('b', 1001)], 1": "the resource has 1001 bytes",
		"array['a', 'b'], 0":               "token 0 is out of bounds", "array['a', 'b'], null": "token null is out of bounds",
	} {
		if pg := refusal(t, conn, "PF002", "select paddock_fence("+call+")"); pg.Message != want || pg.Hint == "" {
			t.Errorf("%s: %q, %q, want %q", call, pg.Message, pg.Hint, want)
		}
	}
	if got := value[string](t, conn, seen); got != "" {
		t.Errorf("the tokens are %q", got)
	}
	must(t, conn, "select paddock_fence('{b,a}'::text[], 1), paddock_fence(array['c'::varchar], 1), paddock_fence(array[['d'], ['e']], 1)")
	must(t, conn, "select paddock_fence(token => 1, resources => array['f'])")
	if got := value[string](t, conn, seen); got != "a 1, b 1, c 1, d 1, e 1, f 1" {
		t.Errorf("the tokens are %q", got)
	}
}

// TestAnUntypedResourceIsOneName: calls from before there were arrays mean what they meant.
func TestAnUntypedResourceIsOneName(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "select paddock_fence('{a,b}', 1); prepare p as select paddock_fence($1, $2); execute p('{c}', 2)")
	if _, err := conn.Exec(t.Context(), "select paddock_fence($1, $2)", "d", 3); err != nil {
		t.Fatal(err)
	}
	if got := value[string](t, conn, seen); got != "d 3, {a,b} 1, {c} 2" {
		t.Errorf("the tokens are %q", got)
	}
}

// TestArraysInOppositeOrdersDoNotDeadlock: both transactions wait at their first resource by name, and hold none.
func TestArraysInOppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	s := newHarness(t)
	one, other := s.sessions[0], s.sessions[1]
	must(t, s.observer, "begin; select paddock_fence('a', 1)")
	one.begin("begin; select paddock_fence(array['b', 'a'], 7)")
	one.mustWait("the fence of b and a")
	other.begin("begin; select paddock_fence(array['a', 'b'], 8)")
	other.mustWait("the fence of a and b")
	must(t, s.observer, "set lock_timeout = '10s'; select paddock_fence('b', 1); commit")
	first, last := one, other
	if !one.settle() { // the server chose the other one
		first, last = other, one
	}
	first.mustEnd("the first fence", "")
	last.mustWait("the second fence")
	first.begin("commit")
	first.mustEnd("its commit", "")
	state := "PF001" // 7 after 8
	if last == other {
		state = ""
	}
	last.mustEnd("the second fence", state)
	last.begin("commit") // of a failed transaction, it rolls back
	last.mustEnd("the other commit", "")
}

// TestSingleCallsInOppositeOrdersDeadlock shows what the array prevents.
func TestSingleCallsInOppositeOrdersDeadlock(t *testing.T) {
	t.Parallel()
	s := newHarness(t)
	one, other := s.sessions[0], s.sessions[1]
	one.begin("begin; select paddock_fence('a', 7)")
	one.mustEnd("the fence of a", "")
	other.begin("begin; select paddock_fence('b', 8)")
	other.mustEnd("the fence of b", "")
	one.begin("select paddock_fence('b', 7)")
	one.mustWait("the fence of b")
	other.begin("select paddock_fence('a', 8)")
	for _, a := range s.sessions {
		if a.step != nil {
			a.err, a.step = <-a.step, nil
		}
	}
	if sqlstate(one.err) != "40P01" && sqlstate(other.err) != "40P01" {
		t.Errorf("the transactions ended with %v and %v", one.err, other.err)
	}
}

// TestInstallAddsSeveralResourcesToAnEarlierRelease, which had no function for them.
func TestInstallAddsSeveralResourcesToAnEarlierRelease(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "drop function paddock_fence(text[], bigint); select paddock_fence('b', 8), paddock_fence_guard('accounts')")
	must(t, conn, paddock.InstallFence)
	refused(t, conn, "PF001", "select paddock_fence(array['a', 'b'], 7)")
	refused(t, conn, "PF002", "delete from accounts")
	must(t, conn, "drop function paddock_fence(text[], bigint);"+paddock.UninstallFence)
	if left := value[int](t, conn, "select count(*) from pg_proc where proname like 'paddock%'"); left > 0 {
		t.Errorf("%d functions are left", left)
	}
}

// TestSeveralResourcesNeedNoMoreRightsThanOne, in a schema that is not in the search_path, also if the function is a
// security definer.
func TestSeveralResourcesNeedNoMoreRightsThanOne(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	app := "app_" + strings.ToLower(fmt.Sprintf("%x", rand.Uint64()))
	must(t, conn, fmt.Sprintf(`create schema bank; set search_path = bank; %s
		create role %[2]s; grant usage on schema bank to %[2]s; reset search_path; set role %[2]s`, paddock.InstallFence, app))
	refused(t, conn, "42501", "select bank.paddock_fence(array['a', 'b'], 8)")
	must(t, conn, "reset role; alter function bank.paddock_fence(text, bigint) security definer; set role "+app)
	must(t, conn, "select bank.paddock_fence(array['a', 'b'], 8)")
	refused(t, conn, "PF001", "select bank.paddock_fence(array['c', 'b'], 7)")
	must(t, conn, "reset role; drop owned by "+app+"; drop role "+app)
}
