package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/api"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/internal/wire/request"
	"github.com/paddock-lock/paddock/lock"
)

// OpenSession opens a session.
func (a *handlers) OpenSession(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, "", request.Read[request.OpenSession])
		if err != nil {
			return reply{}, err
		}
		session, err := a.locks.OpenSession(ctx, in)
		return reply{status: grantStatus(session.Replayed), body: wire.SessionOf(session)}, err
	})
}

// RenewSession extends a session.
func (a *handlers) RenewSession(w http.ResponseWriter, r *http.Request) {
	execute(a, w, r, "", request.Read[request.RenewSession], a.locks.RenewSession, wire.SessionOf)
}

// CloseSession ends a session.
func (a *handlers) CloseSession(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, "", request.Read[request.CloseSession])
		if err != nil {
			return reply{}, err
		}
		return noContent(), a.locks.CloseSession(ctx, in)
	})
}

// RevokeSession ends a session of another holder.
func (a *handlers) RevokeSession(w http.ResponseWriter, r *http.Request, session api.SessionName) {
	execute(a, w, r, session, request.Read[request.RevokeSession], a.locks.RevokeSession, wire.SessionInfoOf)
}

// GetSession returns a session with its leases and places.
func (a *handlers) GetSession(w http.ResponseWriter, r *http.Request, session api.SessionName) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		ref, err := lock.ParseSessionRef("session", session)
		if err != nil {
			return reply{}, err
		}
		info, err := a.locks.Session(ctx, ref)
		return ok(wire.SessionInfoOf(info)), err
	})
}

// ListSessions returns a page of the sessions that have not ended.
func (a *handlers) ListSessions(w http.ResponseWriter, r *http.Request, params api.ListSessionsParams) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := wire.ToSessionsQuery(params)
		if err != nil {
			return reply{}, err
		}
		page, err := a.locks.Sessions(ctx, in)
		return ok(wire.SessionPageOf(page)).withNext(page.Next), err
	})
}
