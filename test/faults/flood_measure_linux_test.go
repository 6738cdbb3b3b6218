package faults_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// Figures are what a replica has, and others have for it.
type resources struct {
	resident, peak byteSize // of memory; the peak since forgetPeak
	files          int      // that are open, connections among them
	backends       int      // of PostgreSQL
	waiters        int      // rows of the queue
	replicas       int      // rows of those that are known to live
}

// A byteSize is an amount of memory.
type byteSize int64

const mebibyte byteSize = 1 << 20

func (b byteSize) String() string { return fmt.Sprintf("%.1f MiB", float64(b)/float64(mebibyte)) }

func (f resources) String() string {
	return fmt.Sprintf("%v of memory, %v at the peak, %d files, %d backends of PostgreSQL, %d waiters, %d replicas",
		f.resident, f.peak, f.files, f.backends, f.waiters, f.replicas)
}

// proc is where the kernel tells of the replica.
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
	f.waiters, f.replicas = e.count("select count(*) from paddock.waiters"), e.count("select count(*) from paddock.replicas")
	return f
}

// resetPeak has the peak of the memory be what it is now.
func (e *securedReplica) resetPeak() {
	e.t.Helper()
	e.must(os.WriteFile(e.proc("clear_refs"), []byte("5"), 0))
}

// awaitResources waits until the figures are so, for as long as the replica may take to get
// there. What is not so is said.
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

// awaitMemory has the replica come back to so much memory. What it does not use any more it finds
// when it needs more, or every two minutes: headers that are long, and thrown away, are a need.
func (e *securedReplica) awaitMemory(most byteSize) {
	e.t.Helper()
	c, err := e.httpConn()
	e.must(err)
	defer func() { _ = c.Close() }() // it is of no further use
	probe := "GET /livez HTTP/1.1\r\nHost: " + e.address + "\r\nX-Long: " + strings.Repeat("x", 12<<10) + "\r\n\r\n"
	e.awaitResources(2*stepTimeout, func(f resources) error {
		for range 100 {
			if _, err := c.roundTrip(probe); err != nil {
				return err
			}
		}
		if f.resident > most {
			return fmt.Errorf("the replica still has %v, want at most %v", f, most)
		}
		return nil
	})
}

// A steadyClient is calls of somebody who means well: a lock is taken, looked at and given
// back, again and again. Each of these calls must be answered, whatever others do.
type steadyClient struct {
	locks lock.Service
	mu    sync.Mutex
	took  []time.Duration
	err   error
}

const (
	steadyInterval = 100 * time.Millisecond // the least, between two times that the lock is taken
	steadyTimeout  = stepTimeout            // for an answer
)

// startSteady begins one, which ends with the test.
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

// retrySteady makes the call, as often as the answer says that it is to be sent retrySteady.
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
		r.err = fmt.Errorf("a good call was answered after %v: %w", took, err)
	}
}

// checkCalls returns an error until more calls than that have been made.
func (r *steadyClient) checkCalls(calls int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.took) <= calls {
		return fmt.Errorf("only %d good calls have been made", len(r.took))
	}
	return nil
}

// A latencySummary is how long calls took.
type latencySummary struct {
	calls                 int
	median, most99, worst time.Duration
}

func (l latencySummary) String() string {
	const shown = 10 * time.Microsecond
	return fmt.Sprintf("%d good calls, median %v, p99 %v, worst %v", l.calls, l.median.Round(shown), l.most99.Round(shown), l.worst.Round(shown))
}

// latencies returns how long the calls took latencies it was asked last, or the first error.
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
