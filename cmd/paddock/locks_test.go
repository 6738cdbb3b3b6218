package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/lock"
)

const freeTable = `LOCK  jobs:nightly
STATE  free
NEWEST TOKEN  -
CHANGED  -
WAITING  0
`

const permitsTable = `LOCK  uploads
STATE  held
NEWEST TOKEN  1
CHANGED  INSTANT
PERMITS  1 of 3 taken
WAITING  0

HOLDER  MODE  TOKEN  ACQUIRED  EXPIRES  LEFT  METADATA
it's me  permit, slot 1  1  INSTANT  INSTANT  DURATION  {"pid":7}
`

func TestGetPrintsALock(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectOutput(freeTable, "get", "jobs:nightly")
	d.expectOutput("export PADDOCK_STATE=free\nexport PADDOCK_NEWEST_TOKEN=0\nunset PADDOCK_HELD_BY\nexport "+
		"PADDOCK_WAITERS=0\n", "get", "jobs:nightly", "-o", "env")
	d.hold(lock.Acquire{Locks: []lock.Member{{Name: "uploads", Mode: lock.Permit, Capacity: 3}}, Holder: "it's me",
		Metadata: json.RawMessage(`{"pid":7}`)})
	d.expectOutput(permitsTable, "get", "uploads")
	d.expectOutput("export PADDOCK_STATE=held\nexport PADDOCK_NEWEST_TOKEN=1\nexport PADDOCK_HELD_BY='it'\\''s "+
		"me'\nexport PADDOCK_WAITERS=0\n", "get", "uploads", "-o", "env")
}

func TestListPrintsLocks(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	const header = "LOCK  STATE  MODE  TOKEN  HOLDER  EXPIRES  LEFT  WAITING\n"
	d.expectEmpty("No locks found.", "list")
	d.expectOutput("[]\n", "list", "-o", "json")
	first := d.hold(lock.Acquire{Locks: lock.One("jobs:a"), Holder: "me"})
	second := d.hold(lock.Acquire{Locks: []lock.Member{{Name: "jobs:b", Mode: lock.Shared}}, Holder: "reader 1"})
	d.hold(lock.Acquire{Locks: []lock.Member{{Name: "jobs:b", Mode: lock.Shared}}, Holder: "reader 2"})
	d.useLease(d.hold(lock.Acquire{Locks: lock.One("other"), Holder: "me"}))
	d.expectExit(exitOK, "release", "other")

	a := fmt.Sprintf("jobs:a  held  exclusive  %d  me  INSTANT  DURATION  0\n", first.Token)
	b := fmt.Sprintf("jobs:b  held  shared  %d  reader 1 and 1 more  INSTANT  DURATION  0\n", second.Token)
	d.expectOutput(header+a+b, "list", "--prefix=jobs:")
	d.expectOutput(header+a, "list", "--holder=me")
	d.expectOutput(header+a, "list", "--limit=1")
	d.expectOutput(header+b, "list", "--holder=reader 2", "--state=held")
	d.expectEmpty("No locks found.", "list", "--state=grace")
	d.expectOutput(header+b, "list", "--contains=:b")
	d.expectOutput(header+a+b, "list", "--sort=age")
	d.expectOutput(header+a, "list", "--sort=age", "--limit=1")
	d.expectEmpty("No locks found.", "list", "--contended")
	stdout, _ := d.expectExit(exitOK, "list", "-o", "json", "--state=free")
	var locks []api.Lock
	if err := json.Unmarshal([]byte(stdout), &locks); err != nil || len(locks) != 1 || locks[0].Name != "other" ||
		locks[0].State != api.Free {
		t.Errorf("%v:\n%s", err, stdout)
	}
}

func TestListFollowsThePages(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	want := d.holdMany("many", 2*paddock.DefaultLimit+1)
	for flags, n := range map[string]int{
		"--limit=0": len(want), "--limit=150": 150, "--sort=age": len(want), "--sort=age --limit=150": 150,
	} {
		stdout, _ := d.expectExit(exitOK, append([]string{"list"}, strings.Fields(flags)...)...)
		var got []string
		for line := range strings.Lines(stdout) {
			got = append(got, strings.Fields(line)[0])
		}
		if strings.Join(got[1:], " ") != strings.Join(want[:n], " ") {
			t.Errorf("%s lists %v", flags, got)
		}
	}
}

func TestQueuePrintsWaitersAndWhatBlocksThem(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	const header = "POSITION  HOLDER  MODE  JOINED  WAITED  BLOCKED BY\n"
	d.expectEmpty("No call waits for jobs:nightly.", "queue", "jobs:nightly")
	before := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "before"})
	d.enqueue(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "first"})
	d.enqueue(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "second"})
	d.expectOutput(header+fmt.Sprintf("1  first  exclusive  INSTANT  DURATION  before (token %d)\n", before.Token)+
		"2  second  exclusive  INSTANT  DURATION  1 ahead in the queue\n", "queue", "jobs:nightly")
	stdout, _ := d.expectExit(exitOK, "queue", "jobs:nightly", "-o", "json")
	var queue api.Queue
	if err := json.Unmarshal([]byte(stdout), &queue); err != nil || len(queue.Waiters) != 2 ||
		queue.Waiters[0].Leases[0].Holder != "before" {
		t.Errorf("%v:\n%s", err, stdout)
	}
}

func TestQueuePrintsTheChainToItsRoot(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	alice := d.hold(lock.Acquire{Locks: lock.One("a"), Holder: "alice", Task: "t"})
	d.hold(lock.Acquire{Locks: lock.One("b"), Holder: "bob", Task: "u"})
	d.enqueue(lock.Acquire{Locks: lock.One("b"), Holder: "alice's part", Task: "t.1"})
	d.enqueue(lock.Acquire{Locks: lock.One("a"), Holder: "carol"})
	d.expectOutput("POSITION  HOLDER  MODE  JOINED  WAITED  BLOCKED BY\n"+
		fmt.Sprintf("1  carol  exclusive  INSTANT  DURATION  alice (token %d)\n", alice.Token)+
		"\nCHAIN  WAITS FOR  IN THE WAY\ncarol  a  \"alice\" holds it\nalice's part  b  \"bob\" holds it\n\nThe task of \"bob\" waits for no lock.\n", "queue", "a")
}

// TestTheChainInATreeSaysAtWhichLock the lease in the way is: another one than the lock that is waited for.
func TestTheChainInATreeSaysAtWhichLock(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectExit(exitOK, "tree", "declare", "repo")
	d.hold(lock.Acquire{Locks: lock.One("repo:src:a"), Holder: "builder"})
	d.enqueue(lock.Acquire{Locks: lock.One("repo"), Holder: "cleanup"})
	d.enqueue(lock.Acquire{Locks: lock.One("repo:src:c"), Holder: "other"})
	d.expectOutput("POSITION  HOLDER  MODE  JOINED  WAITED  BLOCKED BY\n"+
		"1  other  exclusive  INSTANT  DURATION  1 ahead in the queue of repo\n"+
		"\nCHAIN  WAITS FOR  IN THE WAY\nother  repo:src:c  \"cleanup\" waits for repo, above it, and is ahead\n"+
		"cleanup  repo  \"builder\" holds repo:src:a, below it\n\nIt is not known what \"builder\" waits for.\n", "queue", "repo:src:c")
}

func TestQueueSaysHowAChainEnds(t *testing.T) {
	t.Parallel()
	step := lock.DeadlockStep{Name: "a", Holder: "first", WaitsFor: "second", Ahead: true}
	for end, want := range map[lock.ChainEnd]string{
		lock.ChainNotWaiting: `The task of "second" waits for no lock.`, lock.ChainUnknown: `It is not known what "second" waits for.`,
		lock.ChainCircle: "The chain is a circle. If it lasts, it is a deadlock, which the service breaks.",
		lock.ChainLimit:  "The chain may go on.",
	} {
		var out strings.Builder
		q := lock.QueueInfo{Chain: &lock.WaitChain{Steps: []lock.DeadlockStep{step, step}, End: end}}
		if err := showQueue(q).write(&out, asTable, style{}); err != nil || !strings.Contains(out.String(), want) ||
			!strings.Contains(out.String(), `"second" is ahead in its queue`) {
			t.Errorf("%s: %v, it prints\n%s", end, err, out.String())
		}
	}
	var out strings.Builder
	q := lock.QueueInfo{Chain: &lock.WaitChain{Steps: []lock.DeadlockStep{step}, End: lock.ChainUnknown}}
	if err := showQueue(q).write(&out, asTable, style{}); err != nil || strings.Contains(out.String(), "CHAIN") {
		t.Errorf("nothing is known, %v, and it prints\n%s", err, out.String())
	}
}

func TestQueueExplainsWhatBlocksAWaiter(t *testing.T) {
	t.Parallel()
	reader := lock.LeaseInfo{Holder: "reader", Token: 7}
	for want, w := range map[string]lock.WaiterInfo{
		"3 ahead in the queue":        {BlockedBy: lock.BlockedByQueue, Ahead: 3},
		"reader (token 7)":            {BlockedBy: lock.BlockedByHolders, Leases: []lock.LeaseInfo{reader}},
		"reader (token 7) and 1 more": {BlockedBy: lock.BlockedByHolders, Leases: []lock.LeaseInfo{reader, reader}},
		"nothing is seen; it is next": {BlockedBy: lock.BlockedByHolders},
		"grants are paused by a new epoch; paddock epoch list shows until when": {BlockedBy: lock.BlockedByPause},
		"client disconnected; place kept for 8s": {BlockedBy: lock.BlockedByDisconnect,
			KeptFor: 8 * time.Second},
	} {
		if got := blockedBy(w); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestRevokeEndsOneLeaseAndPrintsTheLock(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	grant := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "me"})
	token := fmt.Sprintf("--token=%d", grant.Token)
	for words, args := range map[string][]string{
		"give the name of the lock and its --token": {"jobs:nightly"}, "leave out NAME, --token": {"--session=7bb9f2a32ab6969f", "--token=1"},
		"--session: ": {"--session=x"},
	} {
		d.expectFailure(exitUsage, []string{words}, append([]string{"revoke", "--reason=x"}, args...)...)
	}
	d.expectFailure(exitFailed, []string{"token_mismatch", "Read the lock again"}, "revoke", "jobs:nightly",
		"--token=999", "--reason=x")
	d.expectFailure(exitFailed, []string{"token_mismatch"}, "revoke", "jobs:nightly", token, "--reason=x",
		"--acquired-at=2001-01-01T00:00:00Z")
	stdout, _ := d.expectExit(exitOK, "revoke", "jobs:nightly", token, "--reason=db-3 is being replaced", "--slot=0")
	if got := collapseSpaces(stdout); !strings.Contains(got, "STATE  free\n") ||
		!strings.Contains(got, fmt.Sprintf("NEWEST TOKEN  %d\n", grant.Token)) {
		t.Errorf("it printed\n%s", stdout)
	}
	if e := d.awaitEvent("jobs:nightly", lock.Revoked, "me"); e.Reason != "db-3 is being replaced" {
		t.Errorf("the events tell %+v", e)
	}

	exact := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "me"})
	d.expectExit(exitOK, "revoke", "jobs:nightly", fmt.Sprintf("--token=%d", exact.Token), "--reason=x", "-o", "json",
		"--acquired-at="+exact.AcquiredAt.Format(time.RFC3339Nano))
}

func TestRevokeKeepsTheGraceByDefault(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	grant := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "me", Grace: lock.MaxGrace})
	revoke := []string{"revoke", "jobs:nightly", fmt.Sprintf("--token=%d", grant.Token), "--reason=x"}
	stdout, _ := d.expectExit(exitOK, revoke...)
	if got := collapseSpaces(stdout); !strings.Contains(got, "STATE  grace\n") ||
		!strings.Contains(got, "revoked, grace") {
		t.Errorf("it printed\n%s", stdout)
	}
	stdout, _ = d.expectExit(exitOK, "get", "jobs:nightly", "-o", "json")
	if !strings.Contains(strings.ReplaceAll(stdout, " ", ""), `"revoked":true`) {
		t.Errorf("it printed\n%s", stdout)
	}
	stdout, _ = d.expectExit(exitOK, append(revoke, "--skip-grace")...)
	if got := collapseSpaces(stdout); !strings.Contains(got, "STATE  free\n") {
		t.Errorf("it printed\n%s", stdout)
	}
}

// TestHostileHolderIsPrintedAsText uses a holder with terminal escapes.
func TestHostileHolderIsPrintedAsText(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "a\u00adb\u200b",
		Metadata: json.RawMessage("{\"x\":\"\u009b31m\"}")})
	for _, args := range [][]string{
		{"get", "jobs:nightly"}, {"get", "jobs:nightly", "-o", "json"}, {"list"}, {"watch", "--from=oldest",
			"--count=1"}, {"watch", "-o", "json", "--from=oldest", "--count=1"},
	} {
		stdout, _ := d.expectExit(exitOK, args...)
		if printable.Text(strings.ReplaceAll(stdout, "\n", "")) != strings.ReplaceAll(stdout, "\n", "") ||
			!strings.Contains(stdout, `a\u00adb\u200b`) {
			t.Errorf("paddock %q printed\n%q", args, stdout)
		}
	}
	d.expectFailure(exitNotAcquired, []string{`a\u00adb\u200b holds the lock`}, "acquire", "jobs:nightly")
}
