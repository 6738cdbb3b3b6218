package client

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// A way knows how far a request can have come.
type way struct {
	asked atomic.Bool // a connection was asked for
	got   atomic.Bool // and there was one
}

// traced returns a context under which a request's way is followed.
func traced(ctx context.Context) (context.Context, *way) {
	w := new(way)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { w.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { w.got.Store(true) },
	}), w
}

// unsent is whether it is certain that nothing of the request was sent: a
// connection was asked for and there never was one. Of a transport that does not
// report that, nothing is certain.
func (w *way) unsent() bool { return w.asked.Load() && !w.got.Load() }
