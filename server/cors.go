package server

import (
	"fmt"
	"net/http"
	"strings"
)

// The headers that a page of an allowed origin may send, and those that it may read beside the ones that every page may.
const (
	corsRequestHeaders  = "Authorization, Content-Type, If-None-Match, Last-Event-ID, Traceparent, Tracestate"
	corsResponseHeaders = "ETag, Link, Paddock-Api, Retry-After, WWW-Authenticate, X-Request-Id"
)

// corsMaxAge is how long a browser may remember the answer to a preflight request, in seconds.
const corsMaxAge = "600"

// CheckOrigin returns an error unless a browser can send the text as the Origin header of a page. There are no wildcards.
func CheckOrigin(origin string) error {
	if strings.Contains(origin, "*") {
		return fmt.Errorf("invalid origin %q: wildcards are not supported", origin)
	}
	return http.NewCrossOriginProtection().AddTrustedOrigin(origin)
}

// withCORS lets the browser show answers of the API to pages of Options.CORSOrigins, and answers its preflight requests.
// Browsers send no cookie with these requests, or hide the answer: no answer has Access-Control-Allow-Credentials.
func (s *Server) withCORS(next http.Handler) http.Handler {
	if len(s.corsOrigins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		if !s.isAllowedOrigin(r) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		h.Set("Access-Control-Expose-Headers", corsResponseHeaders)
		if !isPreflight(r) {
			next.ServeHTTP(w, r)
			return
		}
		if err := s.setHeaders(w, r); err != nil { // no step comes after this
			s.refuse(w, r, err)
			return
		}
		h.Set("Access-Control-Allow-Methods", strings.Join([]string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete,
		}, ", "))
		h.Set("Access-Control-Allow-Headers", corsRequestHeaders)
		h.Set("Access-Control-Max-Age", corsMaxAge)
		w.WriteHeader(http.StatusNoContent)
	})
}

// isAllowedOrigin reports whether a page of an allowed origin sent the request to the API. The pages of this service and
// their forms, which take a cookie, are for their own origin only.
func (s *Server) isAllowedOrigin(r *http.Request) bool {
	return s.corsOrigins[r.Header.Get("Origin")] && !isPage(r)
}

// isPreflight reports whether a browser asks with the request whether a page of another origin may send one.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
