package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const (
	contentJSON    = "application/json"
	contentProblem = "application/problem+json"
)

// The greatest sizes of a response, in bytes: of one thing, and of many things, which may be a thousand with 4 KiB of
// metadata each: a page, or a lock with its leases.
const (
	maxResponse     = 1 << 20
	maxListResponse = 16 << 20
)

// A request is an HTTP request to the service.
type request struct {
	method  string // empty: GET
	path    string // under the base URL, with the query
	body    any    // nil; a func() io.Reader of JSON; an acquire, a renewal or a release; or a model
	header  [2]string
	setBody func(*http.Request) // for a body that is a func() io.Reader; may be nil
}

// A call is a request and what its response may be. T is the value of the response's body.
type call[T any] struct {
	request
	changes bool          // whether it may change something: then a lost response leaves the outcome unknown
	once    bool          // whether a repetition of a change that has taken effect would be refused
	wait    time.Duration // that the request asks for
	left    time.Duration // until its callers give up; zero: as the context says
	success []int         // the statuses of success; nil: 200
	limit   int64         // the greatest size of the response, in bytes; zero: maxResponse
	parse   parser[T]
}

// A parser returns the value of the response to a request that was sent at that instant. It fails if the text is not
// one to that request.
type parser[T any] func(text []byte, sent time.Time) (T, error)

// An answer is the result of a call.
type answer[T any] struct {
	status int // zero if no complete response came
	value  T
	sent   bool // whether a part of the request may have been sent
	// interrupted reports that the call failed while it waited, and that the rest of the wait may be asked for at once.
	interrupted bool
}

// do sends the request and waits for the response. If an address does not answer, it sends the same request to the next
// one. Errors are *lock.Error.
func (c call[T]) do(ctx context.Context, client *Client) (answer[T], error) {
	body, err := encode(c.body)
	if err != nil {
		return answer[T]{}, err
	}
	if ctx.Err() != nil {
		return answer[T]{}, unsent(context.Cause(ctx))
	}
	for round := client.addresses.round(); ; {
		sent := time.Now()
		bound := c.bound(ctx, client, round)
		out, err := c.attempt(ctx, client, round, body(), bound)
		took := time.Since(sent)
		if !moves(out.status, err) || ctx.Err() != nil && took < bound {
			return out, err
		}
		waited := c.wait > 0 && took >= minWait && ctx.Err() == nil
		wasCut := waited && took < c.wait && out.sent && out.status != http.StatusServiceUnavailable
		out.interrupted = wasCut || waited && round.several()
		if wasCut && client.waits.cut(sent, out.status) || !round.several() {
			return out, err
		}
		if !round.fail(err) || ctx.Err() != nil || out.interrupted || c.once && errors.Is(err, lock.ErrUnknownOutcome) {
			return out, round.err()
		}
	}
}

// bound returns how long an address may take to answer before it counts as silent.
func (c call[T]) bound(ctx context.Context, client *Client, r *round) time.Duration {
	if c.wait > 0 {
		return c.wait + silence
	}
	left := cmp.Or(c.left, patience)
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	if client.timeout > 0 {
		left = min(left, client.timeout)
	}
	return r.share(min(left, patience))
}

// attempt sends the request to the round's address. Unless it is the only one, or the last one of a call that does not
// wait, it must answer within the bound.
func (c call[T]) attempt(ctx context.Context, client *Client, r *round, body io.Reader, bound time.Duration) (answer[T], error) {
	if r.several() && (c.wait > 0 || !r.isLast()) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, bound, silentError{bound})
		defer cancel()
	}
	ctx, trace := traced(ctx)
	sent := time.Now()
	res, err := client.send(ctx, r.address(), c.request, body)
	if err != nil {
		return answer[T]{sent: !trace.unsent()}, lost(c.changes, trace, silent(ctx, err))
	}
	text, err := read(res, cmp.Or(c.limit, maxResponse))
	if err != nil {
		return answer[T]{sent: !trace.unsent()}, lost(c.changes, trace, silent(ctx, err))
	}
	out := answer[T]{status: res.StatusCode, sent: true}
	if !isPaddock(res) {
		return out, notPaddock(c.changes, res, text, nil)
	}
	if c.success == nil {
		c.success = []int{http.StatusOK}
	}
	if !slices.Contains(c.success, res.StatusCode) {
		return out, since(sent, refusal(c.changes, res, text))
	}
	value, err := c.decode(res, text, sent)
	if err != nil {
		return out, notPaddock(c.changes, res, text, err)
	}
	out.value = value
	return out, nil
}

// get is do for a caller that needs the value only.
func (c call[T]) get(ctx context.Context, client *Client) (T, error) {
	got, err := c.do(ctx, client)
	return got.value, err
}

func (c call[T]) decode(res *http.Response, text []byte, sent time.Time) (value T, err error) {
	if res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		return value, nil
	}
	if mediaType(res) != contentJSON {
		return value, errors.New("the answer is not JSON")
	}
	return c.parse(text, sent)
}

// isPaddock reports whether a Paddock sent the response, whatever its status.
func isPaddock(res *http.Response) bool { return res.Header.Get(wire.HeaderAPI) == wire.APIVersion }

// model returns a parser of a model of openapi.yaml, which to converts to the domain. Responses that do not match are
// not responses to the request.
func model[Model, Value any](to func(Model) Value, matches func(Model) bool) parser[Value] {
	return func(text []byte, _ time.Time) (Value, error) { return wire.Parse(text, to, matches) }
}

// send sends the request to the address, with the headers that every request has.
func (c *Client) send(ctx context.Context, to address, r request, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.method, http.MethodGet), to.base+r.path, body)
	if err != nil {
		return nil, err
	}
	if c.propagate != nil {
		c.propagate(ctx, req.Header)
	}
	req.Header.Set("User-Agent", userAgent)
	if body != nil {
		req.Header.Set("Content-Type", contentJSON)
	}
	if r.header[1] != "" {
		req.Header.Set(r.header[0], r.header[1])
	}
	if r.setBody != nil {
		r.setBody(req)
	}
	return c.exchange(to.http, req)
}

// encode returns a function that returns the body of each attempt.
func encode(body any) (func() io.Reader, error) {
	var text []byte
	switch body := body.(type) {
	case nil:
		return func() io.Reader { return nil }, nil
	case func() io.Reader:
		return body, nil
	case lock.Command:
		text = wire.AppendRequest(make([]byte, 0, 256), body)
	default:
		var err error
		if text, err = wire.Encode(body); err != nil {
			return nil, &lock.Error{Code: lock.ErrInvalid, Detail: "The request cannot be written as JSON.", Cause: err}
		}
	}
	return func() io.Reader { return bytes.NewReader(text) }, nil
}

func read(res *http.Response, limit int64) (_ []byte, err error) {
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	text := bytes.NewBuffer(make([]byte, 0, min(max(res.ContentLength, 0), limit)+bytes.MinRead))
	_, err = text.ReadFrom(io.LimitReader(res.Body, limit+1))
	if err == nil && int64(text.Len()) > limit {
		err = fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return text.Bytes(), err
}

// mediaType returns the response's content type without its parameters, empty if it has none that can be parsed.
func mediaType(res *http.Response) string {
	header := res.Header.Get("Content-Type")
	if header == contentJSON {
		return header
	}
	t, _, err := mime.ParseMediaType(header)
	if err != nil {
		return ""
	}
	return t
}

// since returns the refusal of a request that was sent at that instant. The grace that is left counts from then, since the
// answer may have been slow.
func since(sent time.Time, err error) error {
	if e := (*lock.Error)(nil); errors.As(err, &e) && e.GraceLeft > 0 {
		e.GraceLeft = max(e.GraceLeft-time.Since(sent), 0)
	}
	return err
}

// refusal returns the error of a response without success: what its problem says, if it is one of Paddock's.
func refusal(changes bool, res *http.Response, text []byte) error {
	if mediaType(res) != contentProblem {
		return notPaddock(changes, res, text, nil)
	}
	var p api.Problem
	if err := json.Unmarshal(text, &p); err != nil {
		return notPaddock(changes, res, text, err)
	}
	if p.Code == "" || res.StatusCode >= http.StatusInternalServerError && !p.Code.Valid() {
		return notPaddock(changes, res, text, errors.New("the problem has no code of Paddock's"))
	}
	e := errorOf(p, res.StatusCode)
	e.RetryAfter = cmp.Or(e.RetryAfter, retryAfter(res))
	return e
}

// itemRefusal returns the error of an item of a batch that was refused.
func itemRefusal(p api.Problem, status int) error {
	if status >= http.StatusInternalServerError && !p.Code.Valid() {
		return &lock.Error{Code: lock.ErrUnknownOutcome, RetryAfter: wire.ToError(p).RetryAfter,
			Detail: fmt.Sprintf("The answer, HTTP %d, has an unknown code. ", status) + maybeDone}
	}
	return errorOf(p, status)
}

// errorOf returns the error that a problem stands for. It always has a Detail, and a Cause to find it in the service's
// log.
func errorOf(p api.Problem, status int) *lock.Error {
	e := wire.ToError(p)
	e.Detail = cmp.Or(p.Detail, p.Title, http.StatusText(status))
	e.Cause = fmt.Errorf("HTTP %d, request_id %q", status, p.RequestID)
	return e
}

// retryAfter returns the header Retry-After where it counts seconds, else zero.
func retryAfter(res *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
