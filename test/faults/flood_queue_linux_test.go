package faults_test

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/paddock-lock/paddock/lock"
)

// waitHTTP1 has a waiter wait on a connection of its own.
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

// runWaiter waits, and gives the lock back once it was granted.
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

// released is whether the lock was, or the call is to be sent again.
func (c *waiterGroup) released(w *waiter, got answer) (bool, error) {
	told, err := got.fields()
	switch {
	case err != nil:
		return false, err
	case isRetryable(told.Code):
		return false, nil
	case len(got.text) > 0:
		return false, fmt.Errorf("%s releases %s and is told %v", w.holder, w.lock, got)
	}
	c.served.Add(1)
	return true, nil
}

// isRetryable is whether the code means the same call again.
func isRetryable(code lock.Code) bool {
	return code == lock.ErrHeld || code == lock.ErrUnavailable || code == lock.ErrUnknownOutcome
}

// granted is whether the lock was, or the call is to be sent again.
func (c *waiterGroup) granted(w *waiter, got answer) (bool, error) {
	told, err := got.fields()
	switch {
	case err != nil:
		return false, err
	case isRetryable(told.Code):
		c.again.Add(1)
		return false, nil
	case told.Token == 0:
		return false, fmt.Errorf("%s waits for %s and is told %v", w.holder, w.lock, got)
	}
	return true, nil
}

// A waiterCall is a call of a waiter that has a stream of HTTP/2.
type waiterCall struct {
	*waiter
	releases bool // or acquires
}

// waitHTTP2 has waiters wait on one connection.
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
			c.fail(fmt.Errorf("a connection with waiters has ended: %w", err))
		}
	}()
	return nil
}

// runWaiters is stand for all those who have a stream, and goes on until the
// connection ends.
func (c *waiterGroup) runWaiters(conn *http2Conn, calls map[uint32]waiterCall) error {
	return conn.each(func(stream uint32, body []byte, whole bool) error {
		call := calls[stream]
		delete(calls, stream)
		got := answer{text: body}
		if call.waiter == nil || !whole {
			return fmt.Errorf("stream %d is told %v, whole: %t", stream, got, whole)
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
