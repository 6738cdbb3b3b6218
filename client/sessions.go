package client

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const sessionsPath = "/v1/sessions"

// OpenSession opens a session, or finds the one of an earlier call with the same ID. A zero ID is replaced by a random
// one before anything is sent; choose it yourself to be able to send the call again after lock.ErrUnknownOutcome. The
// TTL travels as that of Acquire does, and the Until is counted from the sending.
func (c *Client) OpenSession(ctx context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	if err := cmp.Or(checkMetadata(o.Metadata), checkText("holder", o.Holder)); err != nil {
		return lock.SessionGrant{}, err
	}
	if o.ID == (lock.SessionID{}) {
		o.ID = lock.SessionID(uuid.New())
	}
	body := api.OpenSessionRequest{
		SessionID: new(uuid.UUID(o.ID)), Holder: o.Holder, TTLMs: wire.UnlessZero(wire.Milliseconds(o.TTL)),
		GraceMs: wire.UnlessZero(wire.Milliseconds(o.Grace)), Metadata: o.Metadata,
	}
	got, err := call[lock.SessionGrant]{
		request: request{method: http.MethodPost, path: sessionsPath, body: body},
		changes: true, success: []int{http.StatusCreated, http.StatusOK}, parse: sessionWith(o.ID),
	}.do(ctx, c)
	got.value.Replayed = err == nil && got.status == http.StatusOK
	return got.value, err
}

// sessionWith returns a parser of the session with that ID.
func sessionWith(id lock.SessionID) parser[lock.SessionGrant] {
	return func(text []byte, sent time.Time) (lock.SessionGrant, error) { return wire.ParseSession(text, id, sent) }
}

// RenewSession moves the end of a session, and of its leases, or is refused with lock.ErrSessionLost.
func (c *Client) RenewSession(ctx context.Context, r lock.RenewSession) (lock.SessionGrant, error) {
	body := api.RenewSessionRequest{SessionID: uuid.UUID(r.ID), TTLMs: wire.UnlessZero(wire.Milliseconds(r.TTL))}
	return call[lock.SessionGrant]{
		request: request{method: http.MethodPost, path: sessionsPath + "/renew", body: body},
		changes: true, parse: sessionWith(r.ID),
	}.get(ctx, c)
}

// CloseSession ends a session and its leases, or is refused with lock.ErrSessionLost.
func (c *Client) CloseSession(ctx context.Context, s lock.CloseSession) error {
	body := api.CloseSessionRequest{SessionID: uuid.UUID(s.ID)}
	_, err := call[struct{}]{
		request: request{method: http.MethodPost, path: sessionsPath + "/close", body: body},
		changes: true, success: []int{http.StatusNoContent},
	}.do(ctx, c)
	return err
}

// RevokeSession takes a session from its holder and returns it, or fails with lock.ErrNotFound or lock.ErrSessionLost.
func (c *Client) RevokeSession(ctx context.Context, r lock.RevokeSession) (lock.SessionInfo, error) {
	if err := cmp.Or(checkSession(r.Ref), checkText("reason", r.Reason)); err != nil {
		return lock.SessionInfo{}, err
	}
	body := api.RevokeSessionRequest{Reason: r.Reason, SkipGrace: wire.UnlessZero(r.SkipGrace)}
	return call[lock.SessionInfo]{
		request: request{method: http.MethodPost, path: sessionsPath + "/" + r.Ref.String() + "/revoke", body: body},
		changes: true, parse: sessionNamed(r.Ref),
	}.get(ctx, c)
}

// Session returns a session with its leases and places, or lock.ErrNotFound.
func (c *Client) Session(ctx context.Context, ref lock.SessionRef) (lock.SessionInfo, error) {
	if err := checkSession(ref); err != nil {
		return lock.SessionInfo{}, err
	}
	return call[lock.SessionInfo]{
		request: request{path: sessionsPath + "/" + ref.String()}, parse: sessionNamed(ref),
	}.get(ctx, c)
}

// checkSession refuses what is not the name of any session, and has no form in a URL.
func checkSession(ref lock.SessionRef) error {
	if ref <= 0 {
		return lock.UnknownSession()
	}
	return nil
}

// sessionNamed returns a parser of the session of that name.
func sessionNamed(ref lock.SessionRef) parser[lock.SessionInfo] {
	return model(wire.ToSessionInfo, func(s api.SessionInfo) bool { return s.Session == ref.String() && s.Locks != nil })
}

// Sessions returns a page of the sessions that have not ended.
func (c *Client) Sessions(ctx context.Context, q paddock.SessionQuery) (paddock.Page[lock.SessionInfo], error) {
	return call[paddock.Page[lock.SessionInfo]]{
		request: request{path: sessionsPath + wire.SessionQueryString(q)}, limit: maxListResponse,
		parse: model(wire.ToSessionPage, func(p api.SessionPage) bool { return p.Sessions != nil }),
	}.get(ctx, c)
}
