package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

// A pendingCall is for a call that may go with others.
type pendingCall struct {
	item    lock.Command
	request atomic.Pointer[sharedRequest] // nil until it has boarded one
}

// cancel returns the error of a call whose caller has left.
func (t *pendingCall) cancel(a *batch.CanceledError) error {
	if f := t.request.Swap(new(sharedRequest)); f != nil {
		f.release()
	}
	if !a.Started {
		return unsent(a.Cause)
	}
	return lostOnTheWay(a.Cause)
}

// A sharedRequest is a request with many calls. It goes on until it is answered, or all
// callers have left.
type sharedRequest struct {
	ctx    context.Context
	cancel context.CancelFunc
	refs   atomic.Int32 // callers, and whoever sees to the boarding

	freezing sync.Once
	calls    []*groupedCall
	batch    *bundle
	size     int64 // of the bundle's text
}

func newSharedRequest(calls int) *sharedRequest {
	f := &sharedRequest{batch: newBundle(calls), calls: make([]*groupedCall, 0, calls)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.refs.Store(1)
	return f
}

// add takes calls aboard and returns those for which there is no room.
func (f *sharedRequest) add(calls []*groupedCall) []*groupedCall {
	defer f.release()
	n := 0
	for ; n < len(calls) && len(f.batch.text) < maxBodySize; n++ {
		if f.refs.Add(1); calls[n].Req.request.CompareAndSwap(nil, f) {
			f.calls = append(f.calls, calls[n])
			f.batch.add(calls[n].Req.item)
		} else {
			f.release()
		}
	}
	f.size = int64(len(f.batch.close()))
	return calls[n:]
}

// release is called for each that was aboard. The last one ends the flight.
func (f *sharedRequest) release() {
	if f.refs.Add(-1) == 0 {
		f.cancel()
	}
}

// freeze returns what is sent. It is called when there is a connection, and the calls
// of those who have left by then stay behind.
func (f *sharedRequest) freeze() *bundle {
	f.freezing.Do(func() {
		boarded := len(f.calls)
		f.calls = slices.DeleteFunc(f.calls, func(c *groupedCall) bool { return !c.Begin() })
		if len(f.calls) == boarded {
			return
		}
		f.batch = newBundle(boarded)
		for _, c := range f.calls {
			f.batch.add(c.Req.item)
		}
		blank := int(f.size) - len(f.batch.close()) // the length has been announced
		f.batch.text = append(f.batch.text, bytes.Repeat([]byte(" "), blank)...)
	})
	return f.batch
}

// sendShared sends the flight.
func (c *Client) sendShared(f *sharedRequest) (answer[[]lock.Result], error) {
	return c.post(f.ctx, &lazyBody{request: f}, func() []lock.Command { return f.freeze().items }, f.setBody)
}

// setBody tells net/http what it would know by itself of a body that is not made as it
// is sent.
func (f *sharedRequest) setBody(_ context.Context, r *http.Request) error {
	r.ContentLength = f.size
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&lazyBody{request: f}), nil }
	return nil
}

// lazyBody is the body of a flight's request. The flight departs when it is read.
type lazyBody struct {
	request *sharedRequest
	text    io.Reader
}

// Read reads the body.
func (l *lazyBody) Read(p []byte) (int, error) {
	if l.text == nil {
		l.text = bytes.NewReader(l.request.freeze().text)
	}
	return l.text.Read(p)
}
