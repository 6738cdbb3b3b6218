package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/internal/wire/request"
	"github.com/paddock-lock/paddock/lock"
)

// openSession opens a session.
func (s *Server) openSession(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, request.Read[request.OpenSession])
		if err != nil {
			return reply{}, err
		}
		session, err := s.locks.OpenSession(ctx, in)
		return reply{status: grantStatus(session.Replayed), body: wire.SessionOf(session)}, err
	})
}

// renewSession extends a session.
func (s *Server) renewSession(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.RenewSession], s.locks.RenewSession, wire.SessionOf)
}

// closeSession ends a session.
func (s *Server) closeSession(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, request.Read[request.CloseSession])
		if err != nil {
			return reply{}, err
		}
		return noContent(), s.locks.CloseSession(ctx, in)
	})
}

// revokeSession ends a session of another holder.
func (s *Server) revokeSession(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.RevokeSession], s.locks.RevokeSession, wire.SessionInfoOf)
}

// getSession returns a session with its leases and places.
func (s *Server) getSession(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		ref, err := lock.ParseSessionRef("session", nameIn(r))
		if err != nil {
			return reply{}, err
		}
		info, err := s.locks.Session(ctx, ref)
		return ok(wire.SessionInfoOf(info)), err
	})
}

// listSessions returns a page of the sessions that have not ended.
func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := sessionQueryIn(r)
		if err != nil {
			return reply{}, err
		}
		page, err := s.locks.Sessions(ctx, in)
		return ok(wire.SessionPageOf(page)).withNext(page.Next), err
	})
}
