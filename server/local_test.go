package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/paddock-lock/paddock/server"
)

// TestDNSRebindingIsRefused sends requests of a page whose name resolves to this machine, so that the browser takes
// them for same-origin.
func TestDNSRebindingIsRefused(t *testing.T) {
	t.Parallel()
	open := server.New(server.Options{RequireLocalHost: true})
	wide := server.New(server.Options{})
	for host, local := range map[string]bool{
		"localhost:8080": true, "LOCALHOST": true, "127.0.0.1:8080": true, "[::1]:8080": true, "192.0.2.7": true,
		"paddock.localhost:8080": true, "evil.example:8080": false, "evil.example": false, "localhost.evil.example": false, "": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/version", nil)
		r.Host = host
		for s, want := range map[*server.Server]int{open: http.StatusForbidden, wide: http.StatusOK} {
			if local {
				want = http.StatusOK
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("Host %q: %d, want %d", host, w.Code, want)
			}
		}
	}
}

// TestHealthIsForEveryHost sends what load balancers do: HTTP/1.0 without a Host.
func TestHealthIsForEveryHost(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{RequireLocalHost: true})
	for line, want := range map[string]string{
		"GET /livez HTTP/1.0":                            "200",
		"GET /readyz HTTP/1.0":                           "200",
		"HEAD /readyz HTTP/1.0":                          "200",
		"GET /readyz HTTP/1.1\r\nHost: paddock.internal": "200",
		"GET /version HTTP/1.0":                          "403",
		"GET /v1/locks HTTP/1.0":                         "403",
		"GET /readyz/../v1/locks HTTP/1.0":               "403",
	} {
		conn := s.dial()
		if _, err := conn.Write([]byte(line + "\r\nConnection: close\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if err != nil || len(got) < 12 || string(got[9:12]) != want {
			t.Errorf("%q: %.60q, %v; want %s", line, got, err, want)
		}
	}
}
