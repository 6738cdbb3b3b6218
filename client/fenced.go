package client

import (
	"context"
	"io"
	"net/http"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

// WriteFenced writes the resource, or is refused with lock.ErrStaleToken,
// lock.ErrUnknownToken or lock.ErrVersionMismatch.
func (c *Client) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	if err := lock.CheckKey(w.Key); err != nil {
		return lock.FencedValue{}, err
	}
	if !isJSON(w.Value) {
		return lock.FencedValue{}, lock.Invalid("value", "must be JSON, in UTF-8")
	}
	got, err := call[openapi.FencedValue]{
		changes: true, limit: maxAnswer, success: []int{http.StatusOK}, answers: isFenced(w.Key),
		body: openapi.FencedWrite{
			Lock: w.Lock, FencingToken: int64(w.Token), Slot: ifGiven(w.Slot), Value: &w.Value, IfVersion: w.IfVersion,
		},
		send: func(ctx context.Context, body io.Reader) (*http.Response, error) {
			return c.api.WriteFencedWithBody(ctx, w.Key, contentJSON, body)
		},
	}.do(ctx)
	if err != nil {
		return lock.FencedValue{}, err
	}
	return fencedFrom(got.value), nil
}

// ReadFenced returns the resource, lock.ErrNotFound if it was never written.
func (c *Client) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	if err := lock.CheckKey(key); err != nil {
		return lock.FencedValue{}, err
	}
	got, err := call[openapi.FencedValue]{
		limit: maxAnswer, success: []int{http.StatusOK}, answers: isFenced(key),
		send: func(ctx context.Context, _ io.Reader) (*http.Response, error) { return c.api.ReadFenced(ctx, key) },
	}.do(ctx)
	if err != nil {
		return lock.FencedValue{}, err
	}
	return fencedFrom(got.value), nil
}
