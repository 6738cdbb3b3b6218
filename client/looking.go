package client

import (
	"context"
	"io"
	"net/http"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

// Lock returns a lock. One that was never used is free.
func (c *Client) Lock(ctx context.Context, name string) (lock.Lock, error) {
	if err := lock.CheckName(name); err != nil {
		return lock.Lock{}, err
	}
	got, err := call[openapi.Lock]{
		limit: maxMany, success: []int{http.StatusOK}, answers: isLock(name),
		send: func(ctx context.Context, _ io.Reader) (*http.Response, error) { return c.api.GetLock(ctx, name, nil) },
	}.do(ctx)
	if err != nil {
		return lock.Lock{}, err
	}
	return lockFrom(got.value), nil
}

// Locks returns a page of the locks known, in the order of their names. A page of
// more than 16 MiB, of locks that very many share, is cut off with
// lock.ErrUnavailable; ask for fewer at a time.
func (c *Client) Locks(ctx context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	params := &openapi.ListLocksParams{
		Prefix: ifGiven(q.Prefix), State: ifGiven(openapi.State(q.State)), Holder: ifGiven(q.Holder),
		Limit: ifGiven(q.Limit), Cursor: ifGiven(q.Cursor),
	}
	got, err := call[openapi.LockPage]{
		limit: maxMany, success: []int{http.StatusOK},
		answers: func(p openapi.LockPage) bool { return p.Locks != nil },
		send:    func(ctx context.Context, _ io.Reader) (*http.Response, error) { return c.api.ListLocks(ctx, params) },
	}.do(ctx)
	if err != nil {
		return lock.Page[lock.Lock]{}, err
	}
	return lock.Page[lock.Lock]{Items: each(got.value.Locks, lockFrom), Next: given(got.value.NextCursor)}, nil
}

// Events returns a page of what happened, oldest first. It waits, if it is to,
// while there is nothing to tell. An event's Ref does not travel and is zero.
func (c *Client) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	params := &openapi.ListEventsParams{
		Lock: ifGiven(q.Name), Prefix: ifGiven(q.Prefix), Limit: ifGiven(q.Limit), Cursor: ifGiven(q.Cursor),
		WaitMs: toMs(q.Wait),
	}
	got, err := call[openapi.EventPage]{
		limit: maxMany, success: []int{http.StatusOK},
		answers: func(p openapi.EventPage) bool { return p.Events != nil },
		send:    func(ctx context.Context, _ io.Reader) (*http.Response, error) { return c.api.ListEvents(ctx, params) },
	}.do(ctx)
	if err != nil {
		return lock.Page[lock.Event]{}, err
	}
	return lock.Page[lock.Event]{
		Items: each(got.value.Events, eventFrom), Next: got.value.NextCursor, Gap: given(got.value.Gap),
	}, nil
}

// VerifyToken says how a token stands as of an instant.
func (c *Client) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	if err := lock.CheckName(v.Name); err != nil {
		return lock.Verification{}, err
	}
	got, err := call[openapi.TokenVerification]{
		body:  openapi.VerifyRequest{Name: v.Name, FencingToken: int64(v.Token), Slot: v.Slot},
		limit: maxAnswer, success: []int{http.StatusOK},
		answers: func(d openapi.TokenVerification) bool {
			return d.Name == v.Name && d.FencingToken == int64(v.Token) && d.Status != ""
		},
		send: func(ctx context.Context, body io.Reader) (*http.Response, error) {
			return c.api.VerifyTokenWithBody(ctx, contentJSON, body)
		},
	}.do(ctx)
	if err != nil {
		return lock.Verification{}, err
	}
	return verdictFrom(got.value), nil
}
