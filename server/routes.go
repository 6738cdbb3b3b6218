package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// routes returns the router: what openapi.yaml describes, and the pages.
func (s *Server) routes(ui http.Handler) *chi.Mux {
	r := chi.NewRouter()
	r.Use(s.withRecovery, s.withHeaders, s.withWriteDeadline, s.withHeaderLimit, s.withCrossOriginCheck(), s.withLocalHostCheck, withDecodedPath, s.withAuthentication)
	r.NotFound(s.noRoute)
	r.MethodNotAllowed(s.methodNotAllowed)
	r.Group(func(r chi.Router) {
		r.Use(s.withParameterCheck, s.rejectEncoded)
		openapi.HandlerWithOptions(newAPI(s), openapi.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: s.unbound})
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

// mountSignIn adds where readers of the page sign in and out. Where there are no keys
// nobody does.
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

// methodNotAllowed says what would be allowed. A method that chi does not know
// ends here for every address, also where there is nothing.
func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	allowed := s.allowed(r)
	if allowed == "" {
		s.noRoute(w, r)
		return
	}
	w.Header().Set("Allow", allowed)
	s.refuse(w, r, &lock.Error{Code: ErrMethodNotAllowed, Detail: r.Method + " does nothing here; use " + allowed + "."})
}

// allowed returns the methods that the address of r has, as an Allow header
// lists them; empty if there is no such address.
func (s *Server) allowed(r *http.Request) string {
	path, list := r.URL.RawPath, ""
	if path == "" {
		path = r.URL.Path
	}
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

// withCrossOriginCheck refuses what a browser sends from another site and would change
// something.
func (s *Server) withCrossOriginCheck() func(http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, ErrCrossOrigin)
	}))
	return guard.Handler
}
