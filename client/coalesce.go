package client

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxInFlight is the number of requests in flight from which on calls gather.
	maxInFlight = 2
	// maxYields bounds how often the processor is yielded before a batch is sent, so that
	// callers that were just answered can add their next calls.
	maxYields = 8
	// maxLinger is how long calls gather while no request is answered. Then they are sent
	// regardless, because the requests in flight may be on a dead connection.
	maxLinger = 100 * time.Millisecond
	// maxBodySize is the size of a body, in bytes, from which on no more items are added. The
	// service and many proxies accept up to 1 MiB.
	maxBodySize = 1<<20 - 1<<16
	// batchUnsupportedFor is how long calls are sent one by one after a batch was rejected by
	// a proxy, or by a replica of an older version, which may be replaced soon.
	batchUnsupportedFor = time.Minute
)

type (
	callGroup   = batch.Group[*pendingCall, lock.Grant]
	groupedCall = batch.Call[*pendingCall, lock.Grant]
)

// A coalescer combines calls that arrive while requests are in flight into batches.
type coalescer struct {
	client           *Client
	group            *callGroup
	start            time.Time
	unsupportedUntil atomic.Int64 // ns since start; calls are sent one by one until then
}

func newCoalescer(c *Client) *coalescer {
	o := &coalescer{client: c, start: time.Now()}
	o.group = batch.New(lock.MaxBatch, math.MaxInt, o.send)
	o.group.MaxInFlight, o.group.StallTimeout, o.group.MaxYields = maxInFlight, maxLinger, maxYields
	o.group.RunInline = func(ctx context.Context, p *pendingCall) (lock.Grant, error) { return c.sendSingle(ctx, p.item) }
	return o
}

// coalesce sends a call in a batch, or in a request of its own if there is no other call.
func (c *Client) coalesce(ctx context.Context, item lock.Command) (lock.Grant, error) {
	if c.shared == nil || c.shared.batchUnsupported() || !isSmall(item) {
		return c.sendSingle(ctx, item)
	}
	p := &pendingCall{item: item}
	grant, err := c.shared.group.TryInline(ctx, p)
	if canceled := (*batch.CanceledError)(nil); err != nil && errors.As(err, &canceled) {
		return grant, p.cancel(canceled)
	}
	return grant, err
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
func (o *coalescer) send(calls []*groupedCall) {
	for len(calls) > 0 {
		s := newSharedRequest(len(calls))
		if calls = s.add(calls); len(s.calls) > 0 {
			got, err := o.client.sendShared(s)
			o.deliver(s, got, err)
		}
	}
}

// deliver gives each call of a request its result.
func (o *coalescer) deliver(s *sharedRequest, got answer[[]lock.Result], err error) {
	s.freeze()
	s.cancel()
	for i, c := range s.calls {
		switch {
		case err == nil:
			c.Answer(got.value[i].Grant, got.value[i].Err)
		case rejectsBatch(got.status):
			c.HandBack()
		default:
			c.Answer(lock.Grant{}, cloneError(err))
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
