package faults_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

const (
	floodStreams = 1000
	eventPairs   = 200 // acquires and releases; the kernel buffers their events, about 130 KB a stream
	eventRounds  = 4   // repetitions with longer events, about 450 KB each, which it does not buffer
	// streamsMemory is that of all streams, with TLS. It has no room for a quarter of a copy of the longer events for each.
	streamsMemory = 96 * mebibyte
	keptPeakShare = 4 // a quarter of the peak may remain: fragments, and garbage since the last collection
	keptFiles     = 5
	smallBuffer   = 4 << 10 // bytes of the kernel's receive buffer
)

// TestUnreadStreamsShareMemory opens floodStreams streams, each on its own connection, that are never read.
// Whether or not the kernel still buffers their events, the replica needs little more memory than without
// events, since all streams share them. Then the replica closes the streams, and the memory is freed.
func TestUnreadStreamsShareMemory(t *testing.T) {
	t.Parallel()
	requireOpenFiles(t, 4*floodStreams)
	e := newFlooded(t)
	e.launch(program(t), []string{"GOGC=10"}) // collects garbage so often that the peak is what is in use
	maker := e.client()
	e.makeEvents(maker, "short") // warm up
	before := e.resources()
	t.Logf("before: %v", before)
	conns := e.openUnreadStreams()
	t.Logf("with %d streams: %v", floodStreams, e.resources())
	e.resetPeak()
	e.makeEvents(maker, "short")
	e.checkStreamMemory("with events", before, streamsMemory)
	for range eventRounds {
		e.makeEvents(maker, strings.Repeat("界", lock.MaxHolderLength))
	}
	e.awaitResources(2*stepTimeout, func(now resources) error {
		if now.files > before.files+keptFiles {
			return fmt.Errorf("streams are not closed: %v", now)
		}
		return nil
	})
	e.checkStreamMemory("with more events than the kernel buffers, and closed", before, streamsMemory)
	for _, c := range conns {
		_ = c.Close() // the service has closed it
	}
	e.awaitMemory(before.resident + e.resources().peak/keptPeakShare)
	t.Logf("after: %v", e.resources())
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

// openUnreadStreams opens the streams.
func (e *floodedReplica) openUnreadStreams() []io.Closer {
	e.t.Helper()
	conns := make([]io.Closer, floodStreams)
	var opening errgroup.Group
	opening.SetLimit(20)
	for i := range conns {
		opening.Go(func() error {
			c, err := e.openUnreadStream()
			if c != nil {
				conns[i] = c
			}
			return err
		})
	}
	e.must(opening.Wait())
	return conns
}

// openUnreadStream follows all events, and reads only the start of the answer.
func (e *floodedReplica) openUnreadStream() (*tls.Conn, error) {
	c, err := e.dialTLS("http/1.1")
	if err != nil {
		return nil, err
	}
	// The kernel must buffer little of what is sent.
	if err := c.NetConn().(*net.TCPConn).SetReadBuffer(smallBuffer); err != nil {
		return c, err
	}
	if _, err := io.WriteString(c, "GET /v1/events/stream HTTP/1.1\r\nHost: "+e.address+"\r\n\r\n"); err != nil {
		return c, err
	}
	got, err := http.ReadResponse(bufio.NewReaderSize(c, 1<<10), nil)
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer to a stream is %s", got.Status)
	}
	return c, err
}

// makeEvents acquires and releases eventPairs locks. Unanswered calls are sent again: the machine may be busy.
func (e *floodedReplica) makeEvents(c *client.Client, holder string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 2*stepTimeout)
	defer cancel()
	var acquires, releases []lock.Command
	for i := range eventPairs {
		name, id := fmt.Sprint("deaf:", i), lock.LeaseID(uuid.New())
		acquires = append(acquires, lock.Acquire{Locks: lock.One(name), LeaseID: id, Holder: holder})
		releases = append(releases, lock.Release{Locks: []string{name}, LeaseID: id})
	}
	for _, batch := range [][]lock.Command{acquires, releases} {
		e.must(retry(ctx, func() (err error) {
			for _, result := range c.Batch(ctx, batch) {
				err = errors.Join(err, result.Err)
			}
			return err
		}))
	}
}

// checkStreamMemory checks the peak memory of the streams.
func (e *floodedReplica) checkStreamMemory(when string, before resources, most byteSize) {
	e.t.Helper()
	now := e.resources()
	taken := now.peak - before.resident
	e.t.Logf("%s: %v, or %v per thousand streams", when, now, taken*1000/floodStreams)
	if taken > most {
		e.t.Errorf("%s: %d streams take %v, want at most %v", when, floodStreams, taken, most)
	}
}
