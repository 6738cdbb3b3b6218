package metrics_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/metrics"
	"github.com/paddock-lock/paddock/internal/observe"
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

// answers is a Service with a fixed answer.
type answers struct {
	paddock.Service
	page paddock.Page[lock.Lock]
	err  error
}

func (a answers) Locks(context.Context, paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	return a.page, a.err
}

// TestEachCallMovesItsMetric. That the store shows each of its calls is a test of the store.
func TestEachCallMovesItsMetric(t *testing.T) {
	t.Parallel()
	refused := &lock.Error{Code: lock.ErrHeld}
	for name, c := range map[string]struct {
		call observe.Call
		want string
	}{
		"a grant":             {observe.Call{Op: observe.Acquire, Mode: lock.Exclusive}, `paddock_acquires_total{mode="exclusive",outcome="granted"} 1`},
		"a replay":            {observe.Call{Op: observe.Acquire, Mode: lock.Shared, Replayed: true}, `paddock_acquires_total{mode="shared",outcome="replayed"} 1`},
		"a refusal":           {observe.Call{Op: observe.Acquire, Mode: lock.Permit, Err: refused}, `paddock_acquires_total{mode="permit",outcome="lock_held"} 1`},
		"a wait":              {observe.Call{Op: observe.Acquire, Mode: lock.Exclusive, Waited: time.Second, Err: refused}, `paddock_wait_seconds_sum{mode="exclusive",outcome="lock_held"} 1`},
		"a renewal":           {observe.Call{Op: observe.Renew}, `paddock_renewals_total{outcome="renewed"} 1`},
		"a renewal too late":  {observe.Call{Op: observe.Renew, Err: lock.ErrLeaseLost}, `paddock_renewals_total{outcome="lease_lost"} 1`},
		"a renewal of a part": {observe.Call{Op: observe.Renew, Err: &lock.Error{Code: lock.ErrLeaseInSet}}, `paddock_renewals_total{outcome="lease_in_set"} 1`},
		"a release":           {observe.Call{Op: observe.Release}, `paddock_releases_total{outcome="released"} 1`},
		"an error of no kind": {observe.Call{Op: observe.Release, Err: io.EOF}, `paddock_releases_total{outcome="internal"} 1`},
		"a session":           {observe.Call{Op: observe.OpenSession}, `paddock_sessions_total{call="open",outcome="opened"} 1`},
		"a session again":     {observe.Call{Op: observe.OpenSession, Replayed: true}, `paddock_sessions_total{call="open",outcome="replayed"} 1`},
		"a heartbeat":         {observe.Call{Op: observe.RenewSession}, `paddock_sessions_total{call="renew",outcome="renewed"} 1`},
		"a heartbeat too late": {observe.Call{Op: observe.RenewSession, Err: &lock.Error{Code: lock.ErrSessionLost}},
			`paddock_sessions_total{call="renew",outcome="session_lost"} 1`},
		"the end of a session": {observe.Call{Op: observe.CloseSession}, `paddock_sessions_total{call="close",outcome="closed"} 1`},
		"a revoked session":    {observe.Call{Op: observe.RevokeSession}, `paddock_sessions_total{call="revoke",outcome="revoked"} 1`},
		"a stale token":        {observe.Call{Op: observe.VerifyToken, Stale: true}, `paddock_stale_tokens_total{where="verify"} 1`},
		"a current token":      {observe.Call{Op: observe.VerifyToken}, `paddock_stale_tokens_total{where="verify"} 0`},
		"a report":             {observe.Call{Op: observe.ReportStale, Stale: true}, `paddock_stale_tokens_total{where="report"} 1`},
		"a stale write": {observe.Call{Op: observe.WriteFenced, Stale: true, Err: &lock.Error{Code: lock.ErrStaleToken}},
			`paddock_stale_tokens_total{where="write"} 1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := metrics.New("1.2.3", "abc", "team_b")
			m.Call(c.call)
			expect(t, m, c.want)
		})
	}
}

// TestTheEndOfALeaseIsCounted, with the time for which it was held.
func TestTheEndOfALeaseIsCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b")
	for how, held := range map[lock.Kind]time.Duration{lock.Released: 20, lock.Expired: 13, lock.Revoked: 20, lock.Withdrawn: 1} {
		m.Decided(&lock.Decision{Ended: []lock.EndedLease{{Mode: lock.Shared, How: how, Held: held * time.Second}}})
	}
	expect(t, m,
		`paddock_hold_seconds_sum{end="released",mode="shared"} 20`, `paddock_hold_seconds_sum{end="expired",mode="shared"} 13`,
		`paddock_hold_seconds_sum{end="revoked",mode="shared"} 20`,
		`paddock_leases_lost_total{how="expired"} 1`, `paddock_leases_lost_total{how="revoked"} 1`)
	if got := scrape(t, m); strings.Contains(got, "withdrawn") || strings.Contains(got, `paddock_leases_lost_total{how="released"}`) {
		t.Errorf("it counts what was not lost:\n%s", got)
	}
	m.Call(observe.Call{Op: observe.ReportStale, Stale: true})
	m.Call(observe.Call{Op: observe.Acquire, Mode: lock.Shared, Err: &lock.Error{Code: lock.ErrDeadlock}})
	if l := m.Losses(); l != (metrics.Losses{Expired: 1, Revoked: 1, Stale: 1, Deadlocks: 1}) {
		t.Errorf("losses = %+v, want one of each", l)
	}
}

func TestARoundIsCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b")
	for _, r := range []observe.Round{
		{Calls: 3, Took: 2 * time.Second}, {Calls: 1, Looked: true, Missed: 1}, {Calls: 1, Looked: true, Locked: true},
	} {
		m.Round(r)
	}
	expect(t, m,
		`paddock_batch_rounds_total{locks="cached"} 1`, `paddock_batch_rounds_total{locks="read"} 1`,
		`paddock_batch_rounds_total{locks="locked"} 1`, "paddock_batch_calls_sum 5", "paddock_batch_seconds_sum 2", "paddock_misses_total 1")
}

func TestTheLastSuccessOfATaskIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New("1.2.3", "abc", "team_b")
		m.Succeeded("epoch check")
		time.Sleep(time.Hour)
		m.Succeeded("epoch check")
		expect(t, m, fmt.Sprintf(`paddock_task_success_timestamp_seconds{task="epoch_check"} %v`, float64(time.Now().Unix())))
	})
}

func TestARequestIsCountedByRouteAndStatus(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b")
	m.Request("POST", "/v1/locks/{name}/acquire", 409, 2*time.Second)
	m.Request("BREW", "/v1/locks", 405, time.Second)
	m.Request("GET", "", 404, time.Second)
	for _, want := range []string{
		`paddock_http_request_seconds_count{code="409",method="POST",route="/v1/locks/{name}/acquire"} 1`,
		`paddock_http_request_seconds_bucket{code="409",method="POST",route="/v1/locks/{name}/acquire",le="1"} 0`,
		`paddock_http_request_seconds_bucket{code="409",method="POST",route="/v1/locks/{name}/acquire",le="2.5"} 1`,
		`paddock_http_request_seconds_count{code="405",method="other",route="other"} 1`,
		`paddock_http_request_seconds_count{code="404",method="other",route="other"} 1`,
		`paddock_build_info{commit="abc",schema="team_b",version="1.2.3"} 1`, "go_goroutines ", "process_open_fds ",
	} {
		if got := scrape(t, m); !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
}

// TestMetricsFollowTheConventions of Prometheus for names, units and help.
func TestSeveralDatabasesAreToldApart(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b", "main", "spare")
	for i, cell := range []string{"main", "spare"} {
		m.Cell(cell).Store(func() store.Stats { return store.Stats{Epoch: int64(i + 1)} })
		m.Cell(cell).Call(observe.Call{Op: observe.VerifyToken, Stale: true})
	}
	m.Request("GET", "/v1/locks", 200, time.Second)
	expect(t, m, `paddock_epoch{cell="main"} 1`, `paddock_epoch{cell="spare"} 2`, `paddock_stale_tokens_total{cell="spare",where="verify"} 1`,
		`paddock_http_request_seconds_count{code="200",method="GET",route="/v1/locks"} 1`)
	if l := m.Losses(); l.Stale != 2 {
		t.Errorf("the losses of both are %+v", l)
	}
}

func TestMetricsFollowTheConventions(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b")
	m.Call(observe.Call{Op: observe.Acquire, Mode: lock.Exclusive, Waited: time.Second})
	m.Request("GET", "/", 200, time.Second)
	m.Store(someStats)
	m.Names([]string{"jobs:"}, answers{page: paddock.Page[lock.Lock]{Items: []lock.Lock{held("jobs:nightly", "me")}}}, slog.New(slog.DiscardHandler))
	problems, err := promlint.New(strings.NewReader(scrape(t, m))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestARenewalAndAHandOffAreMeasured: what the lease had left, as a share of its TTL, and how long the grant was not
// known.
func TestARenewalAndAHandOffAreMeasured(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b")
	l := []lock.Lease{{TTL: 20 * time.Second}}
	m.Decided(&lock.Decision{Renewed: true, Left: 13 * time.Second, Leases: l})
	m.Decided(&lock.Decision{Renewed: true, Left: -time.Second, Leases: l})
	m.Decided(&lock.Decision{})
	m.HandedOver(2 * time.Second)
	expect(t, m, `paddock_renew_margin_ratio_bucket{le="0"} 1`, `paddock_renew_margin_ratio_bucket{le="0.6"} 1`,
		`paddock_renew_margin_ratio_bucket{le="0.7"} 2`, "paddock_renew_margin_ratio_count 2", "paddock_handoff_seconds_sum 2")
}

// expect checks that the scrape has the lines.
func expect(t *testing.T, m *metrics.Metrics, lines ...string) {
	t.Helper()
	got := scrape(t, m)
	for _, want := range lines {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
}

// someStats are those of a store with a counts.
func someStats() store.Stats {
	return store.Stats{
		Epoch: 3, GrantsPaused: 1500 * time.Millisecond, Freezes: 5, EndlessFreeze: 2 * time.Hour, Waiting: 4, LateCommits: 2,
		Pools: []store.Pool{{Name: "rest", Max: 9, Idle: 5, InUse: 1, Made: 12, Acquired: 34, Waited: 2 * time.Second}},
		Locks: store.LockCounts{At: time.Unix(7, 0), All: 10, Held: 4, InGrace: 1, Contended: 2, Waiters: 6,
			OldestWait: time.Minute, OldestLease: time.Hour},
	}
}

func TestTheStateOfTheStoreIsReadAtEachScrape(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b")
	m.Store(someStats)
	expect(t, m, "paddock_epoch 3", "paddock_grants_paused_seconds 1.5", "paddock_freezes 5", "paddock_endless_freeze_seconds 7200", "paddock_waiting_calls 4", "paddock_late_commits 2",
		`paddock_pool_connections{pool="rest",state="idle"} 5`, `paddock_pool_connections{pool="rest",state="used"} 1`,
		`paddock_pool_max_connections{pool="rest"} 9`, `paddock_pool_connections_made_total{pool="rest"} 12`,
		`paddock_pool_acquires_total{pool="rest"} 34`, `paddock_pool_wait_seconds_total{pool="rest"} 2`,
		`paddock_locks{state="held"} 4`, `paddock_locks{state="grace"} 1`, `paddock_locks{state="free"} 5`,
		"paddock_waiters 6", "paddock_contended_locks 2", "paddock_oldest_wait_seconds 60", "paddock_oldest_token_seconds 3600",
		"paddock_counted_timestamp_seconds 7")
}

// TestBeforeTheFirstCensusNothingIsCounted, rather than counted as zero.
func TestBeforeTheFirstCensusNothingIsCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b")
	m.Store(func() store.Stats { return store.Stats{Epoch: 1} })
	if got := scrape(t, m); strings.Contains(got, "paddock_locks") || strings.Contains(got, "paddock_waiters") || !strings.Contains(got, "paddock_epoch 1\n") {
		t.Error(got)
	}
}

// held returns a lock with a lease of each holder, granted a minute ago.
func held(name string, holders ...string) lock.Lock {
	now := time.Unix(1000, 0)
	l := lock.Lock{Name: name, Token: 7, AsOf: now, Waiters: 2}
	for _, h := range holders {
		l.Leases = append(l.Leases, lock.LeaseInfo{Holder: h, AcquiredAt: now.Add(-time.Minute)})
	}
	return l
}

func TestChosenLocksHaveMetricsOfTheirOwn(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b")
	page := paddock.Page[lock.Lock]{Items: []lock.Lock{held("jobs:a", "x", "y", "x"), held("jobs:b")}}
	m.Names([]string{"jobs:", "jobs:a"}, answers{page: page}, slog.New(slog.DiscardHandler)) // the prefixes overlap
	expect(t, m, `paddock_lock_held{holder="x",name="jobs:a"} 2`, `paddock_lock_held{holder="y",name="jobs:a"} 1`,
		`paddock_lock_token{name="jobs:a"} 7`, `paddock_lock_token{name="jobs:b"} 7`, `paddock_lock_since_seconds{name="jobs:a"} 60`,
		`paddock_lock_waiters{name="jobs:b"} 2`)
	if got := scrape(t, m); strings.Contains(got, `paddock_lock_since_seconds{name="jobs:b"}`) {
		t.Errorf("a free lock is held:\n%s", got)
	}
}

// TestChosenLocksAreLimited in their number and in that of their holders.
func TestChosenLocksAreLimited(t *testing.T) {
	t.Parallel()
	var page paddock.Page[lock.Lock]
	holders := make([]string, 10)
	for i := range 2 * metrics.MaxNames {
		for j := range holders {
			holders[j] = fmt.Sprint(i, " ", j)
		}
		page.Items = append(page.Items, held(fmt.Sprint("jobs:", i), holders...))
	}
	m := metrics.New("1.2.3", "abc", "team_b")
	m.Names([]string{"jobs:"}, answers{page: page}, slog.New(slog.DiscardHandler))
	got := scrape(t, m)
	if n := strings.Count(got, "paddock_lock_token{"); n != metrics.MaxNames {
		t.Errorf("%d locks, want %d", n, metrics.MaxNames)
	}
	if n := strings.Count(got, "paddock_lock_held{"); n != metrics.MaxHolders {
		t.Errorf("%d holders, want %d", n, metrics.MaxHolders)
	}
}

// TestLocksThatCannotBeReadAreLeftOut of the scrape, which has everything else.
func TestLocksThatCannotBeReadAreLeftOut(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "team_b")
	m.Store(someStats)
	m.Names([]string{"jobs:"}, answers{err: io.EOF}, slog.New(slog.DiscardHandler))
	expect(t, m, "paddock_names_failures_total 1", "paddock_epoch 3")
}

// TestTheRefusalsOfAnAcquireBeginAtZero: Prometheus sees no increase from nothing to one.
func TestTheRefusalsOfAnAcquireBeginAtZero(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "abc", "paddock")
	for _, code := range []lock.Code{lock.ErrHeld, lock.ErrAlreadyDone, lock.ErrFrozen, lock.ErrTooManyWaiters, lock.ErrUnavailable, lock.ErrUnknownOutcome} {
		expect(t, m, fmt.Sprintf(`paddock_acquires_total{mode="permit",outcome=%q} 0`, code))
	}
}
