package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// The streams of a flood reach the limit in total and for each key.
const (
	streamKeys  = 5 // each with streamsEach
	streamsEach = 200
	// Some streams of each key follow all events and are never read: unreadHTTP2 of them share
	// a connection with other streams, unreadHTTP1 have their own.
	unreadHTTP2, unreadHTTP1 = 4, 2
	listeners                = floodStreams - streamKeys*(unreadHTTP2+unreadHTTP1)
)

func streamKey(i int) string { return fmt.Sprint("streams ", i) }

// A streamGroup is the streams of one flood.
type streamGroup struct {
	*securedReplica
	name     string // of the lock whose events the read streams follow
	received [listeners]atomic.Int64
	next     int          // index of the next listener
	unread   []io.Closer  // connections that are never read
	cut      atomic.Int64 // unread streams on shared connections that the service has reset
	conns    []io.Closer
	closing  atomic.Bool // set while the connections are closed
}

const streamPath = "/v1/events/stream"

func (r *streamGroup) path() string { return streamPath + "?lock=" + r.name }

// openAll opens all streams, and returns when the listeners have an answer.
func (r *streamGroup) openAll() {
	r.t.Helper()
	r.t.Cleanup(func() { r.closing.Store(true) })
	for k := range streamKeys {
		key := streamKey(k)
		r.must(r.openHTTP2(key))
		for range streamsEach - streamsPerConn - unreadHTTP1 {
			r.must(r.openHTTP1(key))
		}
		for range unreadHTTP1 {
			r.must(r.openUnread(key))
		}
		if k == 0 {
			r.checkLimit(r.request(http.MethodGet, streamPath, key, ""), "with one API key")
		}
	}
	r.checkLimit(r.request(http.MethodGet, streamPath, "late", ""), "The limit on open event streams is reached.")
	r.must(checkCount("listeners", r.next, listeners))
}

// openUnread adds an unread stream.
func (r *streamGroup) openUnread(key string) error {
	c, err := r.openUnreadStream(key)
	if c != nil {
		r.unread = append(r.unread, c)
	}
	return err
}

// openUnreadStream follows all events, and reads only the start of the answer: from then on the stream is counted.
func (e *securedReplica) openUnreadStream(key string) (*httpConn, error) {
	c, err := e.httpConn()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(shrinkReadBuffer(c.Conn), c.send(e.request(http.MethodGet, streamPath, key, ""))); err != nil {
		return c, err
	}
	got, err := http.ReadResponse(c.in, nil)
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer to a stream is %s", got.Status)
	}
	return c, err
}

// openHTTP1 follows the lock on its own connection.
func (r *streamGroup) openHTTP1(key string) error {
	c, err := r.httpConn()
	if err != nil {
		return err
	}
	r.conns = append(r.conns, c)
	if err := c.send(r.request(http.MethodGet, r.path(), key, "")); err != nil {
		return err
	}
	err = c.SetReadDeadline(time.Now().Add(stepTimeout))
	var got *http.Response
	if err == nil {
		got, err = http.ReadResponse(c.in, nil)
	}
	if err == nil {
		err = c.SetReadDeadline(time.Time{}) // the stream itself has no end
	}
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer to a stream is %s", got.Status)
	}
	if err != nil {
		return err
	}
	heard := &r.received[r.next]
	r.next++
	go func() {
		lines := bufio.NewScanner(got.Body)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "event: granted") {
				heard.Add(1)
			}
		}
		if !r.closing.Load() {
			r.t.Errorf("a stream ended: %v", lines.Err())
		}
	}()
	return nil
}

// openHTTP2 follows the lock in many streams of one connection, and all events in a few streams that are
// not read beyond their window.
func (r *streamGroup) openHTTP2(key string) error {
	w, err := r.http2Conn()
	if err != nil {
		return err
	}
	r.conns = append(r.conns, w)
	heard, deaf := map[uint32]*atomic.Int64{}, map[uint32]bool{}
	for i := range streamsPerConn {
		path := r.path()
		if i < unreadHTTP2 {
			path = streamPath
		}
		stream, err := w.open(http.MethodGet, path, r.secrets[key], "", true)
		if err != nil {
			return err
		}
		if i < unreadHTTP2 {
			deaf[stream] = true
			continue
		}
		heard[stream] = &r.received[r.next]
		r.next++
	}
	go func() {
		if err := r.readHTTP2(w, heard, deaf); !r.closing.Load() {
			r.t.Errorf("a connection with streams ended: %v", err)
		}
	}()
	return nil
}

func (r *streamGroup) readHTTP2(w *http2Conn, heard map[uint32]*atomic.Int64, deaf map[uint32]bool) error {
	for {
		f, err := w.next()
		switch {
		case err != nil:
			return err
		case f.kind == frameData && heard[f.stream] != nil:
			heard[f.stream].Add(int64(bytes.Count(f.payload, []byte("event: granted"))))
		case f.kind == frameReset && deaf[f.stream]:
			r.cut.Add(1)
		case f.kind == frameReset, f.kind == frameGoAway:
			return fmt.Errorf("stream %d was closed", f.stream)
		}
	}
}

// createEvents acquires and releases the lock, and waits until each listener has received the grant, once.
func (r *streamGroup) createEvents(times int64) {
	r.t.Helper()
	locks, id := r.testClient, lock.LeaseID(uuid.New())
	_, err := locks.Acquire(r.t.Context(), lock.Acquire{Name: r.name, LeaseID: id, Holder: "the news"})
	r.must(err)
	r.must(locks.Release(r.t.Context(), lock.Release{Name: r.name, LeaseID: id}))
	r.awaitResources(2*stepTimeout, func(resources) error {
		for i := range r.received {
			if n := r.received[i].Load(); n != times {
				return fmt.Errorf("listener %d has received %d grants, want %d", i, n, times)
			}
		}
		return nil
	})
}

// awaitUnreadClosed waits until the service has reset the unread streams on shared connections. awaitIdle
// checks that it closes the other unread connections.
func (r *streamGroup) awaitUnreadClosed() {
	r.t.Helper()
	r.awaitResources(2*stepTimeout, func(resources) error {
		return checkCount("closed streams", int(r.cut.Load()), streamKeys*unreadHTTP2)
	})
}

// closeAll closes all connections except the unread ones.
func (r *streamGroup) closeAll() {
	r.closing.Store(true)
	for _, c := range r.conns {
		_ = c.Close() // the service may have closed it already
	}
}

const (
	eventPairs    = 200            // acquires and releases; the kernel buffers their events, about 130 KB a stream
	eventRounds   = 4              // repetitions with longer events, about 450 KB each, which it does not buffer
	streamsMemory = 128 * mebibyte // of all streams, with TLS; not enough for a copy of the longer events for each
)

// TestUnreadStreamsShareMemory opens floodStreams streams, each on its own connection, that are never read.
// Whether or not the kernel still buffers their events, the replica needs little more memory than without
// events, since all streams share them. Then the streams are closed and the memory is freed.
func TestUnreadStreamsShareMemory(t *testing.T) {
	t.Parallel()
	requireOpenFiles(t, 4*floodStreams)
	e := startSecured(t, program(t), "GOGC=10") // collects garbage so often that the peak is what is in use
	makers := e.eventMakers()
	e.makeEvents(makers[0], "short") // warm up
	before := e.resources()
	t.Logf("before: %v", before)
	conns := e.openUnreadStreams()
	t.Logf("with %d streams: %v", floodStreams, e.resources())
	e.resetPeak()
	e.makeEvents(makers[1], "short")
	e.checkStreamMemory("with events", before, streamsMemory)
	for i := range eventRounds {
		e.makeEvents(makers[i%len(makers)], strings.Repeat("界", lock.MaxHolderLength))
	}
	e.awaitResources(2*stepTimeout, func(now resources) error {
		if now.files-now.backends > before.files-before.backends+keptFiles {
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

// openUnreadStreams opens the streams, as many for each key as it may have.
func (e *securedReplica) openUnreadStreams() []io.Closer {
	e.t.Helper()
	conns := make([]io.Closer, floodStreams)
	var opening errgroup.Group
	opening.SetLimit(20)
	for i := range conns {
		opening.Go(func() error {
			c, err := e.openUnreadStream(streamKey(i % streamKeys))
			if c != nil {
				conns[i] = c
			}
			return err
		})
	}
	e.must(opening.Wait())
	return conns
}

// eventMakers returns clients with different keys, since one key cannot make enough calls. Each has a
// connection.
func (e *securedReplica) eventMakers() []*client.Client {
	e.t.Helper()
	makers := make([]*client.Client, waiterKeys)
	for i := range makers {
		makers[i] = e.client(waiterKey(i))
		_, err := makers[i].Lock(e.t.Context(), "deaf")
		e.must(err)
	}
	return makers
}

// makeEvents acquires and releases eventPairs locks. Unanswered calls are sent again: the machine may be busy.
func (e *securedReplica) makeEvents(c *client.Client, holder string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 2*stepTimeout)
	defer cancel()
	var acquires, releases []lock.Command
	for i := range eventPairs {
		name, id := fmt.Sprint("deaf:", i), lock.LeaseID(uuid.New())
		acquires = append(acquires, lock.Acquire{Name: name, LeaseID: id, Holder: holder})
		releases = append(releases, lock.Release{Name: name, LeaseID: id})
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
func (e *securedReplica) checkStreamMemory(when string, before resources, most byteSize) {
	e.t.Helper()
	now := e.resources()
	taken := now.peak - before.resident
	e.t.Logf("%s: %v, or %v per thousand streams", when, now, taken*1000/floodStreams)
	if taken > most {
		e.t.Errorf("%s: %d streams take %v, want at most %v", when, floodStreams, taken, most)
	}
}
