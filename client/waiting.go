package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

// leaveWithin is how long an Acquire that is over may take to give its place up.
const leaveWithin = 3 * time.Second

// Watch returns a lock as soon as it is another Version than the one seen, or as
// it is when the Wait is over. It asks a second time for the latter, so that what
// it returns is as of then.
func (c *Client) Watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	if err := lock.CheckName(w.Name); err != nil {
		return lock.Lock{}, err
	}
	params, success := &openapi.GetLockParams{WaitMs: toMs(w.Wait)}, []int{http.StatusOK}
	if isVersion(w.Seen) {
		params.IfNoneMatch, success = new(`W/"`+w.Seen+`"`), append(success, http.StatusNotModified)
	}
	got, err := call[openapi.Lock]{
		limit: maxMany, success: success, answers: isLock(w.Name),
		send: func(ctx context.Context, _ io.Reader) (*http.Response, error) {
			return c.api.GetLock(ctx, w.Name, params)
		},
	}.do(ctx)
	switch {
	case err != nil:
		return lock.Lock{}, err
	case got.status == http.StatusNotModified:
		return c.Lock(ctx, w.Name)
	}
	return lockFrom(got.value), nil
}

// isVersion returns whether a lock's version can be so, and an entity tag have it.
// Of what cannot, every lock differs, as it does from nothing seen.
func isVersion(seen string) bool {
	for i := range len(seen) {
		if c := seen[i]; c <= ' ' || c > '~' || c == '"' || c == ',' {
			return false
		}
	}
	return seen != "" && len(seen) <= 200
}

// Queue returns who waits for a lock, and for what. An answer of more than 16 MiB
// is cut off with lock.ErrUnavailable.
func (c *Client) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	if err := lock.CheckName(name); err != nil {
		return lock.QueueInfo{}, err
	}
	got, err := call[openapi.Queue]{
		limit: maxMany, success: []int{http.StatusOK}, answers: isQueue(name),
		send: func(ctx context.Context, _ io.Reader) (*http.Response, error) { return c.api.GetQueue(ctx, name) },
	}.do(ctx)
	if err != nil {
		return lock.QueueInfo{}, err
	}
	return queueFrom(got.value), nil
}

// overtaken are the pauses before a release is sent again that found nothing: on another
// connection it may have overtaken the acquire that it is to undo.
var overtaken = [...]time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond}

// giveBack gives up what a has or waits for, or finds that there is nothing, again and again.
func (c *Client) giveBack(ctx context.Context, a lock.Acquire) error {
	r := lock.Release{Name: a.Name, LeaseID: a.LeaseID}
	err := c.Release(ctx, r)
	for _, pause := range overtaken {
		if !errors.Is(err, lock.ErrLeaseLost) {
			break
		}
		select {
		case <-time.After(pause):
			err = c.Release(ctx, r)
		case <-ctx.Done():
		}
	}
	return err
}

// giveUp gives up what a has or waits for, since nobody would use it: its answer
// is lost for good. It returns err in other words.
func (c *Client) giveUp(ctx context.Context, a lock.Acquire, err error) error {
	e := &lock.Error{Code: lock.ErrUnknownOutcome, Cause: errors.Join(context.Cause(ctx), err),
		Detail: "The context ended while the call waited. Its place in the queue was given up, and so was a lease that came meanwhile; " +
			"to wait again, choose a new lease_id."}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	left := c.giveBack(ctx, a)
	if left != nil && !errors.Is(left, lock.ErrLeaseLost) {
		e.Cause = errors.Join(e.Cause, left)
		e.Detail = "The context ended while the call waited, and nobody answers as to whether its place was given up, or a lease that " +
			"came meanwhile. Such a lease ends with its TTL; release the lease_id to be sure, and choose a new one to wait again."
	}
	return e
}
