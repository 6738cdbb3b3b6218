package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/server"
)

// TestEncodedBodiesAreRefused calls every operation with a body, and every form of the page.
func TestEncodedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t)
	ui := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s := serve(t, server.Options{Locks: inMemory(), Keys: ring.Keyring, UI: ui})
	targets := [][2]string{
		{http.MethodPost, "/ui/login"}, {http.MethodPost, "/ui/logout"}, {http.MethodPost, "/ui/revoke"}, {http.MethodPost, "/ui/sessions/" + sessionName},
		{http.MethodPost, "/ui/trees"}, {http.MethodPost, "/ui/trees/a"},
	}
	for path, item := range readDocument(t).Paths {
		for method, operation := range item.operations() {
			if operation.RequestBody != nil {
				targets = append(targets, [2]string{method, strings.NewReplacer("{name}", "a", "{scope}", "a", "{key}", "a", "{session}", sessionName).Replace(path)})
			}
		}
	}
	if len(targets) < 10 {
		t.Fatalf("%d routes take a body", len(targets))
	}
	for _, target := range targets {
		method, path := target[0], target[1]
		for encoding, refused := range map[string]bool{
			"gzip": true, "br": true, "identity, gzip": true, "x": true, "identity": false, "Identity": false, "": false,
		} {
			r := ring.asCaller(s.request(method, path, `{}`), "admin")
			r.Header["Content-Encoding"] = []string{encoding}
			got := s.do(r)
			detail, _ := got.body["detail"].(string)
			if is := got.StatusCode == http.StatusUnsupportedMediaType; is != refused {
				t.Errorf("%s %s with Content-Encoding %q: %d %s", method, path, encoding, got.StatusCode, got.text)
			}
			if refused && !strings.Contains(detail, "Send the body without Content-Encoding.") {
				t.Errorf("detail %q does not say what to do", detail)
			}
		}
	}
}

// TestEncodedBodiesOfUnknownLengthAreRefused sends a chunked body.
func TestEncodedBodiesOfUnknownLengthAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	r := s.request(http.MethodPost, acquirePath, `{"holder": "a"}`)
	r.ContentLength = -1
	r.Header.Set("Content-Encoding", "gzip")
	s.do(r).want(t, http.StatusUnsupportedMediaType, map[string]any{"code": "unsupported_media_type", "pointer": nil})
	r = s.request(http.MethodGet, "/v1/locks/a", "")
	r.Header.Set("Content-Encoding", "gzip") // without a body
	s.do(r).want(t, http.StatusOK, nil)
}
