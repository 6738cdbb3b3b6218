package faults_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// resources are what a replica uses in its process and in the database.
type resources struct {
	resident, peak byteSize // memory; the peak since resetPeak
	files          int      // open files, including connections
	backends       int      // connections to PostgreSQL
	waiters        int      // rows of waiters for which a call waits
	places         int      // rows of all waiters
	replicas       int      // rows of live replicas
}

// A byteSize is an amount of memory.
type byteSize int64

const mebibyte byteSize = 1 << 20

func (b byteSize) String() string { return fmt.Sprintf("%.1f MiB", float64(b)/float64(mebibyte)) }

func (f resources) String() string {
	return fmt.Sprintf("%v of memory, %v at the peak, %d files, %d backends of PostgreSQL, %d waiters, %d replicas",
		f.resident, f.peak, f.files, f.backends, f.waiters, f.replicas)
}

// proc is the path of a file about the replica in /proc.
func (e *securedReplica) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(e.process.cmd.Process.Pid), name)
}

func (e *securedReplica) resources() resources {
	e.t.Helper()
	status, err := os.ReadFile(e.proc("status"))
	e.must(err)
	files, err := os.ReadDir(e.proc("fd"))
	e.must(err)
	f := resources{files: len(files)}
	for line := range bytes.Lines(status) {
		var kib byteSize
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %d kB", &kib); n == 1 {
			f.resident = kib << 10
		}
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); n == 1 {
			f.peak = kib << 10
		}
	}
	f.backends = e.count("select count(*) from pg_catalog.pg_stat_activity where application_name = 'paddock'")
	f.places = e.count("select count(*) from paddock.parts where place > 0")
	f.waiters, f.replicas = e.count("select count(*) from paddock.parts where place > 0 and attachment <> 0"),
		e.count("select count(*) from paddock.replicas")
	return f
}

// resetPeak resets the peak of the memory to its current value.
func (e *securedReplica) resetPeak() {
	e.t.Helper()
	e.must(os.WriteFile(e.proc("clear_refs"), []byte("5"), 0))
}

// awaitResources waits until so returns nil, for at most most.
func (e *securedReplica) awaitResources(most time.Duration, so func(resources) error) resources {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), most)
	defer cancel()
	var f resources
	e.must(retry(ctx, func() error {
		f = e.resources()
		return so(f)
	}))
	return f
}

// awaitMemory waits until the replica uses at most that much memory, without what the Go runtime keeps to use again: it
// returns that to the system in its own time, which on a busy machine is long. It knows what it can use again after a
// garbage collection, which comes when it needs more memory, or every two minutes. Requests with long headers create
// that need.
func (e *securedReplica) awaitMemory(most byteSize) {
	e.t.Helper()
	c, err := e.httpConn()
	e.must(err)
	defer func() { _ = c.Close() }() // it is of no further use
	probe := "GET /livez HTTP/1.1\r\nHost: " + e.address + "\r\nX-Long: " + strings.Repeat("x", 12<<10) + "\r\n\r\n"
	e.awaitResources(2*stepTimeout, func(f resources) error {
		reusable := e.reusable()
		if f.resident-reusable <= most {
			e.t.Logf("%v of %v are in use", f.resident-reusable, f.resident)
			return nil
		}
		for range 100 {
			if _, err := c.roundTrip(probe); err != nil {
				return err
			}
		}
		return fmt.Errorf("the replica still has %v, of which it can use %v again; want at most %v more than that", f, reusable, most)
	})
}

// reusable returns how much memory the replica has got from the system and can use again.
func (e *securedReplica) reusable() byteSize {
	e.t.Helper()
	text := proctest.Scrape(e.t, "http://"+e.metrics+"/metrics")
	gauge := func(name string) byteSize {
		m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			e.t.Fatalf("the metrics have no %s:\n%s", name, text)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		e.must(err)
		return byteSize(n)
	}
	return gauge("go_memstats_heap_idle_bytes") - gauge("go_memstats_heap_released_bytes")
}

// A steadyClient acquires, reads and releases locks at a steady rate. Each call must be answered, whatever
// other clients do.
type steadyClient struct {
	locks lock.Service
	mu    sync.Mutex
	took  []time.Duration
	err   error
}

const (
	steadyInterval = 100 * time.Millisecond // minimum time between two turns
	steadyTimeout  = stepTimeout            // for one call with its retries
)

// startSteady starts a steady client that stops with the test.
func (e *securedReplica) startSteady() *steadyClient {
	r := &steadyClient{locks: e.client("good")}
	ctx, cancel := context.WithCancel(e.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		next := time.NewTicker(steadyInterval)
		defer next.Stop()
		for n := 0; ; n++ {
			select {
			case <-next.C:
				r.once(ctx, fmt.Sprint("good:", n%10))
			case <-ctx.Done():
				return
			}
		}
	}()
	e.t.Cleanup(func() { cancel(); <-ended })
	return r
}

func (r *steadyClient) once(ctx context.Context, name string) {
	id := lock.LeaseID(uuid.New())
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := r.locks.Acquire(ctx, lock.Acquire{Name: name, LeaseID: id, Holder: "good"})
			return err
		},
		func(ctx context.Context) error { _, err := r.locks.Lock(ctx, name); return err },
		func(ctx context.Context) error { return r.locks.Release(ctx, lock.Release{Name: name, LeaseID: id}) },
	} {
		began := time.Now()
		err := retrySteady(ctx, call)
		if ctx.Err() == nil {
			r.note(time.Since(began), err)
		}
	}
}

// retrySteady repeats the call while the answer asks for a retry.
func retrySteady(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, steadyTimeout)
	defer cancel()
	var refused error
	err := retry(ctx, func() error {
		err := call(ctx)
		if errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) {
			return err
		}
		refused = err
		return nil
	})
	return cmp.Or(refused, err)
}

func (r *steadyClient) note(took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, took)
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("a call of the steady client failed after %v: %w", took, err)
	}
}

// checkCalls returns an error until more than that many calls were made.
func (r *steadyClient) checkCalls(calls int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.took) <= calls {
		return fmt.Errorf("the steady client has made only %d calls", len(r.took))
	}
	return nil
}

// A latencySummary sums up the latency of calls.
type latencySummary struct {
	calls                 int
	median, most99, worst time.Duration
}

func (l latencySummary) String() string {
	const shown = 10 * time.Microsecond
	return fmt.Sprintf("%d steady calls, median %v, p99 %v, max %v", l.calls, l.median.Round(shown),
		l.most99.Round(shown), l.worst.Round(shown))
}

// latencies returns the latencies since the last call of latencies, or the first error.
func (r *steadyClient) latencies() (latencySummary, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := latencySummary{calls: len(r.took)}
	if r.err != nil || l.calls == 0 {
		return l, r.err
	}
	slices.Sort(r.took)
	l.median, l.most99, l.worst = r.took[l.calls/2], r.took[l.calls*99/100], r.took[l.calls-1]
	r.took = r.took[:0]
	return l, nil
}
