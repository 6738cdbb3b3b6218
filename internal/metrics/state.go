package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-lock/paddock/store"
)

// A reading is one metric of the store's state, without labels.
type reading struct {
	desc *prometheus.Desc
	of   func(store.Stats) float64
}

func gauge(name, help string, of func(store.Stats) float64) reading {
	return reading{prometheus.NewDesc(name, help, nil, nil), of}
}

// countReadings are there once a pass of the scan has ended.
var countReadings = []reading{
	gauge("paddock_waiters", "Waiters of all locks. One that waits for several locks, or below others in a tree, counts once.", func(s store.Stats) float64 { return float64(s.Locks.Waiters) }),
	gauge("paddock_contended_locks", "Locks that have waiters.", func(s store.Stats) float64 { return float64(s.Locks.Contended) }),
	gauge("paddock_oldest_wait_seconds", "How long the oldest waiter has waited, in seconds; 0 without waiters.",
		func(s store.Stats) float64 { return s.Locks.OldestWait.Seconds() }),
	gauge("paddock_oldest_token_seconds", "How long ago the oldest active lease was granted with its token, in seconds; 0 without leases.",
		func(s store.Stats) float64 { return s.Locks.OldestLease.Seconds() }),
	gauge("paddock_counted_timestamp_seconds", "When the locks were last counted, in seconds since 1970.",
		func(s store.Stats) float64 { return unixSeconds(s.Locks.At) }),
}

var stateReadings = []reading{
	gauge("paddock_epoch", "Number of the newest epoch. It grows when the database was failed over, restored or created again, or an operator began an epoch.",
		func(s store.Stats) float64 { return float64(s.Epoch) }),
	gauge("paddock_grants_paused_seconds", "For how long nothing is granted from now on, in seconds; 0 without a pause.",
		func(s store.Stats) float64 { return s.GrantsPaused.Seconds() }),
	gauge("paddock_freezes", "Freezes in force.", func(s store.Stats) float64 { return float64(s.Freezes) }),
	gauge("paddock_endless_freeze_seconds", "How long the oldest freeze without an end has lasted, in seconds; 0 without one.",
		func(s store.Stats) float64 { return s.EndlessFreeze.Seconds() }),
	gauge("paddock_waiting_calls", "Calls that wait for a lock at this replica.", func(s store.Stats) float64 { return float64(s.Waiting) }),
	gauge("paddock_late_commits", "Commits that have not been answered for a second or more.",
		func(s store.Stats) float64 { return float64(s.LateCommits) }),
}

var (
	locksDesc       = prometheus.NewDesc("paddock_locks", "Locks by state, as counted by the last pass over all of them.", []string{"state"}, nil)
	connectionsDesc = prometheus.NewDesc("paddock_pool_connections", "Connections to the database, by state.", []string{"pool", "state"}, nil)
	maxDesc         = prometheus.NewDesc("paddock_pool_max_connections", "Greatest number of connections of the pool.", []string{"pool"}, nil)
	madeDesc        = prometheus.NewDesc("paddock_pool_connections_made_total", "Connections that were made.", []string{"pool"}, nil)
	acquiredDesc    = prometheus.NewDesc("paddock_pool_acquires_total", "Times that a connection was taken out of the pool.", []string{"pool"}, nil)
	waitedDesc      = prometheus.NewDesc("paddock_pool_wait_seconds_total",
		"Time for which a connection was waited for, in seconds.", []string{"pool"}, nil)
)

// Store adds to each scrape what stats returns.
func (m *Metrics) Store(stats func() store.Stats) { m.register.MustRegister(state{stats}) }

// state is a collector of the store's state.
type state struct{ stats func() store.Stats }

// Describe sends nothing: some metrics are not there before the locks were first counted.
func (state) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics.
func (c state) Collect(to chan<- prometheus.Metric) {
	s := c.stats()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	for _, r := range stateReadings {
		send(r.desc, prometheus.GaugeValue, r.of(s))
	}
	for _, p := range s.Pools {
		send(connectionsDesc, prometheus.GaugeValue, float64(p.Idle), p.Name, "idle")
		send(connectionsDesc, prometheus.GaugeValue, float64(p.InUse), p.Name, "used")
		send(maxDesc, prometheus.GaugeValue, float64(p.Max), p.Name)
		send(madeDesc, prometheus.CounterValue, float64(p.Made), p.Name)
		send(acquiredDesc, prometheus.CounterValue, float64(p.Acquired), p.Name)
		send(waitedDesc, prometheus.CounterValue, p.Waited.Seconds(), p.Name)
	}
	if s.Locks.At.IsZero() {
		return
	}
	for _, r := range countReadings {
		send(r.desc, prometheus.GaugeValue, r.of(s))
	}
	send(locksDesc, prometheus.GaugeValue, float64(s.Locks.Held), "held")
	send(locksDesc, prometheus.GaugeValue, float64(s.Locks.InGrace), "grace")
	send(locksDesc, prometheus.GaugeValue, float64(s.Locks.Suspect), "suspect")
	send(locksDesc, prometheus.GaugeValue, float64(s.Locks.All-s.Locks.Held-s.Locks.InGrace-s.Locks.Suspect), "free")
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
