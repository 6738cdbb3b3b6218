//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// leads prints what a leader's command knows, and does not end.
const leads = `echo "leads with $PADDOCK_FENCING_TOKEN as $PADDOCK_LEADER_VALUE"; ` + goesOn

// startCandidate starts paddock lead.
func (d *harness) startCandidate(holder string, args ...string) *process {
	d.Helper()
	exe := self(d.T)
	p := d.prepare(exec.Command(exe, append([]string{"lead", "--holder=" + holder, nightly}, args...)...), exe)
	p.Start(d.T)
	return p
}

// awaitLeader waits until the candidate leads, and returns its token.
func (d *harness) awaitLeader(p *process) lock.Token {
	d.Helper()
	token, err := strconv.ParseInt(p.Stdout.Await(d.T, `leads with (\d+) as`), 10, 64)
	if err != nil {
		d.Fatal(err)
	}
	return lock.Token(token)
}

// awaitCandidate waits until the candidate is in the queue.
func (d *harness) awaitCandidate(holder string) { d.awaitEvent(nightly, lock.Queued, holder) }

func TestALeaderThatIsRevokedWaitsToBeElectedAgain(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	followed, _, stop := d.startHere("leader", nightly, "--follow")
	followed.Await(t, `(?m)^(-  +-  +-  +-)$`)
	a := d.startCandidate("a", "--ttl=9s", "--value=10.0.0.1", "--", "sh", "-c", leads)
	first := d.awaitLeader(a)
	followed.Await(t, `(?m) (`+strconv.FormatInt(int64(first), 10)+` +a +10.0.0.1)$`)
	b := d.startCandidate("b", "--ttl=9s", "--", "sh", "-c", leads)
	d.awaitCandidate("b")
	d.revoke("maintenance")
	second := d.awaitLeader(b)
	if second <= first {
		t.Errorf("the second leader has the token %d, the first one %d", second, first)
	}
	a.Stderr.Await(t, `(the leadership was lost, so the command was stopped)`)
	a.Stderr.Await(t, `(waiting to be elected again)`)
	shown, _ := d.expectExit(exitOK, "leader", nightly, "-o", "json")
	var leader shownLeader
	if err := json.Unmarshal([]byte(shown), &leader); err != nil || leader.Leader == nil || leader.Leader.Value != "b" {
		t.Errorf("the leader is %s, %v", shown, err)
	}
	d.awaitCandidate("a")
	if code := b.Signal(t, syscall.SIGTERM); code != exitSignalled+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
	followed.Await(t, `(?s)(10.0.0.1\n.* b  +b\n.* a  +10.0.0.1\n)`) // it shows states, and may miss a short one
	a.Signal(t, syscall.SIGTERM)
	followed.Await(t, `(?s) b  +b\n.* a  +10.0.0.1\n(-  +-  +-  +-)\n`)
	if code := stop(); code != exitOK {
		t.Errorf("leader --follow: exit code %d", code)
	}
	d.expectFailure(exitNotAcquired, []string{"nobody leads"}, "leader", nightly)
}

func TestALeaderWhoseCommandEndsResigns(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	a := d.startCandidate("a", "--", "sh", "-c", "exit 7")
	a.expectExit(t, 7, "leading "+nightly)
	d.expectFree()
}

func TestACandidateThatIsNotElectedLeavesOnASignal(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "other"})
	a := d.startCandidate("a", "--", "true")
	d.awaitCandidate("a")
	a.Signal(t, syscall.SIGTERM)
	a.expectExit(t, exitSignalled+int(syscall.SIGTERM), "before this candidate was elected")
	d.awaitEvent(nightly, lock.Dequeued, "a")
}

// TestThePausedLeaderIsRefused pauses a leader and its command until another one leads and writes. Then it is a candidate
// again, which goes on waiting when it is continued.
func TestThePausedLeaderIsRefused(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	a := d.startCandidate("a", "--ttl=6s", "--", "sh", "-c", leads)
	old := d.awaitLeader(a)
	a.send(t, syscall.SIGSTOP) // it protects nothing now; its command goes on
	b := d.startCandidate("b", "--ttl=30s", "--", "sh", "-c", leads)
	write := func(token lock.Token, value string) error {
		_, err := d.locks.WriteFenced(t.Context(), lock.FencedWrite{
			Key: "accounts", Lock: nightly, Token: token, Value: json.RawMessage(strconv.Quote(value)),
		})
		return err
	}
	if err := write(d.awaitLeader(b), "of the new leader"); err != nil {
		t.Fatal(err)
	}
	if err := write(old, "of the paused leader"); !errors.Is(err, lock.ErrStaleToken) {
		t.Errorf("the write of the paused leader: %v", err)
	}
	a.send(t, syscall.SIGCONT)
	a.Stderr.Await(t, `(the leadership was lost, so the command was stopped)`)
	a.Stderr.Await(t, `(waiting to be elected again)`)
	a.send(t, syscall.SIGCONT)
	a.Signal(t, syscall.SIGTERM)
	a.expectExit(t, exitSignalled+int(syscall.SIGTERM), "before this candidate was elected")
	b.Signal(t, syscall.SIGTERM)
}

// send sends a signal that does not end the process.
func (p *process) send(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
