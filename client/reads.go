package client

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// Lock returns a lock. One that was never used is free.
func (c *Client) Lock(ctx context.Context, name string) (lock.Lock, error) {
	if err := lock.CheckName(name); err != nil {
		return lock.Lock{}, err
	}
	return call[lock.Lock]{
		request: request{path: locksPath + name}, limit: maxListResponse, parse: lockNamed(name),
	}.get(ctx, c)
}

// lockNamed returns a parser of the lock of that name.
func lockNamed(name string) parser[lock.Lock] {
	return model(wire.ToLock, func(l api.Lock) bool { return l.Name == name && l.State != "" })
}

// Watch returns a lock as soon as its Version is not the one seen, or when the Wait is over. In the latter case it
// sends a second request, so that what it returns is as of then.
func (c *Client) Watch(ctx context.Context, w paddock.Watch) (l lock.Lock, err error) {
	if err := lock.CheckName(w.Name); err != nil {
		return lock.Lock{}, err
	}
	c.waits.split(w.Wait, func(part time.Duration, more bool) bool {
		w.Wait = part
		var got answer[lock.Lock]
		got, err = c.watch(ctx, w)
		l = got.value
		if err == nil && got.status == http.StatusNotModified && !more {
			l, err = c.Lock(ctx, w.Name)
			return false
		}
		return got.interrupted || err == nil && got.status == http.StatusNotModified
	})
	return l, err
}

// watch sends one request.
func (c *Client) watch(ctx context.Context, w paddock.Watch) (answer[lock.Lock], error) {
	r, success := request{path: locksPath + w.Name + wire.WatchQueryString(w)}, []int{http.StatusOK}
	if isVersion(w.Seen) {
		r.header, success = [2]string{"If-None-Match", `W/"` + w.Seen + `"`}, append(success, http.StatusNotModified)
	}
	return call[lock.Lock]{
		request: r, wait: w.Wait, limit: maxListResponse, success: success, parse: lockNamed(w.Name),
	}.do(ctx, c)
}

// isVersion reports whether seen can be the version of a lock and part of an entity tag. If not, every lock differs
// from it.
func isVersion(seen string) bool {
	for i := range len(seen) {
		if c := seen[i]; c <= ' ' || c > '~' || c == '"' || c == ',' {
			return false
		}
	}
	return seen != "" && len(seen) <= 200
}

// Queue returns the waiters of a lock and what blocks them. A response of more than 16 MiB fails with
// lock.ErrUnavailable.
func (c *Client) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	if err := lock.CheckName(name); err != nil {
		return lock.QueueInfo{}, err
	}
	return call[lock.QueueInfo]{
		request: request{path: locksPath + name + "/queue"}, limit: maxListResponse,
		parse: model(wire.ToQueue, func(q api.Queue) bool { return q.Name == name && q.Waiters != nil }),
	}.get(ctx, c)
}

// Locks returns a page of the known locks, in the order of their names. A page of more than 16 MiB, of locks with very
// many leases, fails with lock.ErrUnavailable; ask for fewer at a time.
func (c *Client) Locks(ctx context.Context, q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	return call[paddock.Page[lock.Lock]]{
		request: request{path: "/v1/locks" + wire.LockQueryString(q)}, limit: maxListResponse,
		parse: model(wire.ToLockPage, func(p api.LockPage) bool { return p.Locks != nil }),
	}.get(ctx, c)
}

// Holds returns who held a lock, from the events that are kept; see paddock.ReadHolds.
func (c *Client) Holds(ctx context.Context, q paddock.HoldQuery) (paddock.HoldList, error) {
	if _, err := q.Resolve(); err != nil {
		return paddock.HoldList{}, err
	}
	return call[paddock.HoldList]{
		request: request{path: locksPath + q.Name + "/holds" + wire.HoldQueryString(q)}, limit: maxListResponse,
		parse: model(wire.ToHoldList, func(l api.HoldList) bool { return l.Name == q.Name && l.Holds != nil }),
	}.get(ctx, c)
}

// Events returns a page of events. With a Wait it waits while there are none. An event's Ref is not sent
// and is zero.
func (c *Client) Events(ctx context.Context, q paddock.EventQuery) (page paddock.Page[lock.Event], err error) {
	if q.FollowsSeveral() {
		if _, err := q.Resolve(); err != nil { // the request has no place for what that refuses
			return page, err
		}
	}
	c.waits.split(q.Wait, func(part time.Duration, more bool) bool {
		q.Wait = part
		var got answer[paddock.Page[lock.Event]]
		got, err = call[paddock.Page[lock.Event]]{
			request: eventsRequest(q), wait: part, limit: maxListResponse,
			parse: model(wire.ToEventPage, func(p api.EventPage) bool { return p.Events != nil }),
		}.do(ctx, c)
		if page = got.value; err != nil {
			return got.interrupted && q.Cursor != paddock.CursorNow
		}
		if q.Cursor = page.Next; q.Cursor == "" || page.Gap {
			return false
		}
		return more && len(page.Items)+len(page.EndedSessions) == 0 && page.Unreadable == nil
	})
	return page, err
}

// eventsRequest returns the request of a page. Several names, or sessions, have no room in a URL.
func eventsRequest(q paddock.EventQuery) request {
	if !q.FollowsSeveral() {
		return request{path: "/v1/events" + wire.EventQueryString(q)}
	}
	return request{method: http.MethodPost, path: "/v1/events/wait", body: api.WaitForEventsRequest{
		Locks: q.Names, Sessions: wire.MapSlice(q.Sessions, lock.SessionRef.String),
		Kinds:  wire.MapSlice(q.Kinds, func(k lock.Kind) api.EventKind { return api.EventKind(k.String()) }),
		Cursor: new(cmp.Or(q.Cursor, "0")), WaitMs: wire.UnlessZero(wire.Milliseconds(q.Wait)),
	}}
}

// VerifyToken returns the status of a token as of an instant.
func (c *Client) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	if err := lock.CheckName(v.Name); err != nil {
		return lock.Verification{}, err
	}
	body := api.VerifyRequest{Name: v.Name, FencingToken: int64(v.Token), Slot: v.Slot}
	return call[lock.Verification]{
		request: request{method: http.MethodPost, path: "/v1/tokens/verify", body: body},
		parse: model(wire.ToVerification, func(d api.TokenVerification) bool {
			return d.Name == v.Name && d.FencingToken == int64(v.Token) && d.Status != ""
		}),
	}.get(ctx, c)
}

// ReportStale reports that a resource has rejected a stale token, so that the lock's history shows it.
func (c *Client) ReportStale(ctx context.Context, r lock.ReportStale) (bool, error) {
	if err := lock.CheckName(r.Name); err != nil {
		return false, err
	}
	body := api.ReportRequest{
		Name: r.Name, FencingToken: int64(r.Token), Slot: r.Slot, Where: wire.UnlessZero(r.Where),
	}
	return call[bool]{
		request: request{method: http.MethodPost, path: "/v1/tokens/report", body: body},
		changes: true, parse: model(wire.ToReportResult, func(api.ReportResult) bool { return true }),
	}.get(ctx, c)
}

// WriteFenced writes the resource, or fails with lock.ErrStaleToken, lock.ErrUnknownToken or lock.ErrVersionMismatch.
func (c *Client) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	if err := lock.CheckKey(w.Key); err != nil {
		return lock.FencedValue{}, err
	}
	if !isJSON(w.Value) {
		return lock.FencedValue{}, lock.Invalid("value", "must be JSON, in UTF-8")
	}
	if err := checkText("operation_id", w.OperationID); err != nil {
		return lock.FencedValue{}, err
	}
	body := api.FencedWrite{
		Lock: w.Lock, FencingToken: int64(w.Token), Slot: wire.UnlessZero(w.Slot), Value: w.Value, IfVersion: w.IfVersion,
		OperationID: wire.UnlessZero(w.OperationID),
	}
	return call[lock.FencedValue]{
		request: request{method: http.MethodPut, path: fencedPath + w.Key, body: body},
		changes: true, once: w.IfVersion != nil && w.OperationID == "", parse: resourceAt(w.Key),
	}.get(ctx, c)
}

// ReadFenced returns the resource, or lock.ErrNotFound if it was never written.
func (c *Client) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	if err := lock.CheckKey(key); err != nil {
		return lock.FencedValue{}, err
	}
	return call[lock.FencedValue]{request: request{path: fencedPath + key}, parse: resourceAt(key)}.get(ctx, c)
}

const fencedPath = "/v1/fenced/"

// resourceAt returns a parser of the resource of that key.
func resourceAt(key string) parser[lock.FencedValue] {
	return model(wire.ToFencedValue, func(f api.FencedValue) bool { return f.Key == key && f.Version > 0 })
}
