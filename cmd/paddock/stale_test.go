package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// TestPausedWorkerIsSeenWithoutALog: a worker writes after its lease has expired. The metric, the event, the page and
// the history each tell an operator about it.
func TestPausedWorkerIsSeenWithoutALog(t *testing.T) {
	t.Parallel()
	d, metrics := metered(t)
	late := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "worker-1", TTL: 100 * time.Millisecond})
	d.awaitEvent(late.Name, lock.Expired, "worker-1")
	holds := d.hold(lock.Acquire{Locks: lock.One(late.Name), Holder: "worker-2"})
	if _, err := d.locks.WriteFenced(t.Context(), lock.FencedWrite{Key: "accounts", Lock: late.Name, Token: late.Token, Value: []byte("1")}); err == nil {
		t.Fatal("the stale write succeeded")
	}
	awaitMetrics(t, metrics, `paddock_stale_tokens_total\{where="write"\} 1`)
	e := d.awaitEvent(late.Name, lock.Refused, "worker-1")
	if e.Token != late.Token || e.Newest != holds.Token || e.HeldBy != "worker-2" || e.Late <= 0 {
		t.Errorf("the event is %+v", e)
	}
	await.Until(t, "the page counts it", func() bool {
		page := proctest.Scrape(t, d.base+"/ui/")
		for _, figure := range []string{"Expired", "Stale tokens", "Held"} {
			if !regexp.MustCompile(`<dt>` + figure + `</dt><dd><a href="[^"]+">1<`).MatchString(page) {
				return false
			}
		}
		return true
	})
	want := fmt.Sprintf(`(?m)^\S+ +refused +%d +exclusive +worker-1 +- +\d+ m?s after the end of its lease; "worker-2" held the lock then; newest token %d; fenced value accounts$`,
		late.Token, holds.Token)
	if stdout, _ := d.expectExit(exitOK, "history", late.Name, "--kind=refused"); !regexp.MustCompile(want).MatchString(stdout) {
		t.Errorf("printed\n%s", stdout)
	}
}

func TestFenceReportRecordsAStaleToken(t *testing.T) {
	t.Parallel()
	d, metrics := metered(t)
	g := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "worker-1"})
	token := fmt.Sprint(g.Token)
	if _, stderr := d.expectExit(exitFailed, "fence", "report", g.Name, token); !strings.Contains(stderr, "is current: its lease has not ended") {
		t.Errorf("a current token: %s", stderr)
	}
	mustBeNil(t, d.locks.Release(t.Context(), lock.Release{Locks: []string{g.Name}, LeaseID: g.ID}))
	d.hold(lock.Acquire{Locks: lock.One(g.Name), Holder: "worker-2"})
	for _, want := range []string{"Recorded: see paddock history jobs:nightly.", "Not recorded: this token was reported less than a minute ago"} {
		if stdout, _ := d.expectExit(exitOK, "fence", "report", g.Name, token, "--where=table accounts"); !strings.Contains(stdout, want) {
			t.Errorf("printed %q, want %q", stdout, want)
		}
	}
	awaitMetrics(t, metrics, `paddock_stale_tokens_total\{where="report"\} 2`)
	if e := d.awaitEvent(g.Name, lock.Refused, "worker-1"); e.Reason != "table accounts" {
		t.Errorf("the event is %+v", e)
	}
	for args, want := range map[string]string{
		"jobs:nightly 0": "fencing_token", "a/b 1": "invalid character", "jobs:nightly 1 --slot=-1": "slot",
		"jobs:nightly " + fmt.Sprint(g.Token+1000): "was never granted",
	} {
		if code, _, stderr := call(t, d.env, append([]string{"fence", "report"}, strings.Fields(args)...)...); code == exitOK || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
		}
	}
}
