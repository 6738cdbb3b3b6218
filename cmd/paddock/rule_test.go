package main

import (
	"strings"
	"testing"
)

func TestRulesAreSetListedAndRemoved(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectExit(exitOK, "rule", "set", "batch:", "--max-ttl=5m", "--max-hold=2h", "--min-grace=1s", "--max-leases=7")
	stdout, _ := d.expectExit(exitOK, "rule", "set", "gpus", "--capacity=5")
	if text := collapseSpaces(stdout); !strings.Contains(text, "gpus  -  -  -  5  -  -  2") {
		t.Errorf("it prints\n%s", stdout)
	}
	stdout, _ = d.expectExit(exitOK, "rule", "list")
	if text := collapseSpaces(stdout); !strings.Contains(text, "batch:  5m0s  2h0m0s  1s  -  7  -  2") {
		t.Errorf("it prints\n%s", stdout)
	}
	d.expectFailure(exitUsage, []string{"--ttl is 1h; give at most 5m: ", "the rule for batch: allows no more"}, "acquire", "batch:a", "--ttl=1h", "--grace=1s")
	d.expectExit(exitOK, "acquire", "gpus", "--permits=5")
	for _, want := range []string{"", "batch: had no rule.\n"} {
		if _, stderr := d.expectExit(exitOK, "rule", "remove", "batch:"); stderr != want {
			t.Errorf("it says %q, want %q", stderr, want)
		}
	}
	d.expectExit(exitOK, "acquire", "batch:a", "--ttl=1h")
}
