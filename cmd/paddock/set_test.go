package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// stateOf returns a lock.
func (d *harness) stateOf(name string) lock.Lock {
	d.Helper()
	l, err := d.locks.Lock(d.Context(), name)
	if err != nil {
		d.Fatal(err)
	}
	return l
}

// expectHeld checks which of the locks a, b and c have leases, and that no lock has waiters.
func (d *harness) expectHeld(want ...string) {
	d.Helper()
	var held []string
	for _, name := range []string{"a", "b", "c"} {
		l := d.stateOf(name)
		if l.State != lock.Free {
			held = append(held, name)
		}
		if l.Waiters > 0 {
			d.Errorf("%s has %d waiters", name, l.Waiters)
		}
	}
	if !slices.Equal(held, want) {
		d.Errorf("%v are held, want %v", held, want)
	}
}

func TestLocksOnTheCommandLineHaveModes(t *testing.T) {
	t.Parallel()
	got, err := leaseFlags{Capacity: new(2)}.members([]string{"a", "b,shared", "c,exclusive", "d,capacity=3", "e,capacity=8,permits=2", "no name"})
	want := []lock.Member{
		{Name: "a", Mode: lock.Permit, Capacity: 2}, {Name: "b", Mode: lock.Shared}, {Name: "c", Mode: lock.Exclusive},
		{Name: "d", Mode: lock.Permit, Capacity: 3}, {Name: "e", Mode: lock.Permit, Capacity: 8, Permits: 2}, {Name: "no name", Mode: lock.Permit, Capacity: 2},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the locks are %+v, %v", got, err)
	}
	for _, bad := range []string{"a,", "a,b", "a,permit", "a,capacity", "a,capacity=", "a,capacity=0", "a,shared,capacity=2",
		"a,capacity=2,capacity=3", "a,capacity=2,permits", "a,capacity=2,permits=0", "a,capacity=2,"} {
		if _, err := parseLocks([]string{bad}); exitCode(err) != exitUsage || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestAcquireRenewAndReleaseSeveralLocks(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	reader := d.hold(lock.Acquire{Locks: []lock.Member{{Name: "c", Mode: lock.Shared}}, Holder: "a reader"})
	stdout, _ := d.expectExit(exitOK, "acquire", "b", "a", "c,shared", "-o", "json")
	var lease api.LeaseSet
	if err := json.Unmarshal([]byte(stdout), &lease); err != nil {
		t.Fatal(err)
	}
	token := lease.Locks[0].FencingToken
	want := []api.SetLease{
		{Name: "a", Mode: api.Exclusive, FencingToken: token}, {Name: "b", Mode: api.Exclusive, FencingToken: token},
		{Name: "c", Mode: api.Shared, FencingToken: int64(reader.Token), Slot: 2},
	}
	if !reflect.DeepEqual(lease.Locks, want) || lease.Holder != "me" || token <= int64(reader.Token) {
		t.Errorf("the lease is\n%s", stdout)
	}
	d.env["PADDOCK_LEASE_ID"] = lease.LeaseID.String()
	d.expectFailure(exitUsage, []string{"give all of their names: a b c"}, "renew", "a")
	d.expectFailure(exitUsage, []string{"NAME: names"}, "release", "a", "b")
	stdout, _ = d.expectExit(exitOK, "renew", "c", "a", "b", "-o", "env")
	vars := paddockVariables(strings.NewReplacer("export ", "", "'", "").Replace(stdout))
	if want := fmt.Sprintf("a=%d b=%d c=%d", token, token, reader.Token); vars["PADDOCK_FENCING_TOKENS"] != want ||
		vars["PADDOCK_LOCKS"] != "a b c" || vars["PADDOCK_LOCK"] != "a" || vars["PADDOCK_SLOTS"] != "c=2" ||
		!strings.Contains(stdout, "unset PADDOCK_SLOT\n") {
		t.Errorf("the variables are\n%s", stdout)
	}
	stdout, _ = d.expectExit(exitOK, "renew", "a", "b", "c", `--metadata={"at":7}`)
	table := fmt.Sprintf("LEASE ID  UUID\nHOLDER  me\nEXPIRES  INSTANT (in DURATION)\nMETADATA  {\"at\":7}\n\nLOCK  TOKEN  MODE\n"+
		"a  %d  exclusive\nb  %d  exclusive\nc  %d  shared, slot 2\n", token, token, reader.Token)
	if got := collapseSpaces(normalized(stdout)); got != table {
		t.Errorf("the table is\n%swant\n%s", got, table)
	}
	d.expectOutput("", "release", "b", "c", "a")
	d.expectHeld("c") // by the other reader
	d.expectFailure(exitLeaseLost, []string{"was released"}, "renew", "a", "b", "c")
}

func TestARefusalOfSeveralLocksNamesEachBlocker(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One("a"), Holder: "alice"})
	d.hold(lock.Acquire{Locks: lock.One("c"), Holder: "carol"})
	for _, args := range [][]string{
		{"acquire", "a", "b", "c"}, {"acquire", "a", "b", "c", "--wait=100ms"},
		{"run", "--lock=a", "--lock", "b", "--lock", "c", "--", "/bin/sh"},
	} {
		_, stderr := d.expectExit(exitNotAcquired, args...)
		want := regexp.MustCompile(`^paddock: a, b, c not acquired: alice holds a for another \S+, unless it renews; ` +
			`carol holds c for another \S+, unless it renews\. Wait longer with --wait`)
		if !want.MatchString(stderr) {
			t.Errorf("%q: %s", args, stderr)
		}
	}
	d.expectHeld("a", "c")
}

func TestRunHoldsSeveralLocks(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	file := filepath.Join(t.TempDir(), "job.prom")
	p := d.prepareRun("--metrics-file", file, "--lock", "b", "--lock=a", "--lock=c,capacity=3,permits=2", "--", "sh", "-c", `env; read line; exit 7`)
	in, err := p.Cmd.StdinPipe()
	mustBeNil(t, err)
	p.Start(t)
	p.Stdout.Await(t, `(PADDOCK_FENCING_TOKENS=)`)
	d.expectHeld("a", "b", "c")
	d.expectFailure(exitNotAcquired, []string{"holds a for another"}, "acquire", "a", "d")
	_, err = in.Write([]byte("\n"))
	mustBeNil(t, err)
	p.expectExit(t, 7)
	expectLines(t, file, `paddock_run_exit_code{lock="a,b,c"} 7`, `paddock_guard_hold_seconds_count{lock="a,b,c"} 1`)
	vars := paddockVariables(p.Stdout.String())
	token := fmt.Sprint(d.stateOf("a").Token)
	if vars["PADDOCK_LOCK"] != "a" || vars["PADDOCK_LOCKS"] != "a b c" || vars["PADDOCK_FENCING_TOKEN"] != token ||
		vars["PADDOCK_FENCING_TOKENS"] != "a="+token+" b="+token+" c="+token || vars["PADDOCK_SLOTS"] != "c=1,2" || vars["PADDOCK_SLOT"] != "" {
		t.Errorf("the command has %v; the token is %s", vars, token)
	}
	d.expectHeld()
}

func TestRunTakesEitherANameOrLocks(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for _, args := range [][]string{
		{"--lock=a", "--", "printf", "<%s>", "x", "--", "--lock"}, {"a", "--", "printf", "<%s>", "x", "--", "--lock"},
		{"a,shared", "printf", "<%s>", "x", "--", "--lock"}, {"--lock=a", "--wait=1s", "--", "printf", "<%s>", "x", "--", "--lock"},
	} {
		p := d.startRun(args...)
		p.expectExit(t, exitOK)
		if got, want := p.Stdout.String(), "<x><--><--lock>"; got != want {
			t.Errorf("%q: printed %s, want %s", args, got, want)
		}
	}
	d.startRun("--lock=a", "--", "true").expectExit(t, exitOK)
}

// TestReadsShowTheSetOfALease and that of a waiter.
func TestReadsShowTheSetOfALease(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectExit(exitOK, "acquire", "a", "b", "c", "--ttl=1h")
	d.hold(lock.Acquire{Locks: lock.One("d"), Holder: "alone"})
	token := fmt.Sprint(d.stateOf("a").Token)
	stdout, _ := d.expectExit(exitOK, "get", "b")
	if !strings.Contains(collapseSpaces(stdout), "  METADATA  TOGETHER WITH\n") || !strings.HasSuffix(collapseSpaces(stdout), "  -  a, c\n") {
		t.Errorf("the lock is\n%s", stdout)
	}
	stdout, _ = d.expectExit(exitOK, "list")
	for _, want := range []string{
		"WAITING  TOGETHER WITH\n", "a  held  exclusive  " + token + "  me  INSTANT  DURATION  0  b, c\n", "alone  INSTANT  DURATION  0  -\n",
	} {
		if got := collapseSpaces(normalized(stdout)); !strings.Contains(got, want) {
			t.Errorf("the list is\n%swant %s", got, want)
		}
	}
	stdout, _ = d.expectExit(exitOK, "get", "d")
	if strings.Contains(stdout, "TOGETHER") {
		t.Errorf("the lock is\n%s", stdout)
	}
	p := d.startRun("--wait=forever", "--lock=d", "--lock=e", "--", "true")
	d.awaitEvent("e", lock.Queued, "me")
	for name, blocker := range map[string]string{"d": `alone \(token \d+\)`, "e": `alone \(token \d+\) at d`} {
		other := map[string]string{"d": "e", "e": "d"}[name]
		stdout, _ = d.expectExit(exitOK, "queue", name)
		want := regexp.MustCompile(`BLOCKED BY  TOGETHER WITH\n1  me  exclusive  INSTANT  DURATION  ` + blocker + "  " + other + "\n$")
		if got := collapseSpaces(normalized(stdout)); !want.MatchString(got) {
			t.Errorf("the queue of %s is\n%s", name, got)
		}
	}
	mustBeNil(t, p.Cmd.Process.Kill())
	<-p.Ended()
	stdout, _ = d.expectExit(exitOK, "get", "b", "-o", "json")
	var l api.Lock
	if err := json.Unmarshal([]byte(stdout), &l); err != nil || !slices.Equal(wire.ToLock(l).Leases[0].Set, []string{"a", "b", "c"}) {
		t.Errorf("%v: the lock is\n%s", err, stdout)
	}
}
