package metrics_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/paddock-lock/paddock/internal/metrics"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// scrape returns the lines of a scrape.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("the scrape is answered %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// answers is a Service with fixed answers.
type answers struct {
	lock.Service
	grant    lock.Grant
	verified lock.Verification
	err      error
}

func (a answers) Acquire(context.Context, lock.Acquire) (lock.Grant, error) { return a.grant, a.err }
func (a answers) Renew(context.Context, lock.Renew) (lock.Grant, error)     { return a.grant, a.err }
func (a answers) Release(context.Context, lock.Release) error               { return a.err }
func (a answers) VerifyToken(context.Context, lock.Verify) (lock.Verification, error) {
	return a.verified, a.err
}
func (a answers) WriteFenced(context.Context, lock.FencedWrite) (lock.FencedValue, error) {
	return lock.FencedValue{}, a.err
}
func (a answers) Batch(ctx context.Context, items []lock.Command) []lock.Result {
	return lock.BatchSequentially(ctx, a, items)
}

// TestEachCallMovesItsMetric, and its item in a batch does the same.
func TestEachCallMovesItsMetric(t *testing.T) {
	t.Parallel()
	held := &lock.Error{Code: lock.ErrHeld}
	for name, c := range map[string]struct {
		inner answers
		call  func(lock.Service)
		want  string
	}{
		"a grant": {answers{}, func(s lock.Service) { _, _ = s.Acquire(t.Context(), lock.Acquire{}) }, `paddock_acquires_total{mode="exclusive",outcome="granted"} 1`},
		"a replay": {answers{grant: lock.Grant{Replayed: true}}, func(s lock.Service) { _, _ = s.Acquire(t.Context(), lock.Acquire{Mode: lock.Shared}) },
			`paddock_acquires_total{mode="shared",outcome="replayed"} 1`},
		"a refusal": {answers{err: held}, func(s lock.Service) { _, _ = s.Acquire(t.Context(), lock.Acquire{Mode: lock.Permit}) },
			`paddock_acquires_total{mode="permit",outcome="lock_held"} 1`},
		"a wait": {answers{err: held}, func(s lock.Service) { _, _ = s.Acquire(t.Context(), lock.Acquire{Wait: time.Second}) },
			`paddock_wait_seconds_count{mode="exclusive",outcome="lock_held"} 1`},
		"a renewal":           {answers{}, func(s lock.Service) { _, _ = s.Renew(t.Context(), lock.Renew{}) }, `paddock_renewals_total{outcome="renewed"} 1`},
		"a renewal too late":  {answers{err: lock.ErrLeaseLost}, func(s lock.Service) { _, _ = s.Renew(t.Context(), lock.Renew{}) }, `paddock_renewals_total{outcome="lease_lost"} 1`},
		"a release":           {answers{}, func(s lock.Service) { _ = s.Release(t.Context(), lock.Release{}) }, `paddock_releases_total{outcome="released"} 1`},
		"an error of no kind": {answers{err: io.EOF}, func(s lock.Service) { _ = s.Release(t.Context(), lock.Release{}) }, `paddock_releases_total{outcome="internal"} 1`},
		"a stale token": {answers{verified: lock.Verification{Status: lock.Stale}}, func(s lock.Service) { _, _ = s.VerifyToken(t.Context(), lock.Verify{}) },
			`paddock_stale_tokens_total{where="verify"} 1`},
		"a stale write": {answers{err: &lock.Error{Code: lock.ErrStaleToken}}, func(s lock.Service) { _, _ = s.WriteFenced(t.Context(), lock.FencedWrite{}) },
			`paddock_stale_tokens_total{where="write"} 1`},
		"an item of a batch": {answers{}, func(s lock.Service) {
			s.Batch(t.Context(), []lock.Command{lock.Acquire{}, lock.Renew{}, lock.Acquire{}, lock.Release{}})
		}, `paddock_acquires_total{mode="exclusive",outcome="granted"} 2`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := metrics.New("1.2.3", "abc")
			c.call(m.Calls(c.inner))
			if got := scrape(t, m); !strings.Contains(got, c.want+"\n") {
				t.Errorf("there is no %s in\n%s", c.want, got)
			}
		})
	}
}

// TestTheEndOfALeaseIsCounted, with the time for which it was held. An expired one was held until its end.
func TestTheEndOfALeaseIsCounted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := lock.Lease{Mode: lock.Shared, AcquiredAt: now.Add(-20 * time.Second), ExpiresAt: now.Add(-8 * time.Second), Grace: time.Second, TTL: time.Second}
	m := metrics.New("1.2.3", "abc")
	for _, how := range []lock.Kind{lock.Released, lock.Expired, lock.Revoked, lock.Withdrawn} {
		m.Decided(&lock.Decision{Now: now, Ended: []lock.EndedLease{{Lease: l, How: how}}})
	}
	got := scrape(t, m)
	for _, want := range []string{
		`paddock_hold_seconds_sum{end="released",mode="shared"} 20`, `paddock_hold_seconds_sum{end="expired",mode="shared"} 13`,
		`paddock_hold_seconds_sum{end="revoked",mode="shared"} 20`,
		`paddock_leases_lost_total{end="expired"} 1`, `paddock_leases_lost_total{end="revoked"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "withdrawn") || strings.Contains(got, `paddock_leases_lost_total{end="released"}`) {
		t.Errorf("it counts what was not lost:\n%s", got)
	}
}

func TestARoundIsCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc")
	for _, r := range []store.Round{
		{Calls: 3, Took: 2 * time.Second}, {Calls: 1, Looked: true, Missed: 1}, {Calls: 1, Looked: true, Locked: true},
	} {
		m.Tried(r)
	}
	got := scrape(t, m)
	for _, want := range []string{
		`paddock_batch_rounds_total{locks="cached"} 1`, `paddock_batch_rounds_total{locks="read"} 1`,
		`paddock_batch_rounds_total{locks="locked"} 1`, "paddock_batch_calls_sum 5", "paddock_batch_seconds_sum 2", "paddock_misses_total 1",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
}

func TestARequestIsCountedByRouteAndStatus(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc")
	m.Request("/v1/locks/{name}/acquire", 409, 2*time.Second)
	for _, want := range []string{
		`paddock_http_request_seconds_count{code="409",route="/v1/locks/{name}/acquire"} 1`,
		`paddock_http_request_seconds_bucket{code="409",route="/v1/locks/{name}/acquire",le="1"} 0`,
		`paddock_http_request_seconds_bucket{code="409",route="/v1/locks/{name}/acquire",le="2.5"} 1`,
		`paddock_build_info{commit="abc",version="1.2.3"} 1`, "go_goroutines ", "process_open_fds ",
	} {
		if got := scrape(t, m); !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
}

// TestMetricsFollowTheConventions of Prometheus for names, units and help.
func TestMetricsFollowTheConventions(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc")
	s := m.Calls(answers{})
	_, _ = s.Acquire(t.Context(), lock.Acquire{Wait: time.Second})
	_, _ = s.Renew(t.Context(), lock.Renew{})
	_ = s.Release(t.Context(), lock.Release{})
	m.Request("/", 200, time.Second)
	problems, err := promlint.New(strings.NewReader(scrape(t, m))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
