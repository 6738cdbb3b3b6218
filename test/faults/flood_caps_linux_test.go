package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// once sends a request on a connection of its own.
func (e *exposed) once(text string) (answer, error) {
	c, err := e.caller()
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = c.Close() }() // the service may have been first
	return c.ask(text)
}

// isTooMuch checks that the request is refused since there are as many as may be, and that
// the detail says of what.
func (e *exposed) isTooMuch(text, of string) {
	e.t.Helper()
	got, err := e.once(text)
	e.must(err)
	told, err := got.told()
	e.must(err)
	if got.status != http.StatusTooManyRequests || told.Code != lock.ErrTooManyWaiters || !strings.Contains(told.Detail, of) {
		e.t.Errorf("one too many is told %v, want that there are too many: %s", got, of)
	}
}

// wait returns the request of somebody who would wait for the lock a moment.
func (c *crowd) wait(name, key string) string {
	return c.request(http.MethodPost, "/v1/locks/"+name+"/acquire", key,
		fmt.Sprintf(`{"lease_id": "%s", "holder": "one more", "wait_ms": 1}`, uuid.New()))
}

// fill has all waiters wait, and one more of each kind be refused.
func (c *crowd) fill() {
	c.t.Helper()
	c.come(0, waitersEach)
	c.isTooMuch(c.wait(c.lock(0), "late"), "wait for this lock")
	c.isTooMuch(c.wait(c.lock(1), waiterKey(0)), "API key")
	c.makeRoom()
	c.come(waitersEach, floodWaiters)
	c.isTooMuch(c.wait(c.lock(1), "late"), "The limit on waiting calls is reached")
}

// makeRoom has a waiter hang up, and another with the same key come in its place.
func (c *crowd) makeRoom() {
	c.t.Helper()
	first := c.leavers[0]
	first.left.Store(true)
	c.must(first.hangUp())
	c.leavers = c.leavers[1:]
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	c.must(until(ctx, func() error {
		got, err := c.once(c.wait(c.lock(0), waiterKey(0)))
		if err == nil && got.status != http.StatusConflict {
			err = fmt.Errorf("there was room, and one more is told %v", got)
		}
		return err
	}))
	c.must(c.waitAlone(c.waiter(0), false))
	c.waitingAre(waitersEach)
}

// mayFollow checks that there is room for one more stream of the key.
func (r *readers) mayFollow(key string) {
	r.t.Helper()
	c, err := r.caller()
	r.must(err)
	defer func() { _ = c.Close() }() // it is of no further use
	r.must(c.say(r.request(http.MethodGet, r.news(), key, "")))
	got, err := http.ReadResponse(c.in, nil)
	r.must(err)
	if got.StatusCode != http.StatusOK {
		r.t.Errorf("streams were cut off, and one more is answered %s", got.Status)
	}
}
