package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/internal/wire"
)

// GetLock returns a lock, or waits until it differs from what the client has.
func (a *api) GetLock(w http.ResponseWriter, r *http.Request, name wire.Name, params wire.GetLockParams) {
	a.answerLate(w, r, func() (reply, error) {
		in, err := params.Domain(name)
		if err != nil {
			return reply{}, err
		}
		ctx, done := a.waitContext(w, r, in.Wait)
		defer done()
		seen := parseIfNoneMatch(wire.ValueOf(params.IfNoneMatch))
		lock, err := a.watchUntilChanged(ctx, in, seen)
		return seen.reply(lock), err
	})
}

// GetQueue returns the waiters of a lock.
func (a *api) GetQueue(w http.ResponseWriter, r *http.Request, name wire.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		queue, err := a.locks.Queue(ctx, name)
		return ok(wire.QueueOf(queue)), err
	})
}

// ListLocks returns a page of the known locks.
func (a *api) ListLocks(w http.ResponseWriter, r *http.Request, params wire.ListLocksParams) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := params.Domain()
		if err != nil {
			return reply{}, err
		}
		page, err := a.locks.Locks(ctx, in)
		return ok(wire.LockPageOf(page)).withNext(page.Next), err
	})
}

// ListEvents returns a page of events, or waits for one. An empty page has a cursor for later, but no link to a next
// page.
func (a *api) ListEvents(w http.ResponseWriter, r *http.Request, params wire.ListEventsParams) {
	a.answerLate(w, r, func() (reply, error) {
		in, err := params.Domain()
		if err != nil {
			return reply{}, err
		}
		ctx, done := a.waitContext(w, r, in.Wait)
		defer done()
		page, err := a.locks.Events(ctx, in)
		out := ok(wire.EventPageOf(page))
		if len(page.Items) > 0 {
			out = out.withNext(page.Next)
		}
		return out, err
	})
}

// ReadFenced returns the resource of that key.
func (a *api) ReadFenced(w http.ResponseWriter, r *http.Request, key wire.Key) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		value, err := a.locks.ReadFenced(ctx, key)
		return ok(wire.FencedValueOf(value)), err
	})
}
