package faults_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// What a flooded replica may use, and how much of it may remain.
const (
	floodMemory   = 1536 * mebibyte // resident, at the peak; about 25 MiB without a flood
	waiterMemory  = byteSize(128 << 10)
	streamMemory  = byteSize(128 << 10)
	keptPeakShare = 4   // a quarter of the peak may remain: fragments, and garbage since the last collection
	growth        = 1.5 // of the peak from the first flood to the second
	keptFiles     = 5
	keptRoutines  = 100
	quietCalls    = 60 // calls of the steady client before the flood
)

// TestFloodIsSurvived floods one replica, in the long form twice. The replica has API keys, TLS and, in the long
// form, the default limits except for floodStreams, floodRate and floodBurst. All of this is present at once:
//
//   - 1,000 streams of events, 30 of which are never read;
//   - 10,000 waiters in 19 queues, 3,000 in the short form, some on their own HTTP/1.1 connections, the others sharing
//     HTTP/2 connections. The race detector supports 8,128 goroutines, and 8,192 open files must be enough for the
//     test and the replica each;
//   - 1,000 slow connections: silent, or with half a handshake, header or body, one byte a second;
//   - 40 connections that request a lot and read nothing;
//   - endless or too many bodies, headers, queries and HTTP/2 streams, again and again;
//   - a key that exceeds its rate.
//
// Meanwhile every call of a steady client is answered. Requests above a limit are refused, and only
// those. Each stream that is read receives every event once. The replica closes slow connections and
// those that are not read. The waiters get their locks in order; a quarter of them disconnects, in the
// second flood all of them, so that both ways to leave are covered.
//
// The replica uses less than floodMemory, waiterMemory per waiter and streamMemory per stream; the log
// has the measured values. After each flood, connections and rows are gone and the memory in use is nearly back to
// its start. The second flood uses little more than the first, so nothing is leaked, and no goroutines remain.
func TestFloodIsSurvived(t *testing.T) {
	requireOpenFiles(t, 8192)
	e := startSecured(t, program(t))
	good := e.startSteady()
	e.awaitResources(stepTimeout, func(resources) error { return good.checkCalls(quietCalls) })
	base := e.logState(good, "before")
	floods := 1
	if *flagLong {
		floods = 2
	}
	peaks := make([]byteSize, floods)
	for n := range peaks {
		f := &flood{securedReplica: e, n: n, steady: good, before: base}
		f.start()
		f.stop()
		f.awaitIdle()
		peaks[n] = f.peak
	}
	if first, last := peaks[0], peaks[floods-1]; last > byteSize(growth*float64(first)) {
		t.Errorf("the first flood took %v of memory, the last %v", first, last)
	}
	e.stopAndCheck()
}

// requireOpenFiles checks that this process may open that many files. The Go runtime has already raised
// the soft limit to the hard one.
func requireOpenFiles(t *testing.T, files uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < files {
		t.Fatalf("a process may open %d files, %d are needed (%v): raise the hard limit with ulimit -Hn %d", limit.Cur,
			files, err, files)
	}
}

// logState logs the replica's resources and the latencies of the steady client since the last call.
func (e *securedReplica) logState(good *steadyClient, when string) resources {
	e.t.Helper()
	l, err := good.latencies()
	e.must(err)
	f := e.resources()
	e.t.Logf("%s: %v; %v", when, f, l)
	return f
}

// stopAndCheck stops the replica with a goroutine dump. Few goroutines may remain, and the log must contain
// no panic and no key.
func (e *securedReplica) stopAndCheck() {
	e.t.Helper()
	e.must(e.process.stop(syscall.SIGQUIT))
	output, dump, _ := bytes.Cut(e.process.output.bytes(), []byte("SIGQUIT: quit"))
	n := bytes.Count(dump, []byte("\ngoroutine "))
	e.t.Logf("%d goroutines remain", n)
	if n == 0 || n > keptRoutines {
		e.t.Errorf("%d goroutines remain, want at most %d:\n%s", n, keptRoutines, dump)
	}
	if bytes.Contains(output, []byte("panic")) {
		e.t.Errorf("the replica logged\n%s", lastLines(output))
	}
	for name, secret := range e.secrets {
		if bytes.Contains(output, []byte(secret)) {
			e.t.Errorf("the replica logged the key %q", name)
		}
	}
}

// A flood is one of the two floods.
type flood struct {
	*securedReplica
	n      int
	steady *steadyClient
	before resources
	peak   byteSize

	unread  []io.Closer
	streams *streamGroup
	waiters *waiterGroup
	slow    *slowConns
}

// start adds everything that the replica must serve or refuse.
func (f *flood) start() {
	f.t.Helper()
	f.resetPeak()
	f.unread = f.openUnread()
	unread := f.logState(f.steady, "with unread connections")
	f.streams = &streamGroup{securedReplica: f.securedReplica, name: fmt.Sprint("news:", f.n)}
	f.streams.openAll()
	streaming := f.logState(f.steady, "with streams, too")
	f.waiters = &waiterGroup{securedReplica: f.securedReplica, prefix: fmt.Sprint("flood:", f.n),
		direct: floodWaiters() * 3 / 10}
	f.waiters.hold()
	f.waiters.fillLimits()
	full := f.logState(f.steady, "with waiters, too")
	f.checkMemory("stream", streaming.resident-unread.resident, floodStreams, streamMemory)
	f.checkMemory("waiter", full.resident-streaming.resident, floodWaiters(), waiterMemory)
	f.slow = f.openSlow()
	var asking errgroup.Group
	asking.Go(func() error { return f.exceedRate(greedyKey(f.n)) })
	f.sendExcess()
	f.must(asking.Wait())
	f.streams.createEvents(1)
	f.logState(f.steady, "with slow connections and excessive requests")
}

// checkMemory checks the memory used by a number of clients against the limit for each.
func (f *flood) checkMemory(what string, taken byteSize, by int, most byteSize) {
	f.t.Helper()
	each := taken / byteSize(by)
	f.t.Logf("a %s took %d KiB", what, each>>10)
	if each > most {
		f.t.Errorf("a %s takes %d KiB of memory, want at most %d", what, each>>10, most>>10)
	}
}

// stop serves the waiters or disconnects them, and closes the streams.
func (f *flood) stop() {
	f.t.Helper()
	f.waiters.hangUp(f.n > 0)
	f.waiters.serve()
	f.logState(f.steady, "without waiters")
	f.waiters.checkOrder()
	f.slow.awaitAllClosed()
	f.streams.awaitUnreadClosed()
	f.streams.createEvents(2)
	f.streams.checkRoom(streamKey(0))
	f.streams.closeAll()
	f.peak = f.logState(f.steady, "without streams and slow connections").peak
	if f.peak > floodMemory {
		f.t.Errorf("the replica took %v of memory, want at most %v", f.peak, floodMemory)
	}
}

// awaitIdle waits until the replica has freed everything. The clients do not close their unread connections:
// the replica must have closed them.
func (f *flood) awaitIdle() {
	f.t.Helper()
	began := time.Now()
	f.awaitResources(6*stepTimeout, func(now resources) error {
		if now.places > 0 || now.files-now.backends > f.before.files-f.before.backends+keptFiles {
			return fmt.Errorf("the replica still has %v; before the flood it had %v", now, f.before)
		}
		return nil
	})
	f.t.Logf("connections and rows were freed after %v", time.Since(began).Round(time.Millisecond))
	for _, c := range slices.Concat(f.unread, f.streams.unread) {
		_ = c.Close() // the service has closed it
	}
	f.awaitMemory(f.before.resident + f.peak/keptPeakShare)
	f.t.Logf("memory was freed after %v", time.Since(began).Round(time.Millisecond))
	f.logState(f.steady, "after the flood")
}
