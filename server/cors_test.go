package server_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/web"
)

const appOrigin = "https://app.example"

// TestPagesOfAllowedOriginsCallTheAPI sends what browsers send for a page of another origin.
func TestPagesOfAllowedOriginsCallTheAPI(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{
		Locks: &fake{}, UI: web.New(web.Options{Locks: inMemory()}), CORSOrigins: []string{"http://localhost:5173", appOrigin},
	})
	for _, c := range []struct {
		name, method, path, origin string
		preflight                  bool
		status                     int
		allowed                    bool
	}{
		{"an acquire", "POST", acquirePath, appOrigin, false, http.StatusCreated, true},
		{"its preflight", "OPTIONS", acquirePath, appOrigin, true, http.StatusNoContent, true},
		{"another allowed origin", "POST", acquirePath, "http://localhost:5173", false, http.StatusCreated, true},
		{"an error", "GET", "/v1/nothing", appOrigin, false, http.StatusNotFound, true},
		{"OPTIONS that is no preflight", "OPTIONS", acquirePath, appOrigin, false, http.StatusMethodNotAllowed, true},
		{"whether the service is ready", "GET", "/readyz", appOrigin, false, http.StatusOK, true},
		{"an acquire of another origin", "POST", acquirePath, "https://evil.example", false, http.StatusForbidden, false},
		{"the preflight of another origin", "OPTIONS", acquirePath, "https://evil.example", true, http.StatusForbidden, false},
		{"the preflight of a page of the service", "OPTIONS", "/ui/locks/a/revoke", appOrigin, true, http.StatusForbidden, false},
		{"the same host with another scheme", "POST", acquirePath, "http://app.example", false, http.StatusForbidden, false},
		{"no origin", "POST", acquirePath, "", false, http.StatusCreated, false},
		{"a form of the service's pages", "POST", "/ui/locks/a/revoke", appOrigin, false, http.StatusForbidden, false},
		{"a page of the service", "GET", "/ui/", appOrigin, false, http.StatusOK, false},
	} {
		r := s.request(c.method, c.path, "")
		if c.method == "POST" {
			r = s.request(c.method, c.path, `{"holder": "a"}`)
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}
		if c.preflight {
			r.Header.Set("Access-Control-Request-Method", "POST")
			r.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
		}
		got, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Body.Close(); err != nil {
			t.Error(err)
		}
		want := ""
		if c.allowed {
			want = c.origin
		}
		h := got.Header
		if got.StatusCode != c.status || h.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("%s: %d for %q, want %d for %q", c.name, got.StatusCode, h.Get("Access-Control-Allow-Origin"), c.status, want)
		}
		if h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: Vary %q, credentials %q", c.name, h.Get("Vary"), h.Get("Access-Control-Allow-Credentials"))
		}
		if c.allowed && !strings.Contains(h.Get("Access-Control-Expose-Headers"), "Paddock-Api, Retry-After") {
			t.Errorf("%s: exposes %q", c.name, h.Get("Access-Control-Expose-Headers"))
		}
		if c.preflight && c.allowed && !strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization, Content-Type") {
			t.Errorf("%s: accepts %q", c.name, h.Get("Access-Control-Allow-Headers"))
		}
	}
}

// TestPreflightsOfOtherOriginsAreNotAskedForAKey: a browser sends none with them, so what is missing is not a key.
func TestPreflightsOfOtherOriginsAreNotAskedForAKey(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string][]string{"no origin is allowed": nil, "another one is": {appOrigin}} {
		s := serve(t, server.Options{Locks: &fake{}, Keys: newKeyring(t).Keyring, CORSOrigins: allowed})
		r := s.request("OPTIONS", acquirePath, "")
		r.Header.Set("Origin", "https://evil.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
		got, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		if err := errors.Join(err, got.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if got.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "--cors-origin") || got.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d, %v, %s", name, got.StatusCode, got.Header, text)
		}
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	for origin, good := range map[string]bool{
		"https://app.example": true, "http://localhost:5173": true, "*": false, "null": false, "": false,
		"app.example": false, "https://app.example/": false, "https://app.example/page": false, "https://*.example": false,
	} {
		if err := server.CheckOrigin(origin); (err == nil) != good {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
