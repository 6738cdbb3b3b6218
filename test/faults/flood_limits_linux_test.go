package faults_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/lock"
)

const (
	excessEach   = 20        // concurrent attempts of each excess
	manyStreams  = 300       // opened at once on a connection that allows 100
	manyResets   = 2000      // HTTP/2 requests that are reset at once
	endless      = 256 << 20 // bytes: more than all buffers together
	excessLength = 1 << 20   // bytes of a header and of a query
)

// excesses returns requests over HTTP/1.1 that are too large, and how each must be answered.
func (e *securedReplica) excesses() []excess {
	post := "POST /v1/locks/excess/acquire HTTP/1.1\r\nHost: p\r\nContent-Type: application/json\r\n" +
		"Authorization: Bearer " + e.secrets["rude"] + "\r\n"
	get := "HTTP/1.1\r\nHost: p\r\nAuthorization: Bearer " + e.secrets["rude"] + "\r\n"
	sized := func(body string) string { return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, len(body), body) }
	return []excess{
		{"a Content-Length of one terabyte", post + "Content-Length: 1099511627776\r\n\r\n", " ",
			http.StatusRequestEntityTooLarge},
		{"endless chunks", post + "Transfer-Encoding: chunked\r\n\r\n",
			"400\r\n" + strings.Repeat(" ", 0x400) + "\r\n", http.StatusRequestEntityTooLarge},
		{"an endless body without a key",
			"POST /v1/locks/excess/acquire HTTP/1.1\r\nHost: p\r\nContent-Length: 1099511627776\r\n\r\n", " ",
			http.StatusUnauthorized},
		{"one byte more than 16 KiB", sized(strings.Repeat(" ", 16<<10+1)), "", http.StatusRequestEntityTooLarge},
		{"JSON nested 100,000 levels deep", sized(strings.Repeat("[", 100_000)), "", http.StatusRequestEntityTooLarge},
		{"JSON nested 8,000 levels deep", sized(`{"holder": "deep", "metadata": {"a": ` + strings.Repeat("[", 8000) +
			strings.Repeat("]", 8000) + `}}`), "", http.StatusBadRequest},
		{"a header of one mebibyte", "GET /v1/locks " + get + "X-Long: " + strings.Repeat("x", excessLength) +
			"\r\n\r\n", "", http.StatusRequestHeaderFieldsTooLarge},
		{"endless headers", "GET /v1/locks " + get, "X: " + strings.Repeat("x", 0x400) + "\r\n",
			http.StatusRequestHeaderFieldsTooLarge},
		{"a query of one mebibyte", "GET /v1/locks?prefix=" + strings.Repeat("x", excessLength) + " " + get + "\r\n",
			"", http.StatusRequestHeaderFieldsTooLarge},
		{"4,000 parameters", "GET /v1/locks?" + strings.Repeat("a&", 4000) + " " + get + "\r\n", "",
			http.StatusBadRequest},
	}
}

// An excess is a request that is too large.
type excess struct {
	name   string
	begin  string
	repeat string // sent repeatedly until the connection fails
	status int
}

// sendExcess sends all excesses, excessEach of each at once, and checks the answers.
func (e *securedReplica) sendExcess() {
	e.t.Helper()
	var trying errgroup.Group
	trying.SetLimit(2 * excessEach)
	for _, x := range e.excesses() {
		for range excessEach {
			trying.Go(func() error {
				if err := e.sendOne(x); err != nil {
					return fmt.Errorf("%s: %w", x.name, err)
				}
				return nil
			})
		}
	}
	trying.Go(e.openTooManyStreams)
	trying.Go(e.resetManyStreams)
	e.must(trying.Wait())
}

// sendOne sends one excess, and goes on sending after the answer while it can.
func (e *securedReplica) sendOne(x excess) error {
	c, err := e.httpConn()
	if err != nil {
		return err
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		text := strings.Repeat(x.repeat, 1+32<<10/max(1, len(x.repeat)))
		err := c.send(x.begin)
		for sent := 0; err == nil && len(x.repeat) > 0 && sent < endless; sent += len(text) {
			err = c.send(text)
		}
	})
	defer sending.Wait()
	defer func() { _ = c.Close() }() // the service may have closed it already
	if err := c.SetDeadline(time.Now().Add(2 * stepTimeout)); err != nil {
		return err
	}
	got, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	if got.StatusCode != x.status {
		return fmt.Errorf("answered %s, want %d", got.Status, x.status)
	}
	if len(x.repeat) == 0 {
		return nil
	}
	if _, err := io.Copy(io.Discard, c.in); isTimeout(err) {
		return errors.New("the connection stays open")
	}
	return nil
}

// openTooManyStreams opens more streams than a connection allows, with incomplete bodies. Streams above the
// limit are refused, and the others are answered when their time is up.
func (e *securedReplica) openTooManyStreams() error {
	w, err := e.http2Conn()
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	for range manyStreams {
		if _, err := w.open(http.MethodPost, "/v1/locks/excess/acquire", e.secrets["rude"], "{", false); err != nil {
			return err
		}
	}
	if err := w.SetReadDeadline(time.Now().Add(2 * stepTimeout)); err != nil {
		return err
	}
	refused, answered := 0, 0
	for refused+answered < manyStreams {
		f, err := w.next()
		switch {
		case err != nil:
			return fmt.Errorf("of %d streams %d were refused and %d answered: %w", manyStreams, refused, answered, err)
		case f.kind == frameGoAway:
			return fmt.Errorf("the connection was closed because of %d streams", manyStreams)
		case f.kind == frameData && f.flags&flagEndStream != 0:
			answered++
		case f.kind == frameReset && binary.BigEndian.Uint32(f.payload) != 0:
			refused++
		}
	}
	if answered > maxConnStreams || refused < manyStreams-maxConnStreams {
		return fmt.Errorf("of %d streams %d were refused and %d answered", manyStreams, refused, answered)
	}
	return nil
}

// resetManyStreams opens streams and resets them at once. It opens another connection if the service
// closes one.
func (e *securedReplica) resetManyStreams() error {
	for done := 0; done < manyResets; {
		w, err := e.http2Conn()
		if err != nil {
			return err
		}
		for ; done < manyResets; done++ {
			stream, err := w.open(http.MethodGet, "/v1/locks/excess", e.secrets["rude"], "", true)
			if err == nil {
				err = w.reset(stream)
			}
			if err != nil {
				break
			}
		}
		_ = w.Close() // the service may have closed it already
	}
	return nil
}

// greedyKey is the key that exceeds its rate in a flood.
func greedyKey(flood int) string { return fmt.Sprint("greedy ", flood) }

// exceedRate calls until the key is rate limited, which must not happen before its burst is used up.
func (e *securedReplica) exceedRate(key string) error {
	c, err := e.httpConn()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the result does not matter
	for n := range 4 * floodBurst {
		got, err := c.roundTrip(e.request(http.MethodGet, "/v1/locks/excess", key, ""))
		if err != nil {
			return err
		}
		if got.status == http.StatusOK {
			continue
		}
		parsed, err := got.fields()
		if err == nil && (parsed.Code != lock.ErrRateLimited || n < floodBurst) {
			err = fmt.Errorf("call %d of a key with a burst of %d is answered %v", n, floodBurst, got)
		}
		return err
	}
	return fmt.Errorf("%d calls of a key with a burst of %d were answered", 4*floodBurst, floodBurst)
}

// roundTrip sends a request on its own connection.
func (e *securedReplica) roundTrip(text string) (answer, error) {
	c, err := e.httpConn()
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = c.Close() }() // the service may have closed it already
	if err := c.SetDeadline(time.Now().Add(2 * stepTimeout)); err != nil {
		return answer{}, err
	}
	return c.roundTrip(text)
}

// checkLimit checks that the request is refused because of the limit that the detail names.
func (e *securedReplica) checkLimit(text, of string) {
	e.t.Helper()
	got, err := e.roundTrip(text)
	e.must(err)
	parsed, err := got.fields()
	e.must(err)
	if got.status != http.StatusTooManyRequests || parsed.Code != lock.ErrTooManyWaiters ||
		!strings.Contains(parsed.Detail, of) {
		e.t.Errorf("a request above the limit is answered %v, want the limit: %s", got, of)
	}
}

// wait returns a request that would wait for the lock briefly.
func (c *waiterGroup) wait(name, key string) string {
	return c.request(http.MethodPost, "/v1/locks/"+name+"/acquire", key,
		fmt.Sprintf(`{"lease_id": "%s", "holder": "one more", "wait_ms": 1}`, uuid.New()))
}

// fillLimits adds all waiters, and checks that one more is refused at each limit.
func (c *waiterGroup) fillLimits() {
	c.t.Helper()
	c.add(0, waitersEach())
	c.checkLimit(c.wait(c.lock(0), "late"), "The queue of this lock is full")
	c.checkLimit(c.wait(c.lock(1), waiterKey(0)), "API key")
	c.replaceOne()
	c.add(waitersEach(), floodWaiters())
	c.checkLimit(c.wait(c.lock(1), "late"), "The limit on waiting calls is reached")
}

// replaceOne disconnects a waiter and adds another one with the same key.
func (c *waiterGroup) replaceOne() {
	c.t.Helper()
	first := c.leaving[0]
	first.left.Store(true)
	c.must(first.hangUp())
	c.leaving = c.leaving[1:]
	ctx, cancel := context.WithTimeout(c.t.Context(), stepTimeout)
	defer cancel()
	c.must(retry(ctx, func() error {
		got, err := c.roundTrip(c.wait(c.lock(0), waiterKey(0)))
		if err == nil && got.status != http.StatusConflict {
			err = fmt.Errorf("a waiter left, but another one is answered %v", got)
		}
		return err
	}))
	c.must(c.waitHTTP1(c.waiter(0), false))
	c.awaitWaiters(waitersEach())
}

// checkRoom checks that the key can open one more stream.
func (r *streamGroup) checkRoom(key string) {
	r.t.Helper()
	c, err := r.httpConn()
	r.must(err)
	defer func() { _ = c.Close() }() // not used any more
	r.must(c.send(r.request(http.MethodGet, r.path(), key, "")))
	got, err := http.ReadResponse(c.in, nil)
	r.must(err)
	if got.StatusCode != http.StatusOK {
		r.t.Errorf("streams were closed, but another one is answered %s", got.Status)
	}
}
