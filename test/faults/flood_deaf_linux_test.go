package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

const (
	eventPairs     = 400            // acquires and releases: their events fit into the kernel's buffers of a connection that is not read
	maxEventRounds = 28             // how often others are made, with longer events, until every stream is cut off
	streamsMemory  = 128 * mebibyte // that the streams may take while all fits into these buffers, each with a connection of TLS
)

// TestUnreadStreamsShareMemory opens floodStreams streams, each in a connection of its own, whose clients
// read nothing. While the kernel takes what they are told, and while it takes no more of it, the replica needs little more
// memory than without events, since all streams share it. Then they are cut off, and the memory is given back.
func TestUnreadStreamsShareMemory(t *testing.T) {
	requireOpenFiles(t, 4*floodStreams)
	e := startSecured(t, program(t))
	makers := e.eventMakers()
	e.makeEvents(makers[0], "short") // so that the replica has everything once
	before := e.resources()
	t.Logf("before: %v", before)
	conns := e.openUnreadStreams()
	t.Logf("with %d streams: %v", floodStreams, e.resources())
	e.resetPeak()
	e.makeEvents(makers[1], "short")
	e.checkStreamMemory("told", before, streamsMemory)
	for i := 0; i < maxEventRounds && e.resources().files > before.files+keptFiles; i++ {
		e.makeEvents(makers[i%len(makers)], strings.Repeat("界", lock.MaxHolderLength))
	}
	e.checkStreamMemory("told more than the kernel takes", before, streamsMemory+heapRoom)
	e.awaitResources(2*stepTimeout, func(now resources) error {
		if now.files-now.backends > before.files-before.backends+keptFiles {
			return fmt.Errorf("streams are not cut off: %v", now)
		}
		return nil
	})
	t.Logf("cut off: %v", e.resources())
	for _, c := range conns {
		_ = c.Close() // the service was first
	}
	e.awaitMemory(before.resident + heapRoom)
	t.Logf("after: %v", e.resources())
}

// openUnreadStreams opens the streams, with as many of each key as it may have, and reads the beginning of each answer.
func (e *securedReplica) openUnreadStreams() []io.Closer {
	e.t.Helper()
	conns := make([]io.Closer, floodStreams)
	var opening errgroup.Group
	opening.SetLimit(20)
	for i := range conns {
		opening.Go(func() error {
			c, err := e.httpConn()
			if err != nil {
				return err
			}
			conns[i] = c
			if err := shrinkReadBuffer(c.Conn); err != nil {
				return err
			}
			if err := c.send(e.request(http.MethodGet, streamPath, streamKey(i%streamKeys), "")); err != nil {
				return err
			}
			got, err := http.ReadResponse(c.in, nil)
			if err == nil && got.StatusCode != http.StatusOK {
				err = fmt.Errorf("a stream is answered %s", got.Status)
			}
			return err
		})
	}
	e.must(opening.Wait())
	return conns
}

// eventMakers returns clients with a key each, since a key may not make as many calls as are needed. Each has its connection.
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

// makeEvents has the holder acquire and release deafPairs locks. What was not answered is sent again: the machine may be busy.
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

// checkStreamMemory checks what the streams have taken at the peak.
func (e *securedReplica) checkStreamMemory(when string, before resources, most byteSize) {
	e.t.Helper()
	now := e.resources()
	taken := now.peak - before.resident
	e.t.Logf("%s: %v, which is %v a thousand streams", when, now, taken*1000/floodStreams)
	if taken > most {
		e.t.Errorf("%s, %d streams take %v, may take %v", when, floodStreams, taken, most)
	}
}
