package guardotel_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/client/guardotel"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// counts returns how often each instrument was used, by its name and attributes.
func counts(t *testing.T, reader sdk.Reader) map[string]int64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]int64)
	add := func(name string, with attribute.Set, n int64) {
		all[strings.TrimSuffix(name+" "+with.Encoded(attribute.DefaultEncoder()), " ")] += n
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch points := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range points.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range points.DataPoints {
					add(m.Name, p.Attributes, int64(p.Count)) //nolint:gosec // a few
				}
			}
		}
	}
	return all
}

// TestGuardsMoveTheInstruments: a guard is granted its lock, another is refused, and one is revoked.
func TestGuardsMoveTheInstruments(t *testing.T) {
	t.Parallel()
	locks, reader := memlock.New().Replica(1), sdk.NewManualReader()
	meter := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test")
	first := func(name string) string { part, _, _ := strings.Cut(name, ":"); return part }
	m, err := guardotel.New(meter, guardotel.Options{Label: first})
	if err != nil {
		t.Fatal(err)
	}
	o := guard.Options{Observer: m}
	err = guard.Do(t.Context(), locks, "jobs:a", o, func(ctx context.Context, l *guard.Lease) error {
		if err := guard.Do(ctx, locks, "jobs:a", o, nil); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("the second is refused with %v", err)
		}
		return l.SetMetadata(ctx, []byte(`{}`)) // a renewal
	})
	if err != nil {
		t.Fatal(err)
	}
	m.AtRisk("jobs:b", lock.ErrUnavailable)
	m.Lost("jobs:b", lock.ErrLeaseLost)
	m.Renewed("jobs:b", .1, lock.ErrUnavailable)
	want := map[string]int64{
		"paddock.guard.acquires paddock.lock=jobs,paddock.outcome=granted":           1,
		"paddock.guard.acquires paddock.lock=jobs,paddock.outcome=lock_held":         1,
		"paddock.guard.acquire.duration paddock.lock=jobs,paddock.outcome=granted":   1,
		"paddock.guard.acquire.duration paddock.lock=jobs,paddock.outcome=lock_held": 1,
		"paddock.guard.renewals paddock.lock=jobs,paddock.outcome=renewed":           1,
		"paddock.guard.renewals paddock.lock=jobs,paddock.outcome=unavailable":       1,
		"paddock.guard.renew.margin paddock.lock=jobs":                               1,
		"paddock.guard.at_risk paddock.lock=jobs":                                    1,
		"paddock.guard.lost paddock.lock=jobs":                                       1,
		"paddock.guard.hold.duration paddock.lock=jobs":                              1,
	}
	if diff := cmp.Diff(want, maps.Clone(counts(t, reader))); diff != "" {
		t.Error(diff)
	}
}

// TestWithoutALabelThereIsNoAttribute for the lock.
func TestWithoutALabelThereIsNoAttribute(t *testing.T) {
	t.Parallel()
	reader := sdk.NewManualReader()
	m, err := guardotel.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"), guardotel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Released("x", time.Second, nil)
	if diff := cmp.Diff(map[string]int64{"paddock.guard.hold.duration": 1}, counts(t, reader)); diff != "" {
		t.Error(diff)
	}
}
