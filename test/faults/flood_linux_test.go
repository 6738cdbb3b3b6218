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

// What a flooded replica may need, and how much of it may stay.
const (
	floodMemory   = 1536 * mebibyte // resident, at the worst moment; without a flood it is some 25 MiB
	waiterMemory  = byteSize(128 << 10)
	streamMemory  = byteSize(128 << 10)
	keptPeakShare = 8              // of the memory of the peak an eighth may stay
	heapRoom      = 128 * mebibyte // to which a service lets its heap grow before it collects
	growth        = 1.5            // of the peak from one flood to the next
	keptFiles     = 5
	keptRoutines  = 100
	quietCalls    = 60 // good calls that are made before the flood
	directWaiters = 3000
)

// TestFloodIsSurvived floods one replica twice. It has API keys, TLS and the usual limits, but
// for those that floodStreams and its neighbours name. All of this is there at once:
//
//   - 1,000 streams of events, of which 30 are never read;
//   - 10,000 waiters in 19 queues, some with a connection of HTTP/1.1 of their own, the others
//     sharing some of HTTP/2. That is so since the race detector bears 8,128 goroutines, and
//     so that 8,192 open files are enough for the test and the replica each;
//   - 1,000 slow connections: silent, or with half a handshake, header or body, a byte a second;
//   - 40 connections that ask for much and read nothing;
//   - bodies, headers, queries and streams of HTTP/2 that never end, or are too many, again and again;
//   - a key that calls more often than it may.
//
// Meanwhile a trickle of good calls is answered, each of them. Whatever is one too many is
// refused, and only that. Each stream that is read hears of what happens, once. Slow connections
// and those that are not read are closed by the replica. The waiters have their locks in turn, a
// quarter hang up; in the second flood all do, so that both ways of leaving are seen.
//
// The replica needs less than floodMemory, waiterMemory for each waiter and streamMemory for each
// stream; the log has what was measured. After each flood connections and rows are gone, and
// memory is back to a little. The second flood needs not much more than the first, which it would if
// anything stayed, and no goroutines stay.
func TestFloodIsSurvived(t *testing.T) {
	requireOpenFiles(t, 8192)
	e := startSecured(t, program(t))
	good := e.startSteady()
	e.awaitResources(stepTimeout, func(resources) error { return good.checkCalls(quietCalls) })
	base := e.logState(good, "before")
	var peaks [2]byteSize
	for n := range peaks {
		f := &flood{securedReplica: e, n: n, steady: good, before: base}
		f.start()
		f.stop()
		f.awaitIdle()
		peaks[n] = f.peak
	}
	if limit := byteSize(growth * float64(peaks[0])); peaks[1] > limit {
		t.Errorf("the first flood took %v of memory, the second %v", peaks[0], peaks[1])
	}
	e.stopAndCheck()
}

// requireOpenFiles sees to it that so many files may be open here. The Go runtime has raised the
// limit as far as it goes.
func requireOpenFiles(t *testing.T, files uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < files {
		t.Fatalf("%d files may be open in a process here, %d are needed (%v): raise the hard limit, ulimit -Hn %d", limit.Cur, files, err, files)
	}
}

// logState logs how the replica is and how long good calls took since the last logState.
func (e *securedReplica) logState(good *steadyClient, when string) resources {
	e.t.Helper()
	l, err := good.latencies()
	e.must(err)
	f := e.resources()
	e.t.Logf("%s: %v; %v", when, f, l)
	return f
}

// stopAndCheck has the replica end and say what it is still at. It must have said nothing that
// is secret, or that it broke down.
func (e *securedReplica) stopAndCheck() {
	e.t.Helper()
	e.must(e.process.stop(syscall.SIGQUIT))
	said, dump, _ := bytes.Cut(e.process.output.bytes(), []byte("SIGQUIT: quit"))
	n := bytes.Count(dump, []byte("\ngoroutine "))
	e.t.Logf("%d goroutines are left", n)
	if n == 0 || n > keptRoutines {
		e.t.Errorf("%d goroutines are left, want at most %d:\n%s", n, keptRoutines, dump)
	}
	if bytes.Contains(said, []byte("panic")) {
		e.t.Errorf("the replica has said\n%s", lastLines(said))
	}
	for name, secret := range e.secrets {
		if bytes.Contains(said, []byte(secret)) {
			e.t.Errorf("the replica has said what the key %q is", name)
		}
	}
}

// A flood is one of the floods.
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

// start has all come that wants to be served at once.
func (f *flood) start() {
	f.t.Helper()
	f.resetPeak()
	f.unread = f.securedReplica.openUnread()
	calm := f.logState(f.steady, "with those who do not read")
	f.streams = &streamGroup{securedReplica: f.securedReplica, name: fmt.Sprint("news:", f.n)}
	f.streams.openAll()
	streaming := f.logState(f.steady, "with streams, too")
	f.waiters = &waiterGroup{securedReplica: f.securedReplica, prefix: fmt.Sprint("flood:", f.n), direct: directWaiters}
	f.waiters.hold()
	f.waiters.fillLimits()
	full := f.logState(f.steady, "with waiters, too")
	f.checkMemory("stream", streaming.resident-calm.resident, floodStreams, streamMemory)
	f.checkMemory("waiter", full.resident-streaming.resident, floodWaiters, waiterMemory)
	f.slow = f.securedReplica.openSlow()
	var asking errgroup.Group
	asking.Go(func() error { return f.exceedRate(greedyKey(f.n)) })
	f.sendExcess()
	f.must(asking.Wait())
	f.streams.createEvents(1)
	f.logState(f.steady, "with slow connections and too much of everything")
}

// checkMemory checks what memory was taken, by how many, against what each may take.
func (f *flood) checkMemory(what string, taken byteSize, by int, most byteSize) {
	f.t.Helper()
	each := taken / byteSize(by)
	f.t.Logf("a %s took %d KiB", what, each>>10)
	if each > most {
		f.t.Errorf("a %s takes %d KiB of memory, may take %d", what, each>>10, most>>10)
	}
}

// stop has all be served, or leave.
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
		f.t.Errorf("the replica took %v of memory, may take %v", f.peak, floodMemory)
	}
}

// awaitIdle waits until the replica has given everything back. Those who do not read are still there: it must have closed their connections.
func (f *flood) awaitIdle() {
	f.t.Helper()
	began := time.Now()
	f.awaitResources(2*stepTimeout, func(now resources) error {
		if now.waiters > 0 || now.files-now.backends > f.before.files-f.before.backends+keptFiles {
			return fmt.Errorf("the replica still has %v, before the flood it had %v", now, f.before)
		}
		return nil
	})
	f.t.Logf("connections and rows were given back after %v", time.Since(began).Round(time.Millisecond))
	for _, c := range slices.Concat(f.unread, f.streams.unread) {
		_ = c.Close() // the service was first
	}
	f.awaitMemory(f.before.resident + heapRoom + f.peak/keptPeakShare)
	f.t.Logf("and memory after %v", time.Since(began).Round(time.Millisecond))
	f.logState(f.steady, "after the flood")
}
