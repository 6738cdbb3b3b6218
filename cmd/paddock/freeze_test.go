package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

func TestAScopeIsFrozenAndThawed(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One("billing:a"), Holder: "h"})
	stdout, _ := d.expectExit(exitOK, "freeze", "billing:", "--reason", "moving the tables", "--for=1h", "-o", "json")
	var status api.FreezeStatus
	if err := json.Unmarshal([]byte(stdout), &status); err != nil || status.Scope != "billing:" || status.Leases != 1 || status.Until == nil {
		t.Errorf("it prints %s, %v", stdout, err)
	}
	d.expectFailure(exitNotAcquired, []string{"not acquired: an operator has frozen the lock: moving the tables. The freeze ends in 59m", "s, at 2", "Wait with --wait"},
		"acquire", "billing:b")
	stdout, _ = d.expectExit(exitOK, "freeze", "billing:c", "--reason", "stop.")
	if text := collapseSpaces(stdout); !strings.Contains(text, "UNTIL  paddock thaw billing:c\n") || !strings.Contains(text, "LEASES LEFT  0\n") {
		t.Errorf("it prints\n%s", stdout)
	}
	d.expectFailure(exitNotAcquired, []string{"frozen the lock: stop. The freeze has no end; an operator ends it with paddock thaw. Wait"}, "run", "billing:c", "--", "/bin/true")
	stdout, _ = d.expectExit(exitOK, "freezes")
	for _, want := range []string{`billing:  -  \S+  2\S+  moving the tables`, `billing:c  -  \S+  paddock thaw billing:c  stop\.`} {
		if !regexp.MustCompile(want).MatchString(collapseSpaces(stdout)) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	got, _ := d.expectExit(exitOK, "get", "billing:a")
	listed, _ := d.expectExit(exitOK, "list")
	if !regexp.MustCompile(`FROZEN +until \S+: moving the tables`).MatchString(got) || !strings.Contains(listed, "frozen until 2") {
		t.Errorf("they show\n%s%s", got, listed)
	}
	for _, want := range []string{"", "billing: was not frozen.\n"} {
		if _, stderr := d.expectExit(exitOK, "thaw", "billing:"); stderr != want {
			t.Errorf("it says %q, want %q", stderr, want)
		}
	}
	d.expectExit(exitOK, "acquire", "billing:b")
}

func TestDrainWaitsUntilNoLeaseIsLeft(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	g := d.hold(lock.Acquire{Locks: lock.One("billing:a"), Holder: "h"})
	drain := func(more ...string) *process {
		p := d.prepareRun()
		p.Cmd.Args = append(append(p.Cmd.Args[:1], "freeze", "billing:", "--reason=r", "--drain"), more...)
		p.Start(t)
		return p
	}
	drain("--timeout=1s").expectExit(t, exitNotAcquired, "1 lease left: billing:a of h (", "not drained in 1s", "paddock thaw billing:")
	p := drain()
	p.Stderr.Await(t, "(1 lease left)")
	d.expectExit(exitOK, "thaw", "billing:")
	p.expectExit(t, exitNotAcquired, "the freeze of billing: has ended or was replaced, with 1 lease left")
	p = drain()
	p.Stderr.Await(t, "(1 lease left)")
	d.expectExit(exitOK, "release", "billing:a", "--lease-id", wire.LeaseOf(g).LeaseID.String())
	p.expectExit(t, exitOK)
	if !strings.Contains(collapseSpaces(p.Stdout.String()), "LEASES LEFT  0\n") {
		t.Errorf("it prints\n%s", p.Stdout)
	}
}
