// Package guardotel counts what guards do, with the metrics API of OpenTelemetry: renewals fail at the client, where
// the service cannot see it.
//
//	metrics, err := guardotel.New(otel.Meter("myapp"), guardotel.Options{})
//	err = guard.Do(ctx, locks, "jobs:nightly", guard.Options{Observer: metrics}, work)
//
// The instruments; durations are in seconds:
//
//	paddock.guard.acquires          counter: acquires that have ended
//	paddock.guard.acquire.duration  histogram: how long they took, waits and retries included
//	paddock.guard.renewals          counter: attempts to renew
//	paddock.guard.renew.margin      histogram: the share of its TTL that a lease had left when it was renewed
//	paddock.guard.at_risk           counter: leases that could not be renewed at first
//	paddock.guard.lost              counter: leases that were lost
//	paddock.guard.hold.duration     histogram: how long leases were held that were released
//
// The attribute paddock.outcome of the first three is that of [guard.Outcome]. paddock.lock is there if Options.Label
// names the lock.
package guardotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/paddock-lock/paddock/client/guard"
)

// Options configure Metrics. The zero value is valid.
type Options struct {
	// Label returns the attribute paddock.lock for a lock's name. It must have few different values, such as the
	// name's first part, or the name itself if the program uses few locks. Nil, or an empty value: there is no such
	// attribute.
	Label func(name string) string
}

// Metrics is a guard.Observer. Make it with New.
type Metrics struct {
	label    func(string) string
	acquires metric.Int64Counter
	waits    metric.Float64Histogram
	renewals metric.Int64Counter
	margins  metric.Float64Histogram
	atRisk   metric.Int64Counter
	lost     metric.Int64Counter
	holds    metric.Float64Histogram
}

var _ guard.Observer = (*Metrics)(nil)

var (
	waitBuckets   = []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	marginBuckets = []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}
)

// New makes the instruments. An error is the meter's.
func New(meter metric.Meter, o Options) (*Metrics, error) {
	if o.Label == nil {
		o.Label = func(string) string { return "" }
	}
	m := &Metrics{label: o.Label}
	var failed []error
	counter := func(to *metric.Int64Counter, name, unit, description string) {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		*to, failed = c, append(failed, err)
	}
	histogram := func(to *metric.Float64Histogram, name, unit, description string, buckets []float64) {
		h, err := meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(buckets...))
		*to, failed = h, append(failed, err)
	}
	counter(&m.acquires, "paddock.guard.acquires", "{acquire}", "Acquires that have ended, by their outcome.")
	histogram(&m.waits, "paddock.guard.acquire.duration", "s", "How long acquires took, waits and retries included.", waitBuckets)
	counter(&m.renewals, "paddock.guard.renewals", "{renewal}", "Attempts to renew, by their outcome.")
	histogram(&m.margins, "paddock.guard.renew.margin", "1",
		"The share of its TTL that a lease had left when it was renewed; negative in its grace.", marginBuckets)
	counter(&m.atRisk, "paddock.guard.at_risk", "{lease}", "Leases that got at risk, since a renewal failed.")
	counter(&m.lost, "paddock.guard.lost", "{lease}", "Leases that were lost.")
	histogram(&m.holds, "paddock.guard.hold.duration", "s", "How long leases were held that were released.", waitBuckets)
	return m, errors.Join(failed...)
}

// attributes returns the attributes of a measurement. outcome is empty for none.
func (m *Metrics) attributes(name, outcome string) metric.MeasurementOption {
	var all []attribute.KeyValue
	if label := m.label(name); label != "" {
		all = append(all, attribute.String("paddock.lock", label))
	}
	if outcome != "" {
		all = append(all, attribute.String("paddock.outcome", outcome))
	}
	return metric.WithAttributeSet(attribute.NewSet(all...))
}

// Acquired implements guard.Observer.
func (m *Metrics) Acquired(name string, took time.Duration, err error) {
	with := m.attributes(name, guard.Outcome("granted", err))
	m.acquires.Add(context.Background(), 1, with)
	m.waits.Record(context.Background(), took.Seconds(), with)
}

// Renewed implements guard.Observer.
func (m *Metrics) Renewed(name string, left float64, err error) {
	m.renewals.Add(context.Background(), 1, m.attributes(name, guard.Outcome("renewed", err)))
	if err == nil {
		m.margins.Record(context.Background(), left, m.attributes(name, ""))
	}
}

// AtRisk implements guard.Observer.
func (m *Metrics) AtRisk(name string, _ error) {
	m.atRisk.Add(context.Background(), 1, m.attributes(name, ""))
}

// Lost implements guard.Observer.
func (m *Metrics) Lost(name string, _ error) {
	m.lost.Add(context.Background(), 1, m.attributes(name, ""))
}

// Released implements guard.Observer.
func (m *Metrics) Released(name string, held time.Duration, _ error) {
	m.holds.Record(context.Background(), held.Seconds(), m.attributes(name, ""))
}
