package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// roundTrip sends a request on a connection of its own.
func (e *securedReplica) roundTrip(text string) (answer, error) {
	c, err := e.httpConn()
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = c.Close() }() // the service may have been first
	return c.roundTrip(text)
}

// checkLimit checks that the request is refused since there are as many as may be, and that
// the detail says of what.
func (e *securedReplica) checkLimit(text, of string) {
	e.t.Helper()
	got, err := e.roundTrip(text)
	e.must(err)
	told, err := got.fields()
	e.must(err)
	if got.status != http.StatusTooManyRequests || told.Code != lock.ErrTooManyWaiters || !strings.Contains(told.Detail, of) {
		e.t.Errorf("one too many is told %v, want that there are too many: %s", got, of)
	}
}

// wait returns the request of somebody who would wait for the lock a moment.
func (c *waiterGroup) wait(name, key string) string {
	return c.request(http.MethodPost, "/v1/locks/"+name+"/acquire", key,
		fmt.Sprintf(`{"lease_id": "%s", "holder": "one more", "wait_ms": 1}`, uuid.New()))
}

// fillLimits has all waiters wait, and one more of each kind be refused.
func (c *waiterGroup) fillLimits() {
	c.t.Helper()
	c.add(0, waitersEach)
	c.checkLimit(c.wait(c.lock(0), "late"), "wait for this lock")
	c.checkLimit(c.wait(c.lock(1), waiterKey(0)), "API key")
	c.replaceOne()
	c.add(waitersEach, floodWaiters)
	c.checkLimit(c.wait(c.lock(1), "late"), "As many calls wait for locks as may")
}

// replaceOne has a waiter hang up, and another with the same key come in its place.
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
			err = fmt.Errorf("there was room, and one more is told %v", got)
		}
		return err
	}))
	c.must(c.waitHTTP1(c.waiter(0), false))
	c.awaitWaiters(waitersEach)
}

// checkRoom checks that there is room for one more stream of the key.
func (r *streamGroup) checkRoom(key string) {
	r.t.Helper()
	c, err := r.httpConn()
	r.must(err)
	defer func() { _ = c.Close() }() // it is of no further use
	r.must(c.send(r.request(http.MethodGet, r.path(), key, "")))
	got, err := http.ReadResponse(c.in, nil)
	r.must(err)
	if got.StatusCode != http.StatusOK {
		r.t.Errorf("streams were cut off, and one more is answered %s", got.Status)
	}
}
