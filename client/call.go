package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	contentJSON    = "application/json"
	contentProblem = "application/problem+json"
)

// The greatest sizes of an answer, in bytes: of one thing, and of many, which may
// be a thousand with 4 KiB of metadata each: a page, or a lock with its leases.
const (
	maxAnswer = 1 << 20
	maxMany   = 16 << 20
)

// A call is one request and what its answer may be. T is what the answer's body
// says; of an answer without one it is not looked at.
type call[T any] struct {
	// changes is whether the request may change something: then a lost answer
	// leaves open what was done.
	changes bool
	body    any // sent as JSON; nil for none; an io.Reader as it is
	send    func(ctx context.Context, body io.Reader) (*http.Response, error)
	success []int        // the statuses of success
	limit   int64        // the greatest size of the answer, in bytes
	answers func(T) bool // whether this is the answer to that request
	// parse takes the answer to what was sent at that instant in, in place of answers; nil for the usual way.
	parse func(text []byte, sent time.Time) (T, error)
}

// An answer is what a call brought back.
type answer[T any] struct {
	sent   time.Time // before anything of the request was sent
	status int       // zero if no whole answer came
	value  T
}

// do sends the request once and waits for its answer. Errors are *lock.Error.
func (c call[T]) do(ctx context.Context) (answer[T], error) {
	body, err := encode(c.body)
	if err != nil {
		return answer[T]{}, err
	}
	if ctx.Err() != nil {
		return answer[T]{}, unsent(context.Cause(ctx))
	}
	ctx, way := traced(ctx)
	sent := time.Now()
	res, err := c.send(ctx, body)
	if err != nil {
		return answer[T]{}, lost(c.changes, way, err)
	}
	text, err := read(res, c.limit)
	if err != nil {
		return answer[T]{}, lost(c.changes, way, err)
	}
	if !slices.Contains(c.success, res.StatusCode) {
		return answer[T]{status: res.StatusCode}, refusal(c.changes, res, text)
	}
	value, err := c.decode(res, text, sent)
	if err != nil {
		return answer[T]{status: res.StatusCode}, notPaddock(c.changes, res, err)
	}
	return answer[T]{sent: sent, status: res.StatusCode, value: value}, nil
}

func (c call[T]) decode(res *http.Response, text []byte, sent time.Time) (T, error) {
	var value T
	if res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		return value, nil
	}
	if mediaType(res) != contentJSON {
		return value, errors.New("the answer is not JSON")
	}
	if c.parse != nil {
		return c.parse(text, sent)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return value, err
	}
	if !c.answers(value) {
		return value, errors.New("the answer is not one to this request")
	}
	return value, nil
}

// encode returns v as JSON in which < > & are themselves: written as \u003c they
// would make metadata longer than its sender counted.
func encode(v any) (io.Reader, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case io.Reader:
		return v, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, &lock.Error{Code: lock.ErrInvalid, Detail: "The request cannot be written as JSON.", Cause: err}
	}
	return bytes.NewReader(b.Bytes()), nil
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

// mediaType returns the answer's content type without its parameters, empty if
// it has none that can be read.
func mediaType(res *http.Response) string {
	t, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}
