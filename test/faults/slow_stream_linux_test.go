package faults_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

const (
	busyClients = 64
	busyPairs   = 70              // of each client; with long names and holders, more text than a replica keeps
	slowFor     = 5 * time.Second // less than the replica's timeout of a write
)

// TestSlowSubscriberLosesOnlyWhatItsGapsSay follows all events beside clients that acquire and release locks. For some
// seconds the subscriber reads a byte a second, and then as fast as it can. All clients finish. The subscriber gets each
// event once and in order, or a gap in its place, from whose cursor the list of events has the missing ones.
func TestSlowSubscriberLosesOnlyWhatItsGapsSay(t *testing.T) {
	t.Parallel()
	e := newFlooded(t)
	e.launch(program(t), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*stepTimeout)
	defer cancel()
	var slow atomic.Bool
	stream := e.subscribeOver(ctx, &slow)
	start, err := stream.Next() // all events since this message follow
	e.must(err)
	slow.Store(true)
	var all errgroup.Group
	all.Go(func() error { sleepFor(ctx, slowFor); slow.Store(false); return nil })
	for i := range busyClients {
		all.Go(func() error { return e.acquireAndRelease(ctx, fmt.Sprint(strings.Repeat("busy", 40), i), busyPairs) })
	}
	var messages []paddock.Page[lock.Event]
	var last atomic.Int64 // the id of the last event, once that is known
	var reading errgroup.Group
	reading.Go(func() error {
		for end := int64(0); end == 0 || cursorOf(messages[len(messages)-1]) <= end; end = last.Load() {
			message, err := stream.Next()
			if err != nil {
				return err
			}
			messages = append(messages, message)
		}
		return nil
	})
	e.must(all.Wait())
	events := e.eventsAfter(ctx, start.Next)
	if len(events) != 2*busyClients*busyPairs {
		t.Fatalf("the list has %d events after %s", len(events), start.Next)
	}
	last.Store(events[len(events)-1].ID)
	e.must(e.acquireAndRelease(ctx, "last", 1)) // with this the subscriber notices that it has all others
	e.must(reading.Wait())
	e.checkMessages(ctx, start.Next, messages, events)
}

// acquireAndRelease acquires and releases a lock, through a client of its own.
func (e *floodedReplica) acquireAndRelease(ctx context.Context, name string, times int) error {
	c := e.client()
	for range times {
		acquire := lock.Acquire{Locks: lock.One(name), LeaseID: lock.LeaseID(uuid.New()), Holder: strings.Repeat("界", lock.MaxHolderLength)}
		if err := retry(ctx, func() error { _, err := c.Acquire(ctx, acquire); return err }); err != nil {
			return err
		}
		release := lock.Release{Locks: []string{name}, LeaseID: acquire.LeaseID}
		if err := retry(ctx, func() error { return c.Release(ctx, release) }); err != nil {
			return err
		}
	}
	return nil
}

// eventsAfter reads the list of events after the cursor.
func (e *floodedReplica) eventsAfter(ctx context.Context, cursor string) (all []lock.Event) {
	e.t.Helper()
	c := e.client()
	for {
		page, err := c.Events(ctx, paddock.EventQuery{Cursor: cursor, Limit: paddock.MaxLimit})
		e.must(err)
		if len(page.Items) == 0 {
			return all
		}
		if page.Gap {
			e.t.Fatalf("events are missing in the list after %s", cursor)
		}
		all, cursor = append(all, page.Items...), page.Next
	}
}

// checkMessages compares what a subscriber got after the cursor with the list of events.
func (e *floodedReplica) checkMessages(ctx context.Context, cursor string, messages []paddock.Page[lock.Event], rest []lock.Event) {
	e.t.Helper()
	gap, gaps, missed := false, 0, 0
	for _, message := range messages {
		next := cursorOf(message) + 1 // all events before this id
		if len(message.Items) > 0 {
			next--
		}
		n, _ := slices.BinarySearchFunc(rest, next, func(x lock.Event, id int64) int { return cmp.Compare(x.ID, id) })
		switch {
		case message.Gap && message.Next != cursor:
			e.t.Fatalf("after %s there is a gap at %s", cursor, message.Next)
		case message.Gap:
			if listed := e.eventsAfter(ctx, cursor); len(rest) > 0 && !gocmp.Equal(listed[:len(rest)], rest) {
				e.t.Fatalf("the list does not continue at the gap after %s", cursor)
			}
			gap = true
			gaps++
			continue
		case n > 0 && !gap:
			e.t.Fatalf("after %s, %d events are missing before %s: there is no gap", cursor, n, message.Next)
		case len(message.Items) > 0 && len(rest) > n && !gocmp.Equal(message.Items[0], rest[n]):
			e.t.Fatalf("after %s: %s", cursor, gocmp.Diff(rest[n], message.Items[0]))
		}
		missed += n
		rest = rest[min(n+len(message.Items), len(rest)):]
		cursor, gap = message.Next, false
	}
	if len(rest) > 0 {
		e.t.Errorf("%d events are missing in the end", len(rest))
	}
	e.t.Logf("%d messages, %d gaps with %d events", len(messages), gaps, missed)
}

func cursorOf(p paddock.Page[lock.Event]) int64 {
	id, err := strconv.ParseInt(p.Next, 10, 64)
	if err != nil {
		panic(err)
	}
	return id
}

// subscribeOver opens a stream of all events over a connection that is read at one byte a second while slow is true.
func (e *floodedReplica) subscribeOver(ctx context.Context, slow *atomic.Bool) *client.Stream {
	e.t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := e.dial()
		if err != nil {
			return nil, err
		}
		return slowConn{c, ctx, slow}, c.SetReadBuffer(smallBuffer)
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: e.trust}
	c, err := client.New(client.Options{BaseURL: "https://" + e.address, HTTP: &http.Client{Transport: transport}})
	e.must(err)
	stream, err := c.Stream(ctx, paddock.EventQuery{Cursor: paddock.CursorNow})
	e.must(err)
	cleanup(e.t, stream.Close)
	return stream
}

type slowConn struct {
	net.Conn
	ctx  context.Context
	slow *atomic.Bool
}

func (c slowConn) Read(p []byte) (int, error) {
	if c.slow.Load() {
		sleepFor(c.ctx, time.Second)
		p = p[:1]
	}
	return c.Conn.Read(p)
}
