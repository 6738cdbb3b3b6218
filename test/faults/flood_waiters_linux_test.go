package faults_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// The waiters of a flood reach the limits for the first lock, for each key, and in total.
const (
	waiterLocks    = 19              // the first has waitersEach, the others have the rest
	waiterKeys     = 10              // each with waitersEach
	waitersTimeout = 6 * stepTimeout // to add or to serve all; 20 s on an idle machine
	leaverShare    = 4               // one of this many disconnects before its grant
)

// waitersEach is the limit for a lock and for a key: the default in the long form. In the short one a machine that is
// busy with other things must serve as many within the 50 s of a call.
func waitersEach() int {
	if *flagLong {
		return lock.DefaultMaxWaiters
	}
	return 300
}

// floodWaiters is the limit for all.
func floodWaiters() int { return waiterKeys * waitersEach() }

func waiterKey(i int) string { return fmt.Sprint("waiters ", i) }

// A waiterGroup is the waiters of one flood.
type waiterGroup struct {
	*securedReplica
	prefix string
	direct int            // number with their own HTTP/1.1 connection; the others share HTTP/2 connections
	leases []lock.Release // of the locks that are waited for

	mu               sync.Mutex
	leaving, staying []*waiter    // waiters that disconnect, and waiters that are served
	conns            []*http2Conn // shared connections
	err              error        // first unexpected answer

	closing atomic.Bool  // set while the connections are closed
	served  atomic.Int64 // waiters that were granted and released their lock
	again   atomic.Int64 // calls that were repeated after their wait
}

// A waiter waits for one lock.
type waiter struct {
	lock, key, holder string
	lease             uuid.UUID
	left              atomic.Bool // set when it disconnects
	hangUp            func() error
}

func (c *waiterGroup) lock(i int) string { return fmt.Sprintf("%s:%02d", c.prefix, i) }

// waiter returns the nth waiter.
func (c *waiterGroup) waiter(n int) *waiter {
	w := &waiter{lock: c.lock(0), key: waiterKey(n / waitersEach()), holder: fmt.Sprint("waiter ", n), lease: uuid.New()}
	if n >= waitersEach() {
		w.lock = c.lock(1 + n%(waiterLocks-1))
	}
	return w
}

func (w *waiter) acquire() (path, body string) {
	return "/v1/locks/" + w.lock + "/acquire", fmt.Sprintf(
		`{"lease_id": "%s", "holder": "%s", "ttl_ms": 60000, "wait_ms": %d, "keep_place": true}`, w.lease, w.holder,
		lock.MaxWait.Milliseconds())
}

func (w *waiter) release() (path, body string) {
	return "/v1/locks/" + w.lock + "/release", fmt.Sprintf(`{"lease_id": "%s"}`, w.lease)
}

// hold acquires all locks, so that calls wait for them.
func (c *waiterGroup) hold() {
	c.t.Helper()
	locks := c.testClient
	for i := range waiterLocks {
		r := lock.Release{Name: c.lock(i), LeaseID: lock.LeaseID(uuid.New())}
		_, err := locks.Acquire(c.t.Context(),
			lock.Acquire{Name: r.Name, LeaseID: r.LeaseID, Holder: "the first", TTL: time.Hour})
		c.must(err)
		c.leases = append(c.leases, r)
	}
}

// add starts the waiters with the numbers from to to-1, and returns when all are queued.
func (c *waiterGroup) add(from, to int) {
	c.t.Helper()
	var arriving errgroup.Group
	arriving.SetLimit(32)
	var sharing []*waiter
	for n := from; n < to; n++ {
		if n*c.direct/floodWaiters() != (n+1)*c.direct/floodWaiters() {
			arriving.Go(func() error { return c.waitHTTP1(c.waiter(n), n%leaverShare == 0) })
			continue
		}
		sharing = append(sharing, c.waiter(n))
	}
	for some := range slices.Chunk(sharing, streamsPerConn) {
		arriving.Go(func() error { return c.waitHTTP2(some) })
	}
	c.must(arriving.Wait())
	c.awaitWaiters(to)
}

// awaitWaiters waits until that many calls are queued.
func (c *waiterGroup) awaitWaiters(want int) {
	c.t.Helper()
	c.awaitResources(waitersTimeout,
		func(f resources) error { return errors.Join(c.firstError(), checkCount("waiters", f.waiters, want)) })
}

// firstError returns the first unexpected answer.
func (c *waiterGroup) firstError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func checkCount(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("there are %d %s, want %d", got, what, want)
	}
	return nil
}

// register records how to disconnect a waiter, and whether it will be.
func (c *waiterGroup) register(w *waiter, leaves bool, hangUp func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.hangUp = hangUp
	if leaves {
		c.leaving = append(c.leaving, w)
	} else {
		c.staying = append(c.staying, w)
	}
}

// hangUp disconnects the leaving waiters, or all of them, and waits until no calls wait at their places.
func (c *waiterGroup) hangUp(allOfThem bool) {
	c.t.Helper()
	gone := c.leaving
	if allOfThem {
		gone = append(gone, c.staying...)
		c.staying = nil
	}
	for _, w := range gone {
		w.left.Store(true)
		c.must(w.hangUp())
	}
	c.awaitWaiters(len(c.staying))
}

// fail records an unexpected answer.
func (c *waiterGroup) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = cmp.Or(c.err, err)
}

// serve releases the locks and waits until each remaining waiter was granted its lock in turn.
func (c *waiterGroup) serve() {
	c.t.Helper()
	locks := c.testClient
	for _, r := range c.leases {
		c.must(locks.Release(c.t.Context(), r))
	}
	c.awaitResources(waitersTimeout, func(resources) error {
		return errors.Join(c.firstError(), checkCount("served waiters", int(c.served.Load()), len(c.staying)))
	})
	c.closing.Store(true)
	for _, w := range c.conns {
		_ = w.Close() // the result does not matter
	}
}

// checkOrder checks that no waiter was overtaken, except those that left. A waiter whose call had to be repeated may
// have been skipped meanwhile, too, as openapi.yaml says. Places are kept for those that left; awaitIdle waits for
// their end.
func (c *waiterGroup) checkOrder() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), stepTimeout)
	defer cancel()
	events, err := verify.Collect(ctx, c.testClient, c.prefix+":")
	c.must(err)
	of := map[string][]lock.Event{}
	for _, e := range events {
		of[e.Name] = append(of[e.Name], e)
	}
	c.must(checkCount("locks with events", len(of), waiterLocks))
	left := map[string]bool{}
	for n := range floodWaiters() {
		left[fmt.Sprint("waiter ", n)] = true
	}
	for _, w := range c.staying {
		left[w.holder] = false
	}
	away := func(e lock.Event) bool { return left[e.Holder] }
	for name, events := range of {
		if err := (verify.Rules{AllowOvertaking: c.again.Load() > 0, AllowWaiters: true, Away: away}).Check(events); err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
	}
}

// waitHTTP1 starts a waiter on its own connection.
func (c *waiterGroup) waitHTTP1(w *waiter, leaves bool) error {
	conn, err := c.httpConn()
	if err != nil {
		return err
	}
	path, body := w.acquire()
	text := c.request(http.MethodPost, path, w.key, body)
	if err := conn.send(text); err != nil {
		return errors.Join(err, conn.Close())
	}
	c.register(w, leaves, conn.Close)
	go func() {
		err := c.runWaiter(conn, w, text)
		if !w.left.Load() {
			c.fail(errors.Join(err, conn.Close()))
		}
	}()
	return nil
}

// runWaiter waits for the grant and releases the lock.
func (c *waiterGroup) runWaiter(conn *httpConn, w *waiter, text string) error {
	for {
		got, err := conn.receive()
		if err != nil {
			return fmt.Errorf("%s waits: %w", w.holder, err)
		}
		granted, err := c.granted(w, got)
		if err != nil {
			return err
		}
		if granted {
			break
		}
		if err := conn.send(text); err != nil {
			return err
		}
	}
	path, body := w.release()
	for {
		got, err := conn.roundTrip(c.request(http.MethodPost, path, w.key, body))
		if err != nil {
			return fmt.Errorf("%s releases: %w", w.holder, err)
		}
		if done, err := c.released(w, got); done || err != nil {
			return err
		}
	}
}

// released reports whether the lock was released; otherwise the call must be repeated.
func (c *waiterGroup) released(w *waiter, got answer) (bool, error) {
	parsed, err := got.fields()
	switch {
	case err != nil:
		return false, err
	case isRetryable(parsed.Code):
		c.slowDown(parsed)
		return false, nil
	case len(got.text) > 0:
		return false, fmt.Errorf("%s releases %s and is answered %v", w.holder, w.lock, got)
	}
	c.served.Add(1)
	return true, nil
}

// isRetryable reports whether the same call must be sent again.
func isRetryable(code lock.Code) bool {
	return code == lock.ErrHeld || code == lock.ErrUnavailable || code == lock.ErrUnknownOutcome || code == lock.ErrRateLimited
}

// slowDown returns when the key may make its next call, after one above its rate: on a slow machine many waits end,
// and are repeated, before all waiters are there.
func (c *waiterGroup) slowDown(f fields) {
	if f.Code == lock.ErrRateLimited {
		sleepFor(c.t.Context(), time.Duration(f.RetryAfterMS)*time.Millisecond)
	}
}

// granted reports whether the lock was granted; otherwise the call must be repeated.
func (c *waiterGroup) granted(w *waiter, got answer) (bool, error) {
	parsed, err := got.fields()
	switch {
	case err != nil:
		return false, err
	case isRetryable(parsed.Code):
		c.slowDown(parsed)
		c.again.Add(1)
		return false, nil
	case parsed.Token == 0:
		return false, fmt.Errorf("%s waits for %s and is answered %v", w.holder, w.lock, got)
	}
	return true, nil
}

// A waiterCall is the current call of a waiter on a shared connection.
type waiterCall struct {
	*waiter
	releases bool // false: acquires
}

// waitHTTP2 starts waiters on one connection.
func (c *waiterGroup) waitHTTP2(all []*waiter) error {
	conn, err := c.http2Conn()
	if err != nil {
		return err
	}
	calls := map[uint32]waiterCall{}
	for i, w := range all {
		path, body := w.acquire()
		stream, err := conn.open(http.MethodPost, path, c.secrets[w.key], body, true)
		if err != nil {
			return errors.Join(err, conn.Close())
		}
		calls[stream] = waiterCall{w, false}
		c.register(w, i%leaverShare == leaverShare-1, func() error { return conn.reset(stream) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	go func() {
		if err := c.runWaiters(conn, calls); !c.closing.Load() {
			c.fail(fmt.Errorf("a connection with waiters ended: %w", err))
		}
	}()
	return nil
}

// runWaiters is runWaiter for all waiters of a connection; it returns when the connection ends.
func (c *waiterGroup) runWaiters(conn *http2Conn, calls map[uint32]waiterCall) error {
	return conn.each(func(stream uint32, body []byte, whole bool) error {
		call := calls[stream]
		delete(calls, stream)
		got := answer{text: body}
		if call.waiter == nil || !whole {
			return fmt.Errorf("stream %d is answered %v, complete: %t", stream, got, whole)
		}
		answered := c.granted
		if call.releases {
			answered = c.released
		}
		done, err := answered(call.waiter, got)
		if err != nil || done && call.releases {
			return err
		}
		call.releases = call.releases || done
		path, text := call.acquire()
		if call.releases {
			path, text = call.release()
		}
		again, err := conn.open(http.MethodPost, path, c.secrets[call.key], text, true)
		calls[again] = call
		return err
	})
}
