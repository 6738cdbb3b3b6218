package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/paddock-lock/paddock/lock"
)

// TestRunWritesMetrics of its lease, its command, and its end.
func TestRunWritesMetrics(t *testing.T) {
	t.Parallel()
	d, file := newHarness(t), filepath.Join(t.TempDir(), "job.prom")
	copied := filepath.Join(filepath.Dir(file), "meanwhile")
	d.startRun("--metrics-file", file, nightly, "--", "sh", "-c",
		"until grep -q 'paddock_run_token.* [1-9]' "+file+"; do sleep 0.02; done; cp "+file+" "+copied+"; exit 3").expectExit(t, 3)
	expectLines(t, copied, `paddock_run_exit_code{lock="jobs:nightly"} -1`, `paddock_run_end_timestamp_seconds{lock="jobs:nightly"} 0`)
	expectLines(t, file, `paddock_run_exit_code{lock="jobs:nightly"} 3`,
		`paddock_guard_acquires_total{lock="jobs:nightly",outcome="granted"} 1`,
		`paddock_guard_hold_seconds_count{lock="jobs:nightly"} 1`)
	text, err := os.ReadFile(file)
	mustBeNil(t, err)
	if !regexp.MustCompile(`(?m)^paddock_run_end_timestamp_seconds\{lock="jobs:nightly"\} [1-9]`).Match(text) {
		t.Errorf("it has not ended:\n%s", text)
	}
	if problems, err := promlint.New(strings.NewReader(string(text))).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// expectLines checks that the file has the lines.
func expectLines(t *testing.T, path string, lines ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	mustBeNil(t, err)
	for _, want := range lines {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("%s has no %s:\n%s", filepath.Base(path), want, text)
		}
	}
}

// TestRunWritesMetricsOfARefusal: another client has the lock.
func TestRunWritesMetricsOfARefusal(t *testing.T) {
	t.Parallel()
	d, file := newHarness(t), filepath.Join(t.TempDir(), "job.prom")
	d.hold(lock.Acquire{Locks: lock.One(nightly), Holder: "other"})
	d.startRun("--metrics-file", file, nightly, "--", "true").expectExit(t, exitNotAcquired)
	expectLines(t, file, fmt.Sprintf(`paddock_run_exit_code{lock="jobs:nightly"} %d`, exitNotAcquired),
		`paddock_run_token{lock="jobs:nightly"} 0`, `paddock_guard_acquires_total{lock="jobs:nightly",outcome="lock_held"} 1`)
}

// TestRunNeedsAMetricsFileThatItCanWrite, before it acquires anything.
func TestRunNeedsAMetricsFileThatItCanWrite(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.startRun("--metrics-file", "/no/such/folder/job.prom", nightly, "--", "true").expectExit(t, exitUsage, "--metrics-file")
}
