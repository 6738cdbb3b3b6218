package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/paddock-lock/paddock/internal/reach"
	"github.com/paddock-lock/paddock/lock"
)

const (
	answerLost  = "The answer was lost. "
	nothingDone = "Nothing was changed. Try again."
	maybeDone   = "The call may or may not have taken effect. " +
		"Send the same call again to find out; do not treat the lease as lost."
)

// unsent returns the error of a call that was not sent.
func unsent(err error) error {
	why := cmp.Or(reach.Explain(err), err.Error())
	if stale := (staleTLSError{}); errors.As(err, &stale) && !strings.Contains(why, stale.Error()) {
		why += "; " + stale.Error()
	}
	return &lock.Error{Code: lock.ErrUnavailable, Cause: err,
		Detail: fmt.Sprintf("The request was not sent: %s. %s", why, nothingDone)}
}

// canceledAfterSend returns the error of a change whose caller stopped waiting for the answer.
func canceledAfterSend(err error) error {
	return &lock.Error{Code: lock.ErrUnknownOutcome, Cause: err, Detail: answerLost + maybeDone}
}

// lost returns the error of a call without a complete answer. The text of err goes only into
// the Cause: net/http quotes the peer, and the peer may echo the request's lease_id.
func lost(changes bool, trace *connTrace, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if unread := (keyError{}); errors.As(err, &unread) {
		return unsent(unread)
	}
	what := answerLost
	if why := reach.Explain(err); why != "" {
		what = strings.ToUpper(why[:1]) + why[1:] + ". "
	}
	if cause := (silentError{}); errors.As(err, &cause) {
		what = fmt.Sprintf("It gave %v. ", cause)
	}
	switch {
	case trace.unsent(), reach.IsTLSAlert(err):
		return unsent(err)
	case changes:
		return &lock.Error{Code: lock.ErrUnknownOutcome, Cause: err, Detail: what + maybeDone}
	}
	return &lock.Error{Code: lock.ErrUnavailable, Cause: err, Detail: what + nothingDone}
}

// silent returns the cause with which the context of an attempt has ended, if that is why it failed, else err.
func silent(ctx context.Context, err error) error {
	if cause := (silentError{}); errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	return err
}

// notPaddock returns the error of a call that was not answered by Paddock, but by a proxy or
// another server. It does not repeat the body, which may echo the request.
func notPaddock(changes bool, res *http.Response, text []byte, err error) error {
	e := &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter(res), Cause: err}
	if plain := res.Request == nil || res.Request.URL.Scheme == "http"; plain && reach.WantsTLS(res.StatusCode, text) {
		e.Detail = reach.BeginWithHTTPS + ". " + nothingDone
		return e
	}
	what := fmt.Sprintf("The answer, HTTP %d with content type %q, is not from Paddock: "+
		"a proxy sent it, or the base URL is wrong. ", res.StatusCode, mediaType(res))
	if res.StatusCode/100 == 3 {
		what += "Redirects are not followed: use the final URL as base URL. "
	}
	if changes && !refusedByProxy[res.StatusCode] {
		e.Code, e.Detail = lock.ErrUnknownOutcome, what+maybeDone
	} else {
		e.Detail = what + nothingDone
	}
	return e
}

// refusedByProxy are the statuses with which a proxy refuses a request before forwarding it.
// Any other status, a redirect to an error page included, may come from a proxy that forwarded
// the request and then timed out.
var refusedByProxy = map[int]bool{
	http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusNotFound: true,
	http.StatusMethodNotAllowed: true, http.StatusRequestEntityTooLarge: true,
	http.StatusUnsupportedMediaType: true, http.StatusTooManyRequests: true,
	http.StatusRequestHeaderFieldsTooLarge: true,
}

// A connTrace records whether a request got a connection.
type connTrace struct {
	requested atomic.Bool // net/http asked for a connection
	connected atomic.Bool // and got one
}

// traced returns a context that fills in the connTrace.
func traced(ctx context.Context) (context.Context, *connTrace) {
	t := new(connTrace)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.requested.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.connected.Store(true) },
	}), t
}

// unsent reports whether it is certain that nothing of the request was sent: net/http asked
// for a connection and never got one. A Transport without httptrace support never reports that.
func (t *connTrace) unsent() bool { return t.requested.Load() && !t.connected.Load() }
