package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// awaitMetrics scrapes until every pattern matches a line.
func awaitMetrics(t *testing.T, url string, patterns ...string) {
	t.Helper()
	for deadline := time.Now().Add(proctest.Patience); ; time.Sleep(50 * time.Millisecond) {
		got := proctest.Scrape(t, url)
		missing := slices.IndexFunc(patterns, func(p string) bool { return !regexp.MustCompile("(?m)^" + p + "$").MatchString(got) })
		if missing < 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s in\n%s", patterns[missing], got)
		}
	}
}

// metered starts a replica with metrics on an address of their own.
func metered(t *testing.T, args ...string) (d *harness, url string) {
	t.Helper()
	p, base := startServe(t, pgtest.URL(t), append([]string{"--metrics-listen", ":0"}, args...)...)
	address := p.Stderr.Await(t, `"msg":"serving metrics","address":"(127\.0\.0\.1:[0-9]+)"`)
	return &harness{T: t, base: base, env: map[string]string{"PADDOCK_URL": base}, locks: replica.Connect(t, client.Options{BaseURL: base})}, "http://" + address + "/metrics"
}

// TestCallsMoveTheirMetrics, with a real replica, and all metrics follow the conventions of Prometheus.
func TestCallsMoveTheirMetrics(t *testing.T) {
	t.Parallel()
	d, url := metered(t, "--metrics-names", "jobs:,reports")
	first := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "first"})
	_, err := d.locks.Renew(t.Context(), lock.Renew{Locks: []string{first.Name}, LeaseID: first.ID})
	mustBeNil(t, err)
	d.enqueue(lock.Acquire{Locks: lock.One(first.Name), Holder: "second"})
	awaitMetrics(t, url, "paddock_waiters 1", "paddock_contended_locks 1", "paddock_waiting_calls 1", `paddock_lock_waiters\{name="jobs:nightly"\} 1`,
		`paddock_lock_held\{holder="first",name="jobs:nightly"\} 1`, `paddock_oldest_wait_seconds [0-9.e-]*[1-9][0-9.e-]*`)
	mustBeNil(t, d.locks.Release(t.Context(), lock.Release{Locks: []string{first.Name}, LeaseID: first.ID}))
	second := d.awaitEvent(first.Name, lock.Granted, "second")
	_, err = d.locks.Revoke(t.Context(), lock.Revoke{Name: second.Name, Token: second.Token, Reason: "test"})
	mustBeNil(t, err)
	d.hold(lock.Acquire{Locks: lock.One("short"), Holder: "late", TTL: 100 * time.Millisecond})
	d.awaitEvent("short", lock.Expired, "late")
	_, err = d.locks.VerifyToken(t.Context(), lock.Verify{Name: first.Name, Token: first.Token})
	mustBeNil(t, err)
	write := lock.FencedWrite{Key: "k", Lock: first.Name, Token: second.Token, Value: []byte("1")}
	_, err = d.locks.WriteFenced(t.Context(), write)
	mustBeNil(t, err)
	write.Token = first.Token
	if _, err = d.locks.WriteFenced(t.Context(), write); err == nil {
		t.Error("a stale write succeeded")
	}
	d.hold(lock.Acquire{Locks: lock.One("reports"), Holder: "me"})
	awaitMetrics(t, url,
		`paddock_acquires_total\{mode="exclusive",outcome="granted"\} 4`, `paddock_renewals_total\{outcome="renewed"\} 1`,
		`paddock_releases_total\{outcome="released"\} 1`, `paddock_wait_seconds_count\{mode="exclusive",outcome="granted"\} 1`,
		`paddock_handoff_seconds_count 1`, `paddock_renew_margin_ratio_count 1`,
		`paddock_hold_seconds_count\{end="released",mode="exclusive"\} 1`, `paddock_leases_lost_total\{how="revoked"\} 1`,
		`paddock_leases_lost_total\{how="expired"\} 1`, `paddock_stale_tokens_total\{where="verify"\} 1`,
		`paddock_stale_tokens_total\{where="write"\} 1`, `paddock_locks\{state="held"\} 1`, `paddock_locks\{state="free"\} 2`,
		`paddock_locks\{state="grace"\} 0`, `paddock_waiters 0`, `paddock_epoch 1`, `paddock_grants_paused_seconds 0`, `paddock_late_commits 0`,
		`paddock_lock_token\{name="reports"\} [1-9][0-9]*`, `paddock_lock_since_seconds\{name="reports"\} .*`,
		`paddock_task_success_timestamp_seconds\{task="listener"\} .*`, `paddock_task_success_timestamp_seconds\{task="heartbeat"\} .*`,
		`paddock_task_success_timestamp_seconds\{task="epoch_check"\} .*`, `paddock_task_success_timestamp_seconds\{task="scan"\} .*`,
		`paddock_pool_connections\{pool="deciding",state="idle"\} [1-9].*`, `paddock_pool_acquires_total\{pool="rest"\} [1-9].*`,
		`paddock_batch_rounds_total\{locks="(cached|read)"\} [1-9].*`, `paddock_batch_calls_count [1-9].*`,
		`paddock_http_request_seconds_count\{code="201",method="POST",route="/v1/locks/\{name\}/acquire"\} 4`,
		`paddock_build_info\{.*\} 1`, `go_goroutines .*`)
	got := proctest.Scrape(t, url)
	problems, err := promlint.New(strings.NewReader(got)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	expectDocumented(t, got)
}

// expectDocumented checks that docs/observability.md has a row for each metric of the scrape, and for no other.
func expectDocumented(t *testing.T, scraped string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/observability.md")
	mustBeNil(t, err)
	rows, metrics := make(map[string]bool), make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `(paddock_\\w+)` \\|").FindAllStringSubmatch(string(page), -1) {
		rows[row[1]] = true
	}
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (paddock_\w+) `).FindAllStringSubmatch(scraped, -1) {
		metrics[line[1]] = true
	}
	if diff := cmp.Diff(rows, metrics); diff != "" {
		t.Errorf("the page and the metrics differ:\n%s", diff)
	}
}

func mustBeNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestNamesAddNoSeries: after 1,000 locks there are as many series as after one.
func TestNamesAddNoSeries(t *testing.T) {
	t.Parallel()
	const few, many = 10, 1000 // a task that succeeds for the first time adds a series
	d, url := metered(t)
	series := func() int { return strings.Count("\n"+proctest.Scrape(t, url), "\npaddock_") }
	d.holdMany("first", 1)
	awaitMetrics(t, url, `paddock_locks\{state="held"\} 1`, `paddock_batch_rounds_total\{locks="read"\} .*`)
	before := series()
	d.holdMany("many", many)
	awaitMetrics(t, url, fmt.Sprintf(`paddock_locks\{state="held"\} %d`, many+1))
	if after := series(); after > before+few {
		t.Errorf("%d series, and %d after %d locks", before, after, many)
	}
}

// TestMetricsAndPagesNeedAKeyAtThePublicAddress: metrics one that may read all names, a page one for its lock.
func TestMetricsAndPagesNeedAKeyAtThePublicAddress(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	reader, part := h.newLoadedKey(access.Read), h.newLoadedKey(access.Admin, "jobs")
	for what, c := range map[string]struct {
		secret string
		status int
	}{
		"no key": {"", http.StatusUnauthorized}, "a key for some names": {part.secret, http.StatusForbidden}, "a reader": {reader.secret, http.StatusOK},
	} {
		for _, path := range []string{"/ui/locks/other", "/metrics"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.base+path, nil)
			mustBeNil(t, err)
			if c.secret != "" {
				request.Header.Set("Authorization", "Bearer "+c.secret)
			}
			request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
			answer, err := h.http.Do(request)
			mustBeNil(t, err)
			text, err := io.ReadAll(answer.Body)
			mustBeNil(t, err)
			mustClose(t, answer.Body)
			if answer.StatusCode != c.status {
				t.Errorf("%s: %s: %d %s", what, path, answer.StatusCode, text)
			}
			if path == "/metrics" && c.status == http.StatusOK &&
				(!strings.HasSuffix(string(text), "# EOF\n") || !strings.Contains(string(text), "paddock_epoch 1")) {
				t.Errorf("%s: no OpenMetrics: %s", what, text)
			}
		}
	}
}

func TestMetricsAddressIsChecked(t *testing.T) {
	t.Parallel()
	_, taken := metered(t)
	taken = strings.TrimSuffix(strings.TrimPrefix(taken, "http://"), "/metrics")
	code, _, stderr := call(t, nil, "serve", "--database-url", pgtest.URL(t), "--listen", "127.0.0.1:0", "--metrics-listen", taken)
	if code != exitFailed || !strings.Contains(stderr, "choose another address with --metrics-listen") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
	code, _, stderr = call(t, nil, "serve", "--database-url", pgtest.URL(t), "--metrics-names", "a b")
	if code != exitUsage || !strings.Contains(stderr, "--metrics-names") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}
