package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/server"
)

func TestBodySize(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{}})
	filled := func(size int) string {
		const frame = `{"holder":"a"}`
		return `{"holder":` + strings.Repeat(" ", size-len(frame)) + `"a"}`
	}
	s.post(acquirePath, filled(server.MaxBodySize)).want(t, http.StatusCreated, nil)
	want := map[string]any{"code": "body_too_large", "pointer": nil}
	s.post(acquirePath, filled(server.MaxBodySize+1)).want(t, http.StatusRequestEntityTooLarge, want)
	s.post(acquirePath, filled(17<<10)).want(t, http.StatusRequestEntityTooLarge, want)

	unknown := s.request(http.MethodPost, acquirePath, "")
	unknown.Header.Set("Content-Type", "application/json")
	unknown.Body, unknown.ContentLength = io.NopCloser(strings.NewReader(filled(17<<10))), -1
	s.do(unknown).want(t, http.StatusRequestEntityTooLarge, want)
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{}})
	for kind, status := range map[string]int{
		"application/json":                    http.StatusCreated,
		"application/json; charset=utf-8":     http.StatusCreated,
		"Application/JSON ;charset=\"UTF-8\"": http.StatusCreated,
		"":                                    http.StatusUnsupportedMediaType,
		"text/plain":                          http.StatusUnsupportedMediaType,
		"application/x-www-form-urlencoded":   http.StatusUnsupportedMediaType,
		"application/problem+json":            http.StatusUnsupportedMediaType,
		"application/json, text/plain":        http.StatusUnsupportedMediaType,
		"application/jsonp":                   http.StatusUnsupportedMediaType,
		";":                                   http.StatusUnsupportedMediaType,
	} {
		r := s.request(http.MethodPost, acquirePath, `{"holder": "a"}`)
		r.Header.Set("Content-Type", kind)
		if kind == "" {
			r.Header.Del("Content-Type")
		}
		got := s.do(r)
		got.want(t, status, nil)
		if status != http.StatusCreated {
			got.want(t, status, map[string]any{"code": "unsupported_media_type", "pointer": nil})
			if detail := got.body["detail"].(string); !strings.Contains(detail, "curl --json") {
				t.Errorf("detail %q does not say how", detail)
			}
		}
	}
}

func TestEmptyBodyIsNotJSON(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	s.post(acquirePath, "").want(t, http.StatusUnsupportedMediaType, map[string]any{"code": "unsupported_media_type"})
	r := s.request(http.MethodPost, acquirePath, "")
	r.Header.Set("Content-Type", "application/json")
	s.do(r).want(t, http.StatusBadRequest, map[string]any{"code": "invalid_request", "pointer": ""})
}

func TestWrongMethodsGetAllow(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	for _, c := range []struct{ method, path, allow string }{
		{"GET", "/v1/locks/a/acquire", "POST"},
		{"HEAD", "/v1/locks/a/acquire", "POST"},
		{"PUT", "/v1/locks/a%3Ab/release", "POST"},
		{"DELETE", "/v1/locks/a", "GET, HEAD"},
		{"POST", "/v1/locks", "GET, HEAD"},
		{"POST", "/v1/fenced/a", "GET, HEAD, PUT"},
		{"OPTIONS", "/v1/fenced/a", "GET, HEAD, PUT"},
		{"BREW", "/v1/tokens/verify", "POST"},
		{"POST", "/livez", "GET, HEAD"},
		{"POST", "/docs/", "GET, HEAD"},
		{"POST", "/", "GET, HEAD"},
	} {
		got := s.send(c.method, c.path, "")
		if allow := got.Header.Get("Allow"); allow != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, allow, c.allow)
		}
		var members map[string]any
		if c.method != http.MethodHead {
			members = map[string]any{"code": "method_not_allowed", "pointer": nil}
		}
		got.want(t, http.StatusMethodNotAllowed, members)
	}
}

func TestHeadIsGetWithoutItsBody(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	for _, path := range []string{"/v1/locks/a", "/v1/locks/a/queue", "/v1/locks", "/v1/events", "/livez", "/openapi.yaml", "/docs/", "/docs/swagger-ui.css"} {
		got, head := s.get(path), s.send(http.MethodHead, path, "")
		head.want(t, http.StatusOK, nil)
		if head.text != "" || head.Header.Get("Content-Type") != got.Header.Get("Content-Type") {
			t.Errorf("HEAD %s: %q %v", path, head.text, head.Header)
		}
	}
	bad := s.send(http.MethodHead, "/v1/locks/a%20b", "")
	bad.want(t, http.StatusBadRequest, nil)
}

func TestWritesFromOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{}})
	for _, c := range []struct {
		method, header, value string
		status                int
	}{
		{"POST", "Origin", "https://evil.example", http.StatusForbidden},
		{"POST", "Origin", "null", http.StatusForbidden},
		{"POST", "Origin", s.url, http.StatusCreated},
		{"POST", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"POST", "Sec-Fetch-Site", "same-site", http.StatusForbidden},
		{"POST", "Sec-Fetch-Site", "same-origin", http.StatusCreated},
		{"GET", "Sec-Fetch-Site", "cross-site", http.StatusMethodNotAllowed},
	} {
		r := s.request(c.method, acquirePath, `{"holder": "a"}`)
		r.Header.Set(c.header, c.value)
		got := s.do(r)
		got.want(t, c.status, nil)
		if c.status == http.StatusForbidden {
			got.want(t, c.status, map[string]any{"code": "cross_origin"})
		}
	}
}
