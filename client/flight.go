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

// A ticket is for a call that may go with others.
type ticket struct {
	item   lock.Command
	flight atomic.Pointer[flight] // nil until it has boarded one
}

// leave returns the error of a call whose caller has left.
func (t *ticket) leave(a *batch.Abandoned) error {
	if f := t.flight.Swap(new(flight)); f != nil {
		f.leave()
	}
	if !a.Started {
		return unsent(a.Cause)
	}
	return lostOnTheWay(a.Cause)
}

// A flight is a request with many calls. It goes on until it is answered, or all
// callers have left.
type flight struct {
	ctx    context.Context
	cancel context.CancelFunc
	aboard atomic.Int32 // callers, and whoever sees to the boarding

	departing sync.Once
	calls     []*groupedCall
	bundle    *bundle
	size      int64 // of the bundle's text
}

func newFlight(calls int) *flight {
	f := &flight{bundle: newBundle(calls), calls: make([]*groupedCall, 0, calls)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.aboard.Store(1)
	return f
}

// board takes calls aboard and returns those for which there is no room.
func (f *flight) board(calls []*groupedCall) []*groupedCall {
	defer f.leave()
	n := 0
	for ; n < len(calls) && len(f.bundle.text) < fullAt; n++ {
		if f.aboard.Add(1); calls[n].Req.flight.CompareAndSwap(nil, f) {
			f.calls = append(f.calls, calls[n])
			f.bundle.add(calls[n].Req.item)
		} else {
			f.leave()
		}
	}
	f.size = int64(len(f.bundle.close()))
	return calls[n:]
}

// leave is called for each that was aboard. The last one ends the flight.
func (f *flight) leave() {
	if f.aboard.Add(-1) == 0 {
		f.cancel()
	}
}

// depart returns what is sent. It is called when there is a connection, and the calls
// of those who have left by then stay behind.
func (f *flight) depart() *bundle {
	f.departing.Do(func() {
		boarded := len(f.calls)
		f.calls = slices.DeleteFunc(f.calls, func(c *groupedCall) bool { return !c.Begin() })
		if len(f.calls) == boarded {
			return
		}
		f.bundle = newBundle(boarded)
		for _, c := range f.calls {
			f.bundle.add(c.Req.item)
		}
		blank := int(f.size) - len(f.bundle.close()) // the length has been announced
		f.bundle.text = append(f.bundle.text, bytes.Repeat([]byte(" "), blank)...)
	})
	return f.bundle
}

// fly sends the flight.
func (c *Client) fly(f *flight) (answer[[]lock.Result], error) {
	return c.post(f.ctx, &luggage{flight: f}, func() []lock.Command { return f.depart().items }, f.announce)
}

// announce tells net/http what it would know by itself of a body that is not made as it
// is sent.
func (f *flight) announce(_ context.Context, r *http.Request) error {
	r.ContentLength = f.size
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&luggage{flight: f}), nil }
	return nil
}

// luggage is the body of a flight's request. The flight departs when it is read.
type luggage struct {
	flight *flight
	text   io.Reader
}

// Read reads the body.
func (l *luggage) Read(p []byte) (int, error) {
	if l.text == nil {
		l.text = bytes.NewReader(l.flight.depart().text)
	}
	return l.text.Read(p)
}
