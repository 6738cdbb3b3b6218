package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
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

// reply returns the reply with the lock, without it if the client has that version.
func (s ifNoneMatch) reply(l lock.Lock) reply {
	r := reply{status: http.StatusNotModified, tag: etagOf(l)}
	if !s.has(l.Version()) {
		r.status, r.body = http.StatusOK, wire.LockOf(l)
	}
	return r
}

// etagOf returns the lock's ETag. It is weak, because answers with the same tag may differ in the time left.
func etagOf(l lock.Lock) string { return `W/"` + l.Version() + `"` }

// An ifNoneMatch is the set of versions in an If-None-Match header. The zero value is empty.
type ifNoneMatch struct {
	any      bool
	versions []string
}

// parseIfNoneMatch reads the header up to the first syntax error (RFC 9110). Unknown tags match no lock.
func parseIfNoneMatch(header string) ifNoneMatch {
	if strings.TrimSpace(header) == "*" {
		return ifNoneMatch{any: true}
	}
	var s ifNoneMatch
	for rest := header; ; {
		rest = strings.TrimPrefix(strings.TrimLeft(rest, " \t,"), "W/")
		version, after, whole := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
		if !strings.HasPrefix(rest, `"`) || !whole {
			return s
		}
		s.versions, rest = append(s.versions, version), after
	}
}

func (s ifNoneMatch) has(version string) bool { return s.any || slices.Contains(s.versions, version) }

// watchUntilChanged returns the lock as soon as its version is not in the set, or unchanged when the wait is over.
func (s *Server) watchUntilChanged(ctx context.Context, in lock.Watch, seen ifNoneMatch) (lock.Lock, error) {
	if in.Wait == 0 || !seen.any && len(seen.versions) == 0 {
		return s.locks.Lock(ctx, in.Name)
	}
	over := time.Now().Add(in.Wait)
	if !seen.any {
		in.Seen = seen.versions[0]
	}
	for {
		l, err := s.locks.Watch(ctx, in)
		in.Seen, in.Wait, ctx = l.Version(), time.Until(over), access.Continued(ctx)
		if err != nil || in.Wait <= 0 || !seen.has(in.Seen) {
			return l, err
		}
	}
}
