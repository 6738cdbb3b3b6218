package main

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/client/guardprom"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/supervise"
)

// writeEvery is how often, at most, the metrics file is written while the command runs.
const writeEvery = time.Second

// A metricsFile keeps a file for the textfile collector of Prometheus's node_exporter: the metrics of guardprom, and
// what the run itself has come to. It is an Observer of the guard.
type metricsFile struct {
	*guardprom.Metrics
	path     string
	registry *prometheus.Registry
	stderr   *supervise.AsyncStderr

	started, ended, exitCode, token prometheus.Gauge

	changed chan struct{} // has a value when there is something to write
	done    chan struct{} // closed by finish
	writer  sync.WaitGroup
}

// newMetricsFile writes the file for the first time. It returns an error if that is not possible.
func newMetricsFile(path, name string, stderr *supervise.AsyncStderr) (*metricsFile, error) {
	r := prometheus.NewRegistry()
	gauge := func(metric, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: metric, Help: help, ConstLabels: prometheus.Labels{"lock": name}})
		r.MustRegister(g)
		return g
	}
	f := &metricsFile{
		Metrics: guardprom.New(r, guardprom.Options{Label: func(name string) string { return name }}),
		path:    path, registry: r, stderr: stderr,
		started:  gauge("paddock_run_start_timestamp_seconds", "When paddock run began, in seconds since 1970."),
		ended:    gauge("paddock_run_end_timestamp_seconds", "When paddock run ended, in seconds since 1970; 0 before."),
		exitCode: gauge("paddock_run_exit_code", "The exit code of paddock run; -1 before its end."),
		token:    gauge("paddock_run_token", "The fencing token of the lease; 0 before it is granted."),
		changed:  make(chan struct{}, 1), done: make(chan struct{}),
	}
	f.started.SetToCurrentTime()
	f.exitCode.Set(-1)
	if err := prometheus.WriteToTextfile(path, r); err != nil {
		return nil, usagef("--metrics-file: %w", err)
	}
	f.writer.Go(f.write)
	return f, nil
}

// write writes the file after changes, until finish.
func (f *metricsFile) write() {
	for {
		select {
		case <-f.changed:
			f.save()
		case <-f.done:
			return
		}
		select {
		case <-time.After(writeEvery):
		case <-f.done:
			return
		}
	}
}

// save writes the file. The command is more important: an error is only reported.
func (f *metricsFile) save() {
	if err := prometheus.WriteToTextfile(f.path, f.registry); err != nil {
		f.stderr.Printf("cannot write the metrics: %v", err)
	}
}

// finish writes the file for the last time.
func (f *metricsFile) finish(exitCode int) {
	if f == nil {
		return
	}
	close(f.done)
	f.writer.Wait()
	f.ended.SetToCurrentTime()
	f.exitCode.Set(float64(exitCode))
	f.save()
}

func (f *metricsFile) change() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// held notes the lease.
func (f *metricsFile) held(l *guard.Lease) {
	if f != nil {
		f.token.Set(float64(l.Token()))
		f.change()
	}
}

// Renewed implements guard.Observer.
func (f *metricsFile) Renewed(name string, left float64, err error) {
	f.Metrics.Renewed(name, left, err)
	f.change()
}

// AtRisk implements guard.Observer.
func (f *metricsFile) AtRisk(name string, err error) {
	f.Metrics.AtRisk(name, err)
	f.change()
}

// Lost implements guard.Observer.
func (f *metricsFile) Lost(name string, err error) {
	f.Metrics.Lost(name, err)
	f.change()
}
