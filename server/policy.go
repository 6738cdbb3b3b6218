package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/internal/wire/request"
	"github.com/paddock-lock/paddock/lock"
)

// freeze stops new grants of the locks of a scope.
func (s *Server) freeze(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.Freeze], s.locks.Freeze, wire.FreezeStatusOf)
}

// thaw ends a freeze.
func (s *Server) thaw(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		return noContent(), s.locks.Thaw(ctx, lock.ThawRequest{Scope: scopeIn(r)})
	})
}

// getFreeze returns a freeze and what is left of its leases.
func (s *Server) getFreeze(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		status, err := s.locks.Frozen(ctx, scopeIn(r))
		return ok(wire.FreezeStatusOf(status)), err
	})
}

// listFreezes returns the freezes in force.
func (s *Server) listFreezes(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		all, err := s.locks.Freezes(ctx)
		return ok(wire.FreezeListOf(all)), err
	})
}

// setRule bounds what may be asked of the locks of a scope.
func (s *Server) setRule(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.Rule], s.locks.SetRule, wire.RuleOf)
}

// removeRule removes a rule.
func (s *Server) removeRule(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) { return noContent(), s.locks.RemoveRule(ctx, scopeIn(r)) })
}

// listRules returns the rules.
func (s *Server) listRules(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		all, err := s.locks.Rules(ctx)
		return ok(wire.RuleListOf(all)), err
	})
}

// scopeIn returns the scope in the path.
func scopeIn(r *http.Request) lock.Scope { return lock.Scope(nameIn(r)) }
