package server_test

import (
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
