package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// holdSuspect acquires the locks with a lease that stays, and waits until it is suspect.
func (d *harness) holdSuspect(holder string, members ...lock.Member) lock.Grant {
	d.Helper()
	g := d.hold(lock.Acquire{Locks: members, Holder: holder, TTL: lock.MinTTL, Stays: true})
	for deadline := time.Now().Add(proctest.Patience); ; time.Sleep(10 * time.Millisecond) {
		l, err := d.locks.Lock(d.Context(), members[0].Name)
		if err != nil || time.Now().After(deadline) {
			d.Fatalf("it is not suspect: %+v, %v", l, err)
		}
		if l.State == lock.Suspect {
			return g
		}
	}
}

// TestASuspectLockIsExplained: neither its holder's next renewal nor the time is to be waited for.
func TestASuspectLockIsExplained(t *testing.T) {
	t.Parallel()
	d := newHarness(t, "--allow-hold")
	g := d.holdSuspect("a worker", lock.One(nightly)...)
	since := regexp.QuoteMeta(local(g.ExpiresAt))
	want := regexp.MustCompile(`not acquired: a worker holds ` + nightly + ` and has not renewed it in time, so it is suspect since ` + since +
		`\. Only the holder, .* or an operator ends that: look at the work, and then run\n    paddock revoke ` + nightly + fmt.Sprintf(` --token %d --reason …\n$`, g.Token))
	for _, args := range [][]string{{"acquire", nightly}, {"run", nightly, "--", "/bin/true"}} {
		_, said := d.expectExit(exitNotAcquired, args...)
		if !want.MatchString(said) || strings.Contains(said, "unless it renews") {
			t.Errorf("%q says %s", args, said)
		}
	}
	d.expectExit(exitOK, "revoke", nightly, "--token", fmt.Sprint(g.Token), "--reason", "looked at")
	d.expectExit(exitOK, "acquire", nightly)
}

// TestSuspectLocksOfASetAreExplained, beside one that is only held.
func TestSuspectLocksOfASetAreExplained(t *testing.T) {
	t.Parallel()
	d := newHarness(t, "--allow-hold")
	first := d.holdSuspect("first", lock.One("a")...)
	second := d.holdSuspect("second", lock.One("b")...)
	d.hold(lock.Acquire{Locks: lock.One("c"), Holder: "third"})
	_, said := d.expectExit(exitNotAcquired, "acquire", "a", "b", "c")
	for _, want := range []string{"first holds a and", "; second holds b and", fmt.Sprintf("\n    paddock revoke a --token %d ", first.Token), fmt.Sprintf("\n    paddock revoke b --token %d ", second.Token)} {
		if !strings.Contains(said, want) || strings.Contains(said, "third") {
			t.Errorf("%q is missing in %s", want, said)
		}
	}
	d.expectFailure(exitNotAcquired, []string{"third holds the lock for another 59m"}, "acquire", "c")
}
