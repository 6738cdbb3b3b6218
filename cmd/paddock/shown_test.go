package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const freeTable = `LOCK  jobs:nightly
STATE  free
NEWEST TOKEN  -
CHANGED  -
WAITING  0

HOLDER  MODE  TOKEN  ACQUIRED  EXPIRES  LEFT  METADATA
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

const permitsJSON = `{
  "name": "uploads",
  "state": "held",
  "revision": 1,
  "fencing_token": 1,
  "as_of": "INSTANT",
  "changed_at": "INSTANT",
  "capacity": 3,
  "waiters": 0,
  "leases": [
    {
      "slot": 1,
      "mode": "permit",
      "holder": "it's me",
      "fencing_token": 1,
      "acquired_at": "INSTANT",
      "expires_at": "INSTANT",
      "expires_in_ms": N,
      "grace_ms": 0,
      "metadata": {
        "pid": 7
      }
    }
  ]
}
`

func TestGetPrintsALock(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.prints(freeTable, "get", "jobs:nightly")
	d.prints("export PADDOCK_STATE=free\nexport PADDOCK_NEWEST_TOKEN=0\nunset PADDOCK_HELD_BY\nexport PADDOCK_WAITERS=0\n", "get", "jobs:nightly", "-o", "env")
	d.holds(lock.Acquire{Name: "uploads", Holder: "it's me", Mode: lock.Permit, Capacity: 3, Metadata: json.RawMessage(`{"pid":7}`)})
	d.prints(permitsTable, "get", "uploads")
	d.prints(permitsJSON, "get", "uploads", "-o", "json")
	d.prints("export PADDOCK_STATE=held\nexport PADDOCK_NEWEST_TOKEN=1\nexport PADDOCK_HELD_BY='it'\\''s me'\nexport PADDOCK_WAITERS=0\n", "get", "uploads", "-o", "env")
}

func TestListPrintsLocksAndAHeaderIfThereAreNone(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	const header = "LOCK  STATE  MODE  TOKEN  HOLDER  EXPIRES  LEFT  WAITING\n"
	d.prints(header, "list")
	d.prints("[]\n", "list", "-o", "json")
	first := d.holds(lock.Acquire{Name: "jobs:a", Holder: "me"})
	second := d.holds(lock.Acquire{Name: "jobs:b", Holder: "reader 1", Mode: lock.Shared})
	d.holds(lock.Acquire{Name: "jobs:b", Holder: "reader 2", Mode: lock.Shared})
	d.mine(d.holds(lock.Acquire{Name: "other", Holder: "me"}))
	d.runs(exitOK, "release", "other")

	a := fmt.Sprintf("jobs:a  held  exclusive  %d  me  INSTANT  DURATION  0\n", first.Token)
	b := fmt.Sprintf("jobs:b  held  shared  %d  reader 1 and 1 more  INSTANT  DURATION  0\n", second.Token)
	d.prints(header+a+b, "list", "--prefix=jobs:")
	d.prints(header+a, "list", "--holder=me")
	d.prints(header+a, "list", "--limit=1")
	d.prints(header+b, "list", "--holder=reader 2", "--state=held")
	d.prints(header, "list", "--state=grace")
	stdout, _ := d.runs(exitOK, "list", "-o", "json", "--state=free")
	var locks []wireLock
	if err := json.Unmarshal([]byte(stdout), &locks); err != nil || len(locks) != 1 || locks[0].Name != "other" || locks[0].State != lock.Free {
		t.Errorf("%v:\n%s", err, stdout)
	}
}

func TestListFollowsThePages(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	var want []string
	for i := range 2*lock.DefaultLimit + 1 {
		want = append(want, fmt.Sprintf("many:%03d", i))
		d.holds(lock.Acquire{Name: want[i], Holder: "me"})
	}
	for limit, n := range map[string]int{"--limit=0": len(want), "--limit=150": 150, "--limit=1000": len(want)} {
		stdout, _ := d.runs(exitOK, "list", limit)
		var got []string
		for line := range strings.Lines(stdout) {
			got = append(got, strings.Fields(line)[0])
		}
		if strings.Join(got[1:], " ") != strings.Join(want[:n], " ") {
			t.Errorf("%s lists %v", limit, got)
		}
	}
}

func TestQueuePrintsWhoWaitsAndForWhat(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	const header = "POSITION  HOLDER  MODE  JOINED  WAITED  WAITS FOR\n"
	d.prints(header, "queue", "jobs:nightly")
	before := d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "before"})
	s := &scene{T: t, name: "jobs:nightly"}
	s.heard = &listener{scene: s, locks: d.locks}
	s.joins(d.locks, "first")
	s.joins(d.locks, "second")
	d.prints(header+fmt.Sprintf("1  first  exclusive  INSTANT  DURATION  before (token %d)\n", before.Token)+
		"2  second  exclusive  INSTANT  DURATION  its turn, 1 before\n", "queue", "jobs:nightly")
	stdout, _ := d.runs(exitOK, "queue", "jobs:nightly", "-o", "json")
	var queue wireQueue
	if err := json.Unmarshal([]byte(stdout), &queue); err != nil || len(queue.Waiters) != 2 || queue.Waiters[0].Leases[0].Holder != "before" {
		t.Errorf("%v:\n%s", err, stdout)
	}
}

func TestWhatWaitersWaitForIsSaid(t *testing.T) {
	t.Parallel()
	reader := lock.LeaseInfo{Holder: "reader", Token: 7}
	for want, w := range map[string]lock.WaiterInfo{
		"its turn, 3 before":          {BlockedBy: lock.BlockedByQueue, Ahead: 3},
		"reader (token 7)":            {BlockedBy: lock.BlockedByHolders, Leases: []lock.LeaseInfo{reader}},
		"reader (token 7) and 1 more": {BlockedBy: lock.BlockedByHolders, Leases: []lock.LeaseInfo{reader, reader}},
		"the lock":                    {BlockedBy: lock.BlockedByHolders},
		"nothing: no call waits here now, and the place is kept for 8s": {BlockedBy: lock.BlockedByDisconnect, KeptFor: 8 * time.Second},
	} {
		if got := waitsFor(w); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestRevokeTakesOneLeaseAwayAndPrintsTheLock(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	grant := d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "me"})
	token := fmt.Sprintf("--token=%d", grant.Token)
	d.refuses(exitFailed, []string{"token_mismatch", "Read the lock again"}, "revoke", "jobs:nightly", "--token=999", "--reason=x")
	d.refuses(exitFailed, []string{"token_mismatch"}, "revoke", "jobs:nightly", token, "--reason=x", "--acquired-at=2001-01-01T00:00:00Z")
	stdout, _ := d.runs(exitOK, "revoke", "jobs:nightly", token, "--reason=db-3 is being replaced", "--slot=0")
	if got := squeezed(stdout); !strings.Contains(got, "STATE  free\n") || !strings.Contains(got, "NEWEST TOKEN  1\n") {
		t.Errorf("it printed\n%s", stdout)
	}
	if e := d.hears("jobs:nightly", lock.Revoked, "me"); e.Reason != "db-3 is being replaced" {
		t.Errorf("the events tell %+v", e)
	}

	exact := d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "me"})
	d.runs(exitOK, "revoke", "jobs:nightly", fmt.Sprintf("--token=%d", exact.Token), "--reason=x", "-o", "json",
		"--acquired-at="+exact.AcquiredAt.Format(time.RFC3339Nano))
}

func TestRevokeLetsTheGraceRunOutUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	grant := d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "me", Grace: lock.MaxGrace})
	revoke := []string{"revoke", "jobs:nightly", fmt.Sprintf("--token=%d", grant.Token), "--reason=x"}
	stdout, _ := d.runs(exitOK, revoke...)
	if got := squeezed(stdout); !strings.Contains(got, "STATE  grace\n") || !strings.Contains(got, "revoked, grace") {
		t.Errorf("it printed\n%s", stdout)
	}
	stdout, _ = d.runs(exitOK, "get", "jobs:nightly", "-o", "json")
	if !strings.Contains(strings.ReplaceAll(stdout, " ", ""), `"revoked":true`) {
		t.Errorf("it printed\n%s", stdout)
	}
	stdout, _ = d.runs(exitOK, append(revoke, "--skip-grace")...)
	if got := squeezed(stdout); !strings.Contains(got, "STATE  free\n") {
		t.Errorf("it printed\n%s", stdout)
	}
}

// TestAHostileHolderIsShownAsText has somebody write to whoever looks.
func TestAHostileHolderIsShownAsText(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "a\u00adb\u200b", Metadata: json.RawMessage("{\"x\":\"\u009b31m\"}")})
	for _, args := range [][]string{
		{"get", "jobs:nightly"}, {"get", "jobs:nightly", "-o", "json"}, {"list"}, {"watch", "--from=oldest", "--count=1"}, {"watch", "-o", "json", "--from=oldest", "--count=1"},
	} {
		stdout, _ := d.runs(exitOK, args...)
		if legible(strings.ReplaceAll(stdout, "\n", "")) != strings.ReplaceAll(stdout, "\n", "") || !strings.Contains(stdout, `a\u00adb\u200b`) {
			t.Errorf("paddock %q printed\n%q", args, stdout)
		}
	}
	d.refuses(exitNotAcquired, []string{`a\u00adb\u200b has the lock`}, "acquire", "jobs:nightly")
}
