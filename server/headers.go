package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// apiPolicy has a browser that is led to an answer of the API load nothing, run
// nothing and frame nothing. The pages have policies of their own.
const apiPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// hstsPolicy tells browsers to, for a year.
const hstsPolicy = "max-age=31536000"

// A headerField has its name as net/http writes it, and values that nobody changes.
type headerField struct {
	name   string
	values []string
}

// defaultHeaders are those that every answer has unless its handler says otherwise.
func defaultHeaders() []headerField {
	return []headerField{
		{"Cache-Control", []string{"no-store"}},
		{"X-Content-Type-Options", []string{"nosniff"}},
		{"Content-Security-Policy", []string{apiPolicy}},
		{"X-Frame-Options", []string{"DENY"}},
		{"Referrer-Policy", []string{"no-referrer"}},
		{"Cross-Origin-Resource-Policy", []string{"same-origin"}},
	}
}

// withHeaders sets the usual headers, and has HEAD answered by the handler of GET, whose body net/http
// then leaves out. There is none for other origins (CORS): pages elsewhere read
// nothing here.
func (s *Server) withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for _, always := range s.headers {
			h[always.name] = always.values
		}
		if s.isSecure(r) {
			h.Set("Cross-Origin-Opener-Policy", "same-origin") // of which browsers complain over plain HTTP
		}
		if s.isSecure(r) && !isLocalName(r.Host) {
			h.Set("Strict-Transport-Security", hstsPolicy) // for localhost it would hold on every port
		}
		if isAmbiguouslyFramed(r) {
			h.Set("Connection", "close")
		}
		if r.Method == http.MethodHead {
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// isAmbiguouslyFramed reports whether a proxy in front may see another end of the request than net/http does, so that
// what follows in the connection could be a smuggled request (RFC 9112, section 6.1). net/http drops a Content-Length
// beside Transfer-Encoding, and a Transfer-Encoding in HTTP/1.0, without a trace; so every chunked request and every
// request of HTTP/1.0 counts.
func isAmbiguouslyFramed(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0)
}
