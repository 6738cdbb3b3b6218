package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// GetLock looks at a lock, or waits until it is another than the caller has seen.
func (a *api) GetLock(w http.ResponseWriter, r *http.Request, name openapi.Name, params openapi.GetLockParams) {
	a.answerLate(w, r, func() (reply, error) {
		in, err := watchFrom(name, params)
		if err != nil {
			return reply{}, err
		}
		ctx, done := a.waitContext(w, r, in.Wait)
		defer done()
		seen := parseIfNoneMatch(value(params.IfNoneMatch))
		lock, err := a.watchUntilChanged(ctx, in, seen)
		return seen.reply(lock), err
	})
}

// GetQueue tells who waits for a lock.
func (a *api) GetQueue(w http.ResponseWriter, r *http.Request, name openapi.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		queue, err := a.locks.Queue(ctx, name)
		return ok(queueOf(queue)), err
	})
}

// ListLocks pages through the locks known.
func (a *api) ListLocks(w http.ResponseWriter, r *http.Request, params openapi.ListLocksParams) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := lockQueryFrom(params)
		if err != nil {
			return reply{}, err
		}
		page, err := a.locks.Locks(ctx, in)
		return ok(lockPageOf(page)).before(page.Next), err
	})
}

// ListEvents pages through what happened, or waits for it. There is always a
// cursor to ask with later, yet no next page while there is nothing on this one.
func (a *api) ListEvents(w http.ResponseWriter, r *http.Request, params openapi.ListEventsParams) {
	a.answerLate(w, r, func() (reply, error) {
		in, err := eventQueryFrom(params)
		if err != nil {
			return reply{}, err
		}
		ctx, done := a.waitContext(w, r, in.Wait)
		defer done()
		page, err := a.locks.Events(ctx, in)
		out := ok(eventPageOf(page))
		if len(page.Items) > 0 {
			out = out.before(page.Next)
		}
		return out, err
	})
}

// ReadFenced reads what was written under a key.
func (a *api) ReadFenced(w http.ResponseWriter, r *http.Request, key openapi.Key) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		fenced, err := a.locks.ReadFenced(ctx, key)
		return ok(fencedOf(fenced)), err
	})
}
