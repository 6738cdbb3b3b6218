package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

// A pendingCall is a call that may be sent in a sharedRequest.
type pendingCall struct {
	item     lock.Command
	deadline time.Time                     // of its caller; zero: none
	request  atomic.Pointer[sharedRequest] // nil until the call is added to a request or canceled
}

// cancel takes the call out of its request, if it has one, and returns the caller's error.
func (p *pendingCall) cancel(canceled *batch.CanceledError) error {
	if s := p.request.Swap(new(sharedRequest)); s != nil { // the new one keeps the call from being added later
		s.release()
	}
	if !canceled.Started {
		return unsent(canceled.Cause)
	}
	return canceledAfterSend(canceled.Cause)
}

// A sharedRequest is one batch request for several calls. It is aborted when all of them are
// canceled.
type sharedRequest struct {
	ctx    context.Context
	cancel context.CancelFunc
	refs   atomic.Int32 // one for each call that is not canceled, and one during add

	freezing sync.Once
	calls    []*queuedCall
	batch    *batchBody
	size     int64 // of the body, in bytes
}

func newSharedRequest(calls int) *sharedRequest {
	s := &sharedRequest{batch: newBatchBody(calls), calls: make([]*queuedCall, 0, calls)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.refs.Store(1)
	return s
}

// add adds calls up to maxBodySize and returns the rest.
func (s *sharedRequest) add(calls []*queuedCall) []*queuedCall {
	defer s.release()
	n := 0
	for ; n < len(calls) && len(s.batch.text) < maxBodySize; n++ {
		if s.refs.Add(1); calls[n].Req.request.CompareAndSwap(nil, s) {
			s.calls = append(s.calls, calls[n])
			s.batch.add(calls[n].Req.item)
		} else {
			s.release()
		}
	}
	s.size = int64(len(s.batch.close()))
	return calls[n:]
}

// release drops a reference. The last one aborts the request.
func (s *sharedRequest) release() {
	if s.refs.Add(-1) == 0 {
		s.cancel()
	}
}

// freeze drops the canceled calls, begins the others and returns the batch to send. It is
// first called when net/http has a connection and reads the body.
func (s *sharedRequest) freeze() *batchBody {
	s.freezing.Do(func() {
		added := len(s.calls)
		s.calls = slices.DeleteFunc(s.calls, func(c *queuedCall) bool { return !c.Begin() })
		if len(s.calls) == added {
			return
		}
		s.batch = newBatchBody(added)
		for _, c := range s.calls {
			s.batch.add(c.Req.item)
		}
		padding := int(s.size) - len(s.batch.close()) // the Content-Length has been sent already
		s.batch.text = append(s.batch.text, bytes.Repeat([]byte(" "), padding)...)
	})
	return s.batch
}

// sendShared sends the request and returns the results of its calls.
func (c *Client) sendShared(s *sharedRequest) (answer[[]paddock.Result], error) {
	return c.post(s.ctx, func() io.Reader { return &lazyBody{request: s} }, func() []lock.Command { return s.freeze().items },
		s.setBody, s.left())
}

// left returns the time until the first caller gives up, which is shared out among the addresses.
func (s *sharedRequest) left() time.Duration {
	left := patience
	for _, c := range s.calls {
		if until := c.Req.deadline; !until.IsZero() {
			left = min(left, max(time.Until(until), minShare))
		}
	}
	return left
}

// setBody sets what net/http cannot derive from a lazyBody: its length, and how to read it again.
func (s *sharedRequest) setBody(r *http.Request) {
	r.ContentLength = s.size
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&lazyBody{request: s}), nil }
}

// A lazyBody is the body of a sharedRequest, which is frozen at the first Read.
type lazyBody struct {
	request *sharedRequest
	text    io.Reader
}

// Read implements io.Reader.
func (l *lazyBody) Read(p []byte) (int, error) {
	if l.text == nil {
		l.text = bytes.NewReader(l.request.freeze().text)
	}
	return l.text.Read(p)
}
