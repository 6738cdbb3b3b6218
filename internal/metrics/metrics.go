package metrics

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/lock"
)

// Native histograms: a bucket is a tenth wider than the one below it, and there are at most so many.
const (
	nativeFactor     = 1.1
	maxNativeBuckets = 100
)

var (
	// requestBuckets are the classic buckets of an answer's time, in seconds.
	requestBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	// waitBuckets are those of what may take as long as a lock is held.
	waitBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	// sizeBuckets are those of a number of calls.
	sizeBuckets = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
	// marginBuckets are those of a share of a TTL. Below zero a lease was renewed in its grace.
	marginBuckets = []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}
)

// Metrics are the metrics of one replica. They are an observe.Observer, safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry // of the replica
	register prometheus.Registerer
	cells    map[string]*Metrics // of each database, if there are several; then those below are nil but for requests

	requests  *prometheus.HistogramVec
	acquires  *prometheus.CounterVec
	waits     *prometheus.HistogramVec
	renewals  *prometheus.CounterVec
	releases  *prometheus.CounterVec
	sessions  *prometheus.CounterVec
	staleness *prometheus.CounterVec
	handovers prometheus.Histogram
	margins   prometheus.Histogram
	holds     *prometheus.HistogramVec
	losses    *prometheus.CounterVec
	rounds    *prometheus.CounterVec
	sizes     prometheus.Histogram
	durations prometheus.Histogram
	misses    prometheus.Counter
	tasks     *prometheus.GaugeVec

	// answers has the histograms of requests by their labels, since to find one in requests costs as much again as to
	// move it. A map is not changed, but replaced.
	answers atomic.Pointer[map[answer]prometheus.Observer]
}

var _ observe.Observer = (*Metrics)(nil)

// An answer is the labels of a request.
type answer struct {
	method, route string
	status        int
}

// New returns metrics that include those of the process and of the Go runtime. version and commit are of the binary,
// schema is where in the database its locks are. With cells, what their stores do is counted by Cell.
func New(version, commit, schema string, cells ...string) *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	register := promauto.With(r)
	build := register.NewGaugeVec(prometheus.GaugeOpts{
		Name: "paddock_build_info", Help: "1, with the version and the commit of the binary and the schema of its locks as labels.",
	}, []string{"version", "commit", "schema"})
	build.WithLabelValues(version, commit, schema).Set(1)
	m := &Metrics{
		registry: r, register: r, cells: map[string]*Metrics{},
		requests: register.NewHistogramVec(histogram("paddock_http_request_seconds",
			"Time to answer a request, waits included, in seconds.", requestBuckets), []string{"method", "route", "code"}),
	}
	m.answers.Store(&map[answer]prometheus.Observer{})
	for _, name := range cells {
		c := &Metrics{registry: r, register: prometheus.WrapRegistererWith(prometheus.Labels{"cell": name}, r)}
		c.count()
		m.cells[name] = c
	}
	if len(cells) == 0 {
		m.count()
	}
	return m
}

// Cell returns the metrics of the cell's database, which have its name as a label; without cells, those of the replica.
func (m *Metrics) Cell(name string) *Metrics {
	if name == "" {
		return m
	}
	return m.cells[name]
}

// count adds what stores and their calls are counted with.
func (m *Metrics) count() {
	register := promauto.With(m.register)
	m.acquires = register.NewCounterVec(prometheus.CounterOpts{
		Name: "paddock_acquires_total", Help: "Acquires, by their outcome.",
	}, []string{"mode", "outcome"})
	m.waits = register.NewHistogramVec(histogram("paddock_wait_seconds",
		"Time that acquires with wait_ms took, in seconds.", waitBuckets), []string{"mode", "outcome"})
	m.renewals = register.NewCounterVec(prometheus.CounterOpts{
		Name: "paddock_renewals_total", Help: "Renewals, by their outcome.",
	}, []string{"outcome"})
	m.releases = register.NewCounterVec(prometheus.CounterOpts{
		Name: "paddock_releases_total", Help: "Releases, by their outcome.",
	}, []string{"outcome"})
	m.sessions = register.NewCounterVec(prometheus.CounterOpts{
		Name: "paddock_sessions_total", Help: "Calls that open, renew, close or revoke sessions, by their outcome.",
	}, []string{"call", "outcome"})
	m.staleness = register.NewCounterVec(prometheus.CounterOpts{
		Name: "paddock_stale_tokens_total", Help: "Fencing tokens that were refused or reported because they were stale.",
	}, []string{"where"})
	m.holds = register.NewHistogramVec(histogram("paddock_hold_seconds",
		"Time from the grant of a lease to its end, in seconds.", waitBuckets), []string{"mode", "end"})
	m.losses = register.NewCounterVec(prometheus.CounterOpts{
		Name: "paddock_leases_lost_total", Help: "Leases that ended although their holders had not released them.",
	}, []string{"how"})
	m.handovers = register.NewHistogram(histogram("paddock_handoff_seconds",
		"Time from the decision to grant a lock to a waiting call, until that call knew of it, in seconds.", requestBuckets))
	m.margins = register.NewHistogram(histogram("paddock_renew_margin_ratio",
		"The share of its TTL that a lease had left when it was renewed; negative in its grace.", marginBuckets))
	m.rounds = register.NewCounterVec(prometheus.CounterOpts{
		Name: "paddock_batch_rounds_total", Help: "Rounds of batches, by how they knew the locks: cached, read or locked.",
	}, []string{"locks"})
	m.sizes = register.NewHistogram(histogram("paddock_batch_calls", "Calls in a round of a batch.", sizeBuckets))
	m.durations = register.NewHistogram(histogram("paddock_batch_seconds", "Time of a round, its commit included, in seconds.", requestBuckets))
	m.misses = register.NewCounter(prometheus.CounterOpts{
		Name: "paddock_misses_total", Help: "Calls that were decided again because their lock, the clock or the epoch had changed.",
	})
	m.tasks = register.NewGaugeVec(prometheus.GaugeOpts{
		Name: "paddock_task_success_timestamp_seconds", Help: "When a background task last succeeded, in seconds since 1970.",
	}, []string{"task"})
	m.start()
}

func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: maxNativeBuckets,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

// start makes the counters that alerts are about begin at zero. Prometheus sees no increase from nothing to one.
func (m *Metrics) start() {
	for mode := lock.Exclusive; mode <= lock.Permit; mode++ {
		for _, err := range []error{nil, lock.ErrHeld, lock.ErrAlreadyDone, lock.ErrFrozen, lock.ErrTooManyWaiters, lock.ErrUnavailable, lock.ErrUnknownOutcome} {
			m.calls(observe.Call{Op: observe.Acquire, Mode: mode, Err: err})
		}
		m.holds.WithLabelValues(mode.String(), lock.Released.String())
	}
	for _, err := range []error{nil, lock.ErrLeaseLost, lock.ErrUnavailable, lock.ErrUnknownOutcome} {
		m.calls(observe.Call{Op: observe.Renew, Err: err})
		m.calls(observe.Call{Op: observe.Release, Err: err})
	}
	for _, err := range []error{lock.ErrSessionLost, lock.ErrUnavailable, lock.ErrUnknownOutcome} {
		m.calls(observe.Call{Op: observe.RenewSession, Err: err})
	}
	for _, op := range staleOps {
		m.stale(op)
	}
	for _, how := range []lock.Kind{lock.Expired, lock.Revoked} {
		m.losses.WithLabelValues(how.String())
	}
}

// Handler answers scrapes, in the format of Prometheus or OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Decided counts what was left of a renewed lease, and the leases that the decision has ended. One that was withdrawn
// was never held.
func (m *Metrics) Decided(d *lock.Decision) {
	if d.Renewed && d.Leases[0].Session == 0 {
		m.margins.Observe(d.Left.Seconds() / d.Leases[0].TTL.Seconds())
	}
	for i := range d.Ended {
		e := &d.Ended[i]
		switch e.How {
		case lock.Expired, lock.Revoked:
			m.losses.WithLabelValues(e.How.String()).Inc()
			fallthrough
		case lock.Released:
			m.holds.WithLabelValues(e.Mode.String(), e.How.String()).Observe(e.Held.Seconds())
		}
	}
}

// Losses are what should be rare, counted since the start of the process.
type Losses struct {
	Expired, Revoked int64 // leases
	Stale            int64 // tokens that were refused, or reported, because they were stale
	Deadlocks        int64 // acquires that were refused to break one
}

// Losses returns what the counters of losses show, those of all cells together.
func (m *Metrics) Losses() (l Losses) {
	if len(m.cells) > 0 {
		for _, c := range m.cells {
			of := c.Losses()
			l.Expired, l.Revoked, l.Stale = l.Expired+of.Expired, l.Revoked+of.Revoked, l.Stale+of.Stale
			l.Deadlocks += of.Deadlocks
		}
		return l
	}
	of := func(c prometheus.Counter) int64 {
		var shown dto.Metric
		if err := c.Write(&shown); err != nil {
			panic(err) // a counter has nothing that can fail
		}
		return int64(shown.Counter.GetValue())
	}
	l = Losses{
		Expired: of(m.losses.WithLabelValues(lock.Expired.String())),
		Revoked: of(m.losses.WithLabelValues(lock.Revoked.String())),
	}
	for _, op := range staleOps {
		l.Stale += of(m.stale(op))
	}
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared, lock.Permit} {
		l.Deadlocks += of(m.acquires.WithLabelValues(mode.String(), string(lock.ErrDeadlock)))
	}
	return l
}

// HandedOver counts a waiting call that has got its lock, took after that was decided.
func (m *Metrics) HandedOver(took time.Duration) { m.handovers.Observe(took.Seconds()) }

// Round counts a round of a batch.
func (m *Metrics) Round(r observe.Round) {
	locks := "cached"
	switch {
	case r.Locked:
		locks = "locked"
	case r.Looked:
		locks = "read"
	}
	m.rounds.WithLabelValues(locks).Inc()
	m.sizes.Observe(float64(r.Calls))
	m.durations.Observe(r.Took.Seconds())
	m.misses.Add(float64(r.Missed))
}

// Succeeded notes when the background task has succeeded.
func (m *Metrics) Succeeded(task string) {
	m.tasks.WithLabelValues(strings.ReplaceAll(task, " ", "_")).SetToCurrentTime()
}

// Request counts an answered request of the HTTP API. route is the pattern of its route, empty for none.
func (m *Metrics) Request(method, route string, status int, took time.Duration) {
	if status == http.StatusMethodNotAllowed || route == "" {
		method, route = "other", "other" // a client may invent methods
	}
	m.answered(answer{method, route, status}).Observe(took.Seconds())
}

// answered returns the histogram of requests with these labels. There are as many as routes and statuses.
func (m *Metrics) answered(a answer) prometheus.Observer {
	known := m.answers.Load()
	if h := (*known)[a]; h != nil {
		return h
	}
	h := m.requests.WithLabelValues(a.method, a.route, strconv.Itoa(a.status))
	more := maps.Clone(*known)
	more[a] = h
	m.answers.CompareAndSwap(known, &more) // or leave it to the next request with these labels
	return h
}
