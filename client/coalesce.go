package client

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxBodySize is the size of a body, in bytes, from which on no more items are added. The
	// service and many proxies accept up to 1 MiB.
	maxBodySize = 1<<20 - 1<<16
	// batchUnsupportedFor is how long calls are sent one by one after a batch was rejected by
	// a proxy, or by a replica of an older version, which may be replaced soon.
	batchUnsupportedFor = time.Minute
)

// A coalescer combines calls that arrive while requests are in flight into batches.
type coalescer struct {
	client           *Client
	queue            *callQueue
	start            time.Time
	unsupportedUntil atomic.Int64 // ns since start; calls are sent one by one until then
}

func newCoalescer(c *Client) *coalescer {
	o := &coalescer{client: c, start: time.Now()}
	o.queue = newCallQueue(o.send)
	return o
}

// coalesce sends a call in a batch, or in a request of its own if there is no other call.
func (c *Client) coalesce(ctx context.Context, item lock.Command) (lock.Grant, error) {
	if c.shared == nil || c.shared.batchUnsupported() || !isSmall(item) {
		return c.sendSingle(ctx, item)
	}
	p := &pendingCall{item: item}
	p.deadline, _ = ctx.Deadline()
	got, err := c.shared.queue.do(ctx, p)
	if got.alone {
		defer c.shared.queue.release(got.slot)
		return c.sendSingle(ctx, item)
	}
	if canceled := (*batch.CanceledError)(nil); err != nil && errors.As(err, &canceled) {
		return lock.Grant{}, p.cancel(canceled)
	}
	return got.grant, err
}

// sendSingle sends a call in a request of its own.
func (c *Client) sendSingle(ctx context.Context, item lock.Command) (g lock.Grant, err error) {
	switch i := item.(type) {
	case lock.Acquire:
		return c.acquire(ctx, i)
	case lock.Renew:
		return c.renew(ctx, i)
	case lock.Release:
		err = c.release(ctx, i)
	}
	return g, err
}

// isSmall reports whether the item is within the service's size limits. A larger item would
// make the service reject its whole batch.
func isSmall(item lock.Command) bool {
	switch c := item.(type) {
	case lock.Acquire:
		return len(c.Metadata) <= lock.MaxMetadataSize && len(c.Holder) <= 4*lock.MaxHolderLength
	case lock.Renew:
		return len(c.Metadata) <= lock.MaxMetadataSize
	}
	return true
}

func (o *coalescer) batchUnsupported() bool {
	until := o.unsupportedUntil.Load()
	return until != 0 && time.Since(o.start) < time.Duration(until)
}

// send sends the gathered calls, in several requests if they exceed maxBodySize.
func (o *coalescer) send(calls []*queuedCall) {
	for len(calls) > 0 {
		s := newSharedRequest(len(calls))
		if calls = s.add(calls); len(s.calls) > 0 {
			got, err := o.client.sendShared(s)
			o.deliver(s, got, err)
		}
	}
}

// deliver gives each call of a request its result.
func (o *coalescer) deliver(s *sharedRequest, got answer[[]paddock.Result], err error) {
	s.freeze()
	s.cancel()
	for i, c := range s.calls {
		switch {
		case err == nil:
			c.Answer(reply{grant: got.value[i].Grant}, got.value[i].Err)
		case rejectsBatch(got.status):
			c.Answer(reply{alone: true}, nil)
		default:
			c.Answer(reply{}, cloneError(err))
		}
	}
	if err != nil && rejectsBatch(got.status) && got.status != http.StatusBadRequest {
		o.unsupportedUntil.Store(int64(time.Since(o.start) + batchUnsupportedFor))
	}
}

// rejectsBatch reports whether the calls of a failed batch can be sent again one by one. The
// status shows that the batch had no effect, or only effects that are safe to repeat: the
// route does not exist, the body is too large for a proxy, or an item could not be parsed.
func rejectsBatch(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return true
	}
	return status/100 == 2
}

// cloneError returns a copy of an error for one of several callers.
func cloneError(err error) error {
	if e := (*lock.Error)(nil); errors.As(err, &e) {
		own := *e
		return &own
	}
	return err
}
