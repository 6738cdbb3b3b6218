package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// apiPolicy has a browser that is led to an answer of the API load nothing, run
// nothing and frame nothing. The pages have policies of their own.
const apiPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// stayWithTLS tells browsers to, for a year.
const stayWithTLS = "max-age=31536000"

// headed sets the headers that every answer has unless its handler says
// otherwise, and has HEAD answered by the handler of GET, whose body net/http
// then leaves out. There is none for other origins (CORS): pages elsewhere read
// nothing here.
func (s *Server) headed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", apiPolicy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if s.isSecure(r) {
			h.Set("Cross-Origin-Opener-Policy", "same-origin") // of which browsers complain over plain HTTP
		}
		if s.isSecure(r) && !isLocalName(r.Host) {
			h.Set("Strict-Transport-Security", stayWithTLS) // for localhost it would hold on every port
		}
		if r.Method == http.MethodHead {
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}
