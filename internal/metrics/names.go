package metrics

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// MaxNames is how many locks have metrics of their own.
	MaxNames = 200
	// MaxHolders is how many series of their holders there are.
	MaxHolders = 1000
	// namesTimeout bounds the reading of these locks.
	namesTimeout = 3 * time.Second
)

var (
	heldDesc  = prometheus.NewDesc("paddock_lock_held", "Active leases of the lock, by holder.", []string{"name", "holder"}, nil)
	tokenDesc = prometheus.NewDesc("paddock_lock_token", "The newest fencing token of the lock; 0 for none.", []string{"name"}, nil)
	sinceDesc = prometheus.NewDesc("paddock_lock_since_seconds",
		"How long ago the oldest active lease of the lock was granted, in seconds; only while it is held.", []string{"name"}, nil)
	failuresDesc = prometheus.NewDesc("paddock_names_failures_total",
		"Scrapes without the locks of --metrics-names, since they could not be read.", nil, nil)
	lockWaitersDesc = prometheus.NewDesc("paddock_lock_waiters", "Places in the queue of the lock.", []string{"name"}, nil)
)

// Names adds to each scrape the locks whose names begin with one of the prefixes, in name order, up to MaxNames of
// them. They are read from locks; if that fails, the scrape is without them, and the failure is counted and logged.
func (m *Metrics) Names(prefixes []string, locks paddock.Service, log *slog.Logger) {
	m.registry.MustRegister(&names{prefixes: prefixes, locks: locks, log: log})
}

// names is a collector of a few locks.
type names struct {
	prefixes []string
	locks    paddock.Service
	log      *slog.Logger
	failures atomic.Int64 // scrapes without the locks
}

// Describe sends what Collect may send.
func (n *names) Describe(to chan<- *prometheus.Desc) {
	to <- heldDesc
	to <- tokenDesc
	to <- sinceDesc
	to <- lockWaitersDesc
	to <- failuresDesc
}

// Collect sends the metrics of the locks.
func (n *names) Collect(to chan<- prometheus.Metric) {
	locks, err := n.read()
	if err != nil {
		n.failures.Add(1)
		n.log.Warn("cannot read the locks of --metrics-names", "error", err)
	}
	to <- prometheus.MustNewConstMetric(failuresDesc, prometheus.CounterValue, float64(n.failures.Load()))
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	left := MaxHolders
	for name, l := range locks {
		send(tokenDesc, float64(l.Token), name)
		send(lockWaitersDesc, float64(l.Waiters), name)
		holders, since := make(map[string]int), time.Duration(0)
		for _, lease := range l.Leases {
			holders[lease.Holder]++
			since = max(since, l.AsOf.Sub(lease.AcquiredAt))
		}
		if len(l.Leases) > 0 {
			send(sinceDesc, since.Seconds(), name)
		}
		for holder, leases := range holders {
			if left--; left >= 0 {
				send(heldDesc, float64(leases), name, holder)
			}
		}
	}
}

// read returns the locks by name. Prefixes may overlap.
func (n *names) read() (map[string]lock.Lock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), namesTimeout)
	defer cancel()
	locks := make(map[string]lock.Lock)
	for _, prefix := range n.prefixes {
		page, err := n.locks.Locks(ctx, paddock.LockQuery{Prefix: prefix, Limit: MaxNames})
		if err != nil {
			return nil, err
		}
		for _, l := range page.Items {
			if len(locks) < MaxNames {
				locks[l.Name] = l
			}
		}
	}
	return locks, nil
}
