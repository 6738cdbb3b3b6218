package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

const leaseTable = `LOCK  jobs:nightly
LEASE ID  UUID
TOKEN  1
MODE  exclusive
HOLDER  me
EXPIRES  INSTANT (in DURATION)
METADATA  {"why":"it's night"}
`

const leaseEnv = `export PADDOCK_LOCK=jobs:nightly
export PADDOCK_FENCING_TOKEN=1
unset PADDOCK_SLOT
export PADDOCK_LOCKS=jobs:nightly
export PADDOCK_FENCING_TOKENS='jobs:nightly=1'
unset PADDOCK_SLOTS
export PADDOCK_LEASE_ID=UUID
export PADDOCK_EXPIRES_AT=INSTANT
`

func TestAcquirePrintsTheLease(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{"table": leaseTable, "env": leaseEnv} {
		t.Run("as "+form, func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			d.expectOutput(want, "acquire", "jobs:nightly", "--max-hold=1h", "--grace=1s", `--metadata={"why": "it's night"}`,
				"-o", form)
			d.expectFailure(exitNotAcquired, []string{"me holds the lock", "--wait"}, "acquire", "jobs:nightly", "-o", form)
		})
	}
}

func TestAcquireSharesLocksAndTakesPermits(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for range 2 {
		d.expectExit(exitOK, "acquire", "reports", "--shared")
	}
	d.expectFailure(exitNotAcquired, []string{"me holds the lock"}, "acquire", "reports")
	for _, slot := range []string{"1", "2"} {
		if stdout, _ := d.expectExit(exitOK, "acquire", "uploads", "--capacity=2", "--output=env"); !strings.Contains(stdout,
			"\nexport PADDOCK_SLOT="+slot+"\n") {
			t.Errorf("slot %s is not in\n%s", slot, stdout)
		}
	}
	d.expectFailure(exitNotAcquired, []string{"me holds the lock"}, "acquire", "uploads", "--capacity=2")
	d.expectFailure(exitUsage, []string{"capacity_mismatch", "capacity 2"}, "acquire", "uploads", "--capacity=3")
}

func TestAcquireTakesSeveralPermits(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for _, c := range []struct{ command, want string }{
		{"acquire gpus --capacity=5 --permits=2", `MODE\s+2 permits, slots 1 2\n`},
		{"acquire gpus --capacity=5 --permits=2 --output=env", `(?s)PADDOCK_SLOT=3\n.*PADDOCK_SLOTS='?gpus=3,4'?\n`},
		{"get gpus", `(?s)PERMITS\s+4 of 5 taken\n.*me\s+2 permits, slots 3 4 `},
		{"history gpus", `granted .* 2 permits, slots 1 2 `},
	} {
		if stdout, _ := d.expectExit(exitOK, strings.Fields(c.command)...); !regexp.MustCompile(c.want).MatchString(stdout) {
			t.Errorf("%s prints\n%s, want %s", c.command, stdout, c.want)
		}
	}
	d.expectFailure(exitNotAcquired, []string{"me holds the lock"},
		"acquire", "gpus", "--capacity=5", "--permits=2")
}

func TestAcquireWaitsInTheQueue(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	before := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "before"})
	p := start(t, "acquire", "jobs:nightly", "--url", d.base, "--holder=me", "--wait=forever", "--ttl=1h", "-o", "json")
	d.awaitEvent("jobs:nightly", lock.Queued, "me")
	if err := d.locks.Release(t.Context(), lock.Release{Locks: []string{before.Name}, LeaseID: before.ID}); err != nil {
		t.Fatal(err)
	}
	if code := p.Exit(t); code != exitOK || p.Stderr.String() != "" {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
	stdout := p.Stdout.String()
	var lease api.Lease
	if err := json.Unmarshal([]byte(stdout), &lease); err != nil || lease.FencingToken <= int64(before.Token) ||
		lease.ExpiresInMs > lease.TTLMs {
		t.Errorf("%v: %s", err, stdout)
	}
}

// TestInterruptedAcquireGivesUpItsPlace sends a real signal to a process. On a busy machine the release may take
// longer than the process waits for its answer, and then it says so.
func TestInterruptedAcquireGivesUpItsPlace(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "before"})
	for holder, signal := range map[string]syscall.Signal{"interrupted": syscall.SIGINT, "terminated": syscall.SIGTERM} {
		p := start(t, "acquire", "jobs:nightly", "--url", d.base, "--holder", holder, "--wait=forever")
		d.awaitEvent("jobs:nightly", lock.Queued, holder)
		if code := p.Signal(t, signal); code != exitNotAcquired {
			t.Errorf("%s: exit code %d", holder, code)
		}
		said := p.Stderr.String()
		explained := strings.Contains(said, "Nothing is left behind") || strings.Contains(said, "The release was not answered")
		if !explained || p.Stdout.String() != "" {
			t.Errorf("%s: stderr %q, stdout %q", holder, said, p.Stdout)
		}
		d.awaitEvent("jobs:nightly", lock.Dequeued, holder)
	}
}

// TestLeaseThatCannotBePrintedIsReleased prints to an output that fails.
func TestLeaseThatCannotBePrintedIsReleased(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	var said strings.Builder
	if code := run(t.Context(), []string{"acquire", "jobs:nightly", "--holder=me"}, variablesOf(d.env), fullDisk{},
		&said); code != exitFailed {
		t.Errorf("exit code %d: %s", code, said.String())
	}
	d.awaitEvent("jobs:nightly", lock.Released, "me")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestScriptAcquiresRenewsAndReleases runs the example of the help in a shell.
func TestScriptAcquiresRenewsAndReleases(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	self := start(t, "version").Cmd.Path
	script := exec.CommandContext(ctx, "sh", "-ec", `
		lease=$("$0" acquire jobs:nightly -o env) || exit
		eval "$lease"
		"$0" renew "$PADDOCK_LOCK" -o json
		"$0" release "$PADDOCK_LOCK"
		[ "$PADDOCK_FENCING_TOKEN" -gt 0 ] && [ -z "${PADDOCK_SLOT+set}" ]
		"$0" acquire jobs:nightly -o env >/dev/null
		lease=$("$0" acquire jobs:nightly -o env) || exit`, self)
	script.Env = []string{actAsPaddock + "=1", "PADDOCK_URL=" + d.base, "PADDOCK_SLOT=7", "PATH=/usr/bin:/bin", "HOME=/"}
	out, err := script.CombinedOutput()
	if script.ProcessState.ExitCode() != exitNotAcquired || !strings.Contains(string(out), `"fencing_token": `) {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestConflictIsToldAsAsked has another holder, or one that an operator has stopped.
func TestConflictIsToldAsAsked(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "db-1"})
	d.expectExit(exitOK, "freeze", "frozen:", "--reason=x")
	for _, c := range []struct {
		flags string
		code  int
		said  string
	}{
		{"", exitNotAcquired, "paddock: jobs:nightly not acquired: db-1 holds the lock for another "},
		{"--wait=10ms", exitNotAcquired, "paddock: jobs:nightly not acquired: db-1 holds the lock"},
		{"--conflict-exit-code=9", 9, "paddock: jobs:nightly not acquired: db-1 holds the lock"},
		{"--conflict-exit-code=0", exitOK, "paddock: jobs:nightly not acquired: db-1 holds the lock"},
		{"-q", exitNotAcquired, ""},
		{"--quiet --conflict-exit-code=0", exitOK, ""},
	} {
		flags := strings.Fields(c.flags)
		for _, args := range [][]string{
			slices.Concat([]string{"acquire"}, flags, []string{nightly}), slices.Concat([]string{"run"}, flags, []string{nightly, "--", "/bin/echo", "not run"}),
		} {
			stdout, stderr := d.expectExit(c.code, args...)
			if stdout != "" || !strings.HasPrefix(stderr, c.said) || c.said == "" && stderr != "" {
				t.Errorf("%q prints %q and says %q, want %q", args, stdout, stderr, c.said)
			}
		}
	}
	d.expectFailure(9, []string{"frozen:a not acquired: an operator"}, "acquire", "--conflict-exit-code=9", "frozen:a")
	d.expectFailure(exitUsage, []string{"--ttl is 2d; give 100ms to 1d"}, "acquire", "--conflict-exit-code=9", "--ttl=2d", "-q", nightly)
	p := d.prepareRun("--conflict-exit-code=0", "-q", "free", "--", "/bin/sh", "-c", "exit 75")
	p.Start(t)
	p.expectExit(t, exitNotAcquired)
}
