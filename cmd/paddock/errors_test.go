package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paddock-lock/paddock/lock"
)

// TestHolderOfANestedRunNamesItsOwnProcess runs a run in a run, in a session, and acquires in these.
func TestHolderOfANestedRunNamesItsOwnProcess(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	delete(d.env, "PADDOCK_HOLDER")
	const show = `printenv PADDOCK_LEASE_HOLDER`
	p := d.startSession("--", "sh", "-c", show+`; "$PADDOCK" run outer -- sh -c '`+show+`; "$PADDOCK" run inner -- `+
		show+`; "$PADDOCK" acquire by:hand >/dev/null'; PADDOCK_HOLDER=she "$PADDOCK" run third -- `+show)
	p.expectExit(t, exitOK)
	holders := strings.Fields(p.Stdout.String())
	if len(holders) != 4 || holders[0] == holders[1] || holders[1] == holders[2] || holders[3] != "she" {
		t.Fatalf("the holders are %q", holders)
	}
	if want := fmt.Sprintf(":%d", p.Cmd.Process.Pid); !strings.HasSuffix(holders[0], want) {
		t.Errorf("the holder of the session is %q, want USER@HOST%s", holders[0], want)
	}
	for name, holder := range map[string]string{"outer": holders[1], "inner": holders[2], "by:hand": holders[1]} {
		d.awaitEvent(name, lock.Granted, holder)
	}
}

// TestDefaultHolderOfAcquireNamesNoProcess ensures that another process can repeat the acquire.
func TestDefaultHolderOfAcquireNamesNoProcess(t *testing.T) {
	t.Parallel()
	if got, end := defaultHolder(), fmt.Sprintf(":%d", os.Getpid()); strings.HasSuffix(got, end) ||
		processHolder() != got+end {
		t.Errorf("the holders are %q and %q", got, processHolder())
	}
}

func TestEveryServiceAcceptsTheDefaultHolder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"root@vm":                   "root@vm:7",
		"a\x1bb\u202ec\xff@h":       "a?b?c?@h:7",
		strings.Repeat("ä", 300):    strings.Repeat("ä", 198) + ":7",
		strings.Repeat("\u200b", 3): "???:7",
	} {
		got := holderText(text, ":7")
		if got != want || utf8.RuneCountInString(got) > lock.MaxHolderLength {
			t.Errorf("the holder for %q is %q, want %q", text, got, want)
		}
		if _, _, err := (leaseFlags{Holder: got, TTL: time.Minute}).options([]string{nightly}); err != nil {
			t.Error(err)
		}
	}
}

func TestNestedRunOfTheSameLockIsExplained(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for _, inner := range []string{"run " + nightly + " -- true", "acquire " + nightly} {
		p := d.startRun(nightly, "--", "sh", "-c", `echo token $PADDOCK_FENCING_TOKEN; "$PADDOCK" `+inner)
		p.expectExit(t, exitNotAcquired, "me holds the lock", "locks are not re-entrant")
		token := strings.TrimPrefix(strings.TrimSpace(p.Stdout.String()), "token ")
		want := "This process already runs under a lease of " + nightly + " (token " + token + ", from PADDOCK_LOCK)"
		if said := p.Stderr.String(); !strings.Contains(said, want) || strings.Contains(said, "--wait") {
			t.Errorf("%s: %q, want %q", inner, said, want)
		}
	}
}

// TestOtherRefusalsDoNotMentionNesting sets the variables of another lock, of another service, and of a lease that
// does not cause the refusal.
func TestOtherRefusalsDoNotMentionNesting(t *testing.T) {
	t.Parallel()
	held := &lock.Error{Code: lock.ErrHeld, Holder: "another"}
	const here, there = "http://here:8080", "http://there:8080"
	for what, c := range map[string]struct {
		env    map[string]string
		err    error
		nested bool
	}{
		"nothing set":     {nil, held, false},
		"another lock":    {map[string]string{"PADDOCK_LOCK": "other", "PADDOCK_FENCING_TOKEN": "3"}, held, false},
		"another service": {map[string]string{"PADDOCK_LOCK": nightly, "PADDOCK_URL": there}, held, false},
		"another refusal": {map[string]string{"PADDOCK_LOCK": nightly}, &lock.Error{Code: lock.ErrUnavailable}, false},
		"no token":        {map[string]string{"PADDOCK_LOCK": nightly}, held, true},
		"the same": {map[string]string{"PADDOCK_LOCK": nightly, "PADDOCK_URL": here, "PADDOCK_FENCING_TOKEN": "3"},
			held, true},
		"one of several":   {map[string]string{"PADDOCK_LOCK": "a", "PADDOCK_LOCKS": "a " + nightly}, held, true},
		"none of several":  {map[string]string{"PADDOCK_LOCK": "a", "PADDOCK_LOCKS": "a b"}, held, false},
		"an invalid token": {map[string]string{"PADDOCK_LOCK": nightly, "PADDOCK_FENCING_TOKEN": "\x1b[2J"}, held, true},
	} {
		err := findEnclosingLease(variablesOf(c.env), here).explain([]string{nightly}, c.err)
		if strings.Contains(err.Error(), "re-entrant") != c.nested || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", what, err)
		}
		if got, want := exitCode(err), exitCode(explain(c.err)); got != want {
			t.Errorf("%s: exit code %d, want %d", what, got, want)
		}
	}
}

func TestErrorsOfTheServiceShowDurations(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		"ttl_ms is 172800000; give 100 to 86400000 (milliseconds).":              "--ttl is 2d; give 100ms to 1d.",
		"wait_ms is too large; give 0 to 50000 (milliseconds).":                  "--wait is too large; give 0s to 50s.",
		"grace_ms is 0; give at least 1500: the rule for batch: allows no less.": "--grace is 0s; give at least 1.5s: the rule for batch: allows no less.",
		"Retry then, or wait with wait_ms (not in a batch).":                     "Retry then, or wait with --wait.",
		"a session whose TTL is 90000 ms. Open one with ttl_ms 60000 or less.":   "a session whose TTL is 1m30s. Open one with --ttl 1m or less.",
		"The lease has reached its max_hold_ms and cannot be renewed. Stop.":     "The lease has reached its --max-hold and cannot be renewed. Stop.",
	} {
		err := explain(&lock.Error{Code: lock.ErrUnavailable, Detail: detail})
		if got := strings.TrimPrefix(err.Error(), "unavailable: "); got != want || !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("%q is shown as %q, want %q", detail, got, want)
		}
	}
}
