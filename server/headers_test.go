package server_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/web"
)

// strictHeaders are the headers of every answer.
var strictHeaders = map[string]string{
	"Paddock-Api": "v1", "X-Content-Type-Options": "nosniff",
}

// TestOnlyLivezIsForPagesOfAllOrigins checks what lets such a page tell an outage from a missing --cors-origin.
func TestOnlyLivezIsForPagesOfAllOrigins(t *testing.T) {
	t.Parallel()
	h := server.New(server.Options{Locks: inMemory(), UI: web.New(web.Options{Locks: inMemory()})})
	for path, want := range map[string]string{
		"/livez": "cross-origin", "/readyz": "same-origin", "/v1/locks": "same-origin", "/v1/nothing": "same-origin",
		"/docs/": "same-origin", "/ui/": "same-origin",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := w.Header().Get("Cross-Origin-Resource-Policy"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestEveryAnswerHasItsHeaders(t *testing.T) {
	t.Parallel()
	h := server.New(server.Options{Locks: inMemory(), UI: web.New(web.Options{Locks: inMemory()})})
	for path, policy := range map[string]string{
		"/v1/locks": "default-src 'none';", "/v1/locks/_": "default-src 'none';", "/v1/nothing": "default-src 'none';", "/livez": "default-src 'none';",
		"/openapi.json": "default-src 'none';", "/": "default-src 'none';", "/docs/": "default-src 'none';", "/docs/swagger-ui.css": "default-src 'none';",
		"/ui/": "default-src 'none';", "/ui/nothing": "default-src 'none';",
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Origin", "https://evil.example")
		h.ServeHTTP(w, r)
		for name, want := range strictHeaders {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", path, name, got, want)
			}
		}
		got := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(got, policy) || strings.Contains(got, "unsafe") || !strings.Contains(got, "frame-ancestors 'none'") || !strings.Contains(got, "base-uri 'none'") {
			t.Errorf("%s: policy %s", path, got)
		}
		if r := w.Header().Get("Referrer-Policy"); r != "no-referrer" && r != "same-origin" {
			t.Errorf("%s: Referrer-Policy %q", path, r)
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") || name == "Server" || name == "X-Powered-By" || name == "Strict-Transport-Security" {
				t.Errorf("%s: %s %q", path, name, w.Header().Get(name))
			}
		}
	}
}

// TestHSTSIsSentOverTLS checks that it is not sent for localhost, where it would cover all ports.
func TestHSTSIsSentOverTLS(t *testing.T) {
	t.Parallel()
	direct, proxied := server.New(server.Options{}), server.New(server.Options{SecureCookies: true})
	for _, c := range []struct {
		name  string
		h     *server.Server
		tls   bool
		host  string
		stays bool
	}{
		{"plain HTTP", direct, false, "paddock.example", false},
		{"TLS", direct, true, "paddock.example:8443", true},
		{"TLS on this machine", direct, true, "localhost:8443", false},
		{"a proxy that terminates TLS", proxied, false, "paddock.example", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/livez", nil)
		r.Host = c.host
		r.Header.Set("X-Forwarded-Proto", "https") // any client can send it
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		c.h.ServeHTTP(w, r)
		if secure := c.tls || c.h == proxied; secure != (w.Header().Get("Cross-Origin-Opener-Policy") == "same-origin") {
			t.Errorf("%s: %v", c.name, w.Header())
		}
		if got := w.Header().Get("Strict-Transport-Security"); (got == "max-age=31536000") != c.stays || !c.stays && got != "" {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
