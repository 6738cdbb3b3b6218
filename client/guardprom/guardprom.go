// Package guardprom counts what guards do, for Prometheus: renewals fail at the client, where the service cannot see
// it.
//
//	metrics := guardprom.New(prometheus.DefaultRegisterer, guardprom.Options{})
//	err := guard.Do(ctx, locks, "jobs:nightly", guard.Options{Observer: metrics}, work)
//
// The metrics:
//
//	paddock_guard_acquires_total{lock, outcome}   acquires that have ended
//	paddock_guard_acquire_seconds{lock, outcome}  how long they took, waits and retries included
//	paddock_guard_renewals_total{lock, outcome}   attempts to renew
//	paddock_guard_renew_margin_ratio{lock}        the share of its TTL that a lease had left when it was renewed
//	paddock_guard_at_risk_total{lock}             leases that could not be renewed at first
//	paddock_guard_lost_total{lock}                leases that were lost
//	paddock_guard_hold_seconds{lock}              how long leases were held that were released
//
// outcome is that of [guard.Outcome]. lock is empty, unless Options.Label names it.
package guardprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/paddock-lock/paddock/client/guard"
)

// Options configure Metrics. The zero value is valid.
type Options struct {
	// Label returns the label lock for a lock's name. It must have few different values, such as the name's first
	// part, or the name itself if the program uses few locks. Nil: always empty.
	Label func(name string) string
}

// Metrics is a guard.Observer. Make it with New, once for each registry.
type Metrics struct {
	label    func(string) string
	acquires *prometheus.CounterVec
	waits    *prometheus.HistogramVec
	renewals *prometheus.CounterVec
	margins  *prometheus.HistogramVec
	atRisk   *prometheus.CounterVec
	lost     *prometheus.CounterVec
	holds    *prometheus.HistogramVec
}

var _ guard.Observer = (*Metrics)(nil)

var (
	waitBuckets   = []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	marginBuckets = []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}
)

// New registers the metrics. It panics if they are registered already.
func New(r prometheus.Registerer, o Options) *Metrics {
	if o.Label == nil {
		o.Label = func(string) string { return "" }
	}
	make := promauto.With(r)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return make.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return make.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	return &Metrics{
		label:    o.Label,
		acquires: counter("paddock_guard_acquires_total", "Acquires that have ended, by their outcome.", "lock", "outcome"),
		waits: histogram("paddock_guard_acquire_seconds", "How long acquires took, waits and retries included, in seconds.",
			waitBuckets, "lock", "outcome"),
		renewals: counter("paddock_guard_renewals_total", "Attempts to renew, by their outcome.", "lock", "outcome"),
		margins: histogram("paddock_guard_renew_margin_ratio",
			"The share of its TTL that a lease had left when it was renewed; negative in its grace.", marginBuckets, "lock"),
		atRisk: counter("paddock_guard_at_risk_total", "Leases that got at risk, since a renewal failed.", "lock"),
		lost:   counter("paddock_guard_lost_total", "Leases that were lost.", "lock"),
		holds:  histogram("paddock_guard_hold_seconds", "How long leases were held that were released, in seconds.", waitBuckets, "lock"),
	}
}

// Acquired implements guard.Observer.
func (m *Metrics) Acquired(name string, took time.Duration, err error) {
	label, outcome := m.label(name), guard.Outcome("granted", err)
	m.acquires.WithLabelValues(label, outcome).Inc()
	m.waits.WithLabelValues(label, outcome).Observe(took.Seconds())
}

// Renewed implements guard.Observer.
func (m *Metrics) Renewed(name string, left float64, err error) {
	m.renewals.WithLabelValues(m.label(name), guard.Outcome("renewed", err)).Inc()
	if err == nil {
		m.margins.WithLabelValues(m.label(name)).Observe(left)
	}
}

// AtRisk implements guard.Observer.
func (m *Metrics) AtRisk(name string, _ error) { m.atRisk.WithLabelValues(m.label(name)).Inc() }

// Lost implements guard.Observer.
func (m *Metrics) Lost(name string, _ error) { m.lost.WithLabelValues(m.label(name)).Inc() }

// Released implements guard.Observer.
func (m *Metrics) Released(name string, held time.Duration, _ error) {
	m.holds.WithLabelValues(m.label(name)).Observe(held.Seconds())
}
