package guardprom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/client/guardprom"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// TestGuardsMoveTheMetrics: a guard whose lease is renewed, another that is refused, and one that is revoked.
func TestGuardsMoveTheMetrics(t *testing.T) {
	t.Parallel()
	locks, registry := memlock.New().Replica(1), prometheus.NewRegistry()
	first := func(name string) string { part, _, _ := strings.Cut(name, ":"); return part }
	m := guardprom.New(registry, guardprom.Options{Label: first})
	o := guard.Options{TTL: time.Second, Observer: m}
	err := guard.Do(t.Context(), locks, "jobs:a", o, func(ctx context.Context, l *guard.Lease) error {
		if err := guard.Do(ctx, locks, "jobs:a", o, nil); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("the second is refused with %v", err)
		}
		for before := l.Deadline(); l.Deadline().Equal(before); time.Sleep(time.Millisecond) { // until it is renewed
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := guard.Acquire(t.Context(), locks, "jobs:b", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Revoke(t.Context(), lock.Revoke{Name: "jobs:b", Token: l.Token(), Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	<-l.Done()
	_ = l.Release(t.Context()) // it is lost
	want := `
# HELP paddock_guard_acquires_total Acquires that have ended, by their outcome.
# TYPE paddock_guard_acquires_total counter
paddock_guard_acquires_total{lock="jobs",outcome="granted"} 2
paddock_guard_acquires_total{lock="jobs",outcome="lock_held"} 1
# HELP paddock_guard_lost_total Leases that were lost.
# TYPE paddock_guard_lost_total counter
paddock_guard_lost_total{lock="jobs"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "paddock_guard_acquires_total", "paddock_guard_lost_total"); err != nil {
		t.Error(err)
	}
	for name, least := range map[string]int{
		"paddock_guard_acquire_seconds": 2, "paddock_guard_renewals_total": 2, "paddock_guard_renew_margin_ratio": 1, "paddock_guard_hold_seconds": 1,
	} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n < least {
			t.Errorf("%s has %d series, want %d, %v", name, n, least, err)
		}
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestOutcomes of calls: done, the code of the error, or that the caller's context has ended.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := guardprom.New(registry, guardprom.Options{})
	for _, err := range []error{nil, &lock.Error{Code: lock.ErrUnavailable}, context.Canceled, errors.New("other")} {
		m.Renewed("x", .5, err)
	}
	m.AtRisk("x", nil)
	want := `
# HELP paddock_guard_renewals_total Attempts to renew, by their outcome.
# TYPE paddock_guard_renewals_total counter
paddock_guard_renewals_total{lock="",outcome="canceled"} 1
paddock_guard_renewals_total{lock="",outcome="internal"} 1
paddock_guard_renewals_total{lock="",outcome="renewed"} 1
paddock_guard_renewals_total{lock="",outcome="unavailable"} 1
# HELP paddock_guard_at_risk_total Leases that got at risk, since a renewal failed.
# TYPE paddock_guard_at_risk_total counter
paddock_guard_at_risk_total{lock=""} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "paddock_guard_renewals_total", "paddock_guard_at_risk_total"); err != nil {
		t.Error(err)
	}
}
