package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// routes returns the router: the operations of openapi.yaml, and the pages.
func (s *Server) routes(ui http.Handler) *chi.Mux {
	r := chi.NewRouter()
	r.Use(s.withRecovery, s.withHeaders, s.withWriteDeadline, s.withHeaderLimit, s.withCrossOriginCheck(),
		s.withLocalHostCheck, withDecodedPath, s.withAuthentication)
	r.NotFound(s.noRoute)
	r.MethodNotAllowed(s.methodNotAllowed)
	r.Group(func(r chi.Router) {
		r.Use(s.withParameterCheck, s.rejectEncoded)
		openapi.HandlerWithOptions(newAPI(s), openapi.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: s.rejectParameter})
	})
	home := "/docs/"
	if ui != nil {
		home = "/ui/"
		r.Get("/ui", redirectTo("/ui/"))
		s.mountSignIn(r, ui)
		r.With(s.withTimeout, s.rejectEncoded).Handle("/ui/*", ui)
	}
	r.Get("/", redirectTo(home))
	r.Get("/docs", redirectTo("/docs/"))
	mountDocs(r)
	return r
}

// mountSignIn adds the routes to sign in and out. Without keys there is no sign-in.
func (s *Server) mountSignIn(r chi.Router, ui http.Handler) {
	if s.keys == nil {
		r.Get(signInPath, redirectTo("/ui/"))
		return
	}
	r.With(s.withTimeout).Method(http.MethodGet, signInPath, ui)
	r.With(s.withTimeout, s.rejectEncoded).Post(signInPath, s.signIn)
	r.With(s.withTimeout, s.rejectEncoded).Post(signOutPath, s.signOut)
}

func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, ErrNoRoute)
}

// methodNotAllowed lists the path's methods in Allow. chi also calls it for a method it does not know, on any path.
func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	allowed := s.allowed(r)
	if allowed == "" {
		s.noRoute(w, r)
		return
	}
	w.Header().Set("Allow", allowed)
	detail := r.Method + " is not allowed here. Use " + allowed + "."
	s.refuse(w, r, &lock.Error{Code: ErrMethodNotAllowed, Detail: detail})
}

// allowed returns the methods of r's path for an Allow header, or "" if there is no such path.
func (s *Server) allowed(r *http.Request) string {
	path, list := routePath(r), ""
	for _, m := range []struct{ method, listed string }{
		{http.MethodGet, "GET, HEAD"}, {http.MethodPost, "POST"}, {http.MethodPut, "PUT"},
		{http.MethodPatch, "PATCH"}, {http.MethodDelete, "DELETE"},
	} {
		if !s.router.Match(chi.NewRouteContext(), m.method, path) {
			continue
		}
		if list != "" {
			list += ", "
		}
		list += m.listed
	}
	return list
}
