package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"github.com/paddock-lock/paddock/lock"
)

const (
	onTheWay    = "The answer was lost on the way. "
	nothingDone = "Nothing was changed; try again."
	maybeDone   = "It may or may not have been done; send the same call again to find out, and do not take the lease for lost."
)

// unsent returns the error of a call of which nothing was sent.
func unsent(err error) error {
	return &lock.Error{Code: lock.ErrUnavailable, Cause: err,
		Detail: fmt.Sprintf("The request was not sent: %v. %s", err, nothingDone)}
}

// lostOnTheWay returns the error of a change whose answer did not come in time.
func lostOnTheWay(err error) error {
	return &lock.Error{Code: lock.ErrUnknownOutcome, Cause: err, Detail: onTheWay + maybeDone}
}

// lost returns the error of a call whose answer did not come, or not whole. What
// err says is left to its Cause: net/http quotes peers, and a peer may echo.
func lost(changes bool, w *connTrace, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	what := onTheWay
	if alert := (*net.OpError)(nil); errors.As(err, &alert) && alert.Op == "remote error" {
		what = fmt.Sprintf("The service ended the connection: %v. If it asks for a certificate, show one that it trusts. ", alert.Err)
	}
	switch {
	case w.unsent():
		return unsent(err)
	case changes:
		return &lock.Error{Code: lock.ErrUnknownOutcome, Cause: err, Detail: what + maybeDone}
	}
	return &lock.Error{Code: lock.ErrUnavailable, Cause: err, Detail: what + nothingDone}
}

// notPaddock returns the error of a call that something else than Paddock answered:
// a proxy on the way, or another server. Nothing of its text is repeated, since
// it may echo the request.
func notPaddock(changes bool, res *http.Response, err error) error {
	e := &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter(res), Cause: err}
	what := fmt.Sprintf("The answer, HTTP %d with content type %q, is none of Paddock's: "+
		"a proxy on the way gave it, or the base URL is that of another server. ", res.StatusCode, mediaType(res))
	if res.StatusCode/100 == 3 {
		what += "Redirects are not followed: give the final address as base URL. "
	}
	if changes && !refusedByProxy[res.StatusCode] {
		e.Code, e.Detail = lock.ErrUnknownOutcome, what+maybeDone
	} else {
		e.Detail = what + nothingDone
	}
	return e
}

// refusedByProxy are the statuses with which something in front of the service
// turns a request down before it hands it on. Any other may come from one that
// did hand it on and then lost patience, a redirect to an error page included.
var refusedByProxy = map[int]bool{
	http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusNotFound: true,
	http.StatusMethodNotAllowed: true, http.StatusRequestEntityTooLarge: true,
	http.StatusUnsupportedMediaType: true, http.StatusTooManyRequests: true,
	http.StatusRequestHeaderFieldsTooLarge: true,
}

// A connTrace knows how far a request can have come.
type connTrace struct {
	requested atomic.Bool // a connection was asked for
	connected atomic.Bool // and there was one
}

// traced returns a context under which a request's way is followed.
func traced(ctx context.Context) (context.Context, *connTrace) {
	w := new(connTrace)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { w.requested.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { w.connected.Store(true) },
	}), w
}

// unsent is whether it is certain that nothing of the request was sent: a
// connection was asked for and there never was one. Of a transport that does not
// report that, nothing is certain.
func (w *connTrace) unsent() bool { return w.requested.Load() && !w.connected.Load() }
