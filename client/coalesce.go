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
	// maxInFlight is how many requests may be under way before calls gather.
	maxInFlight = 2
	// maxYields is how often those who have just been answered are let go first, as long as
	// that brings more calls.
	maxYields = 8
	// maxLinger is for how long calls gather while nothing is answered. After that
	// they go whatever is under way: it may be on a connection that swallows everything.
	maxLinger = 100 * time.Millisecond
	// maxBodySize is the length of a body, in bytes, at which no more is added to it. The
	// service takes 1 MiB, and many a proxy no more than that.
	maxBodySize = 1<<20 - 1<<16
	// batchUnsupportedFor is for how long calls go one by one after one answer of somebody who
	// takes no batch: a replica of an older version, which others may replace.
	batchUnsupportedFor = time.Minute
)

type (
	callGroup   = batch.Group[*pendingCall, lock.Grant]
	groupedCall = batch.Call[*pendingCall, lock.Grant]
)

// A coalescer has calls that come while others are under way share requests.
type coalescer struct {
	client           *Client
	group            *callGroup
	start            time.Time
	unsupportedUntil atomic.Int64 // since start, in ns: until then calls go one by one
}

func newCoalescer(c *Client) *coalescer {
	o := &coalescer{client: c, start: time.Now()}
	o.group = batch.New(lock.MaxBatch, math.MaxInt, o.send)
	o.group.MaxInFlight, o.group.StallTimeout, o.group.MaxYields = maxInFlight, maxLinger, maxYields
	o.group.RunInline = func(ctx context.Context, t *pendingCall) (lock.Grant, error) { return c.sendSingle(ctx, t.item) }
	return o
}

// coalesce has a call go with others, or alone where there are none.
func (c *Client) coalesce(ctx context.Context, item lock.Command) (lock.Grant, error) {
	if c.shared == nil || c.shared.batchUnsupported() || !isSmall(item) {
		return c.sendSingle(ctx, item)
	}
	t := &pendingCall{item: item}
	grant, err := c.shared.group.TryInline(ctx, t)
	if a := (*batch.CanceledError)(nil); err != nil && errors.As(err, &a) {
		return grant, t.cancel(a)
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

// isSmall is whether the service would read the item. What is larger is refused
// alone.
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

// send sends what has gathered, in as many requests as it takes.
func (o *coalescer) send(calls []*groupedCall) {
	for len(calls) > 0 {
		f := newSharedRequest(len(calls))
		if calls = f.add(calls); len(f.calls) > 0 {
			got, err := o.client.sendShared(f)
			o.deliver(f, got, err)
		}
	}
}

// deliver tells each call of a flight what came of it.
func (o *coalescer) deliver(f *sharedRequest, got answer[[]lock.Result], err error) {
	f.freeze()
	f.cancel()
	for i, c := range f.calls {
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

// rejectsBatch is whether who answered a batch with that status, and not as Paddock
// does, has done nothing of it, or something that is no harm to do again: there is no
// such route, a body is too large for a proxy, or one item made the whole illegible.
func rejectsBatch(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return true
	}
	return status/100 == 2
}

// cloneError returns a copy of an error, for one of many callers.
func cloneError(err error) error {
	if e := (*lock.Error)(nil); errors.As(err, &e) {
		own := *e
		return &own
	}
	return err
}
