package server_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"a:b", "a%3Ab", "a%2Fb", "%2541", "%41", "a/b", "", "..", "%2e%2e", "a%00", "a%zz", "a;b", "a?b=c", "a#b", "%ff", "é", "a%", "a/acquire", "//",
	} {
		f.Add(seed)
	}
	var seen []string
	h := server.New(server.Options{Locks: &fake{lock: func(name string) (lock.Lock, error) {
		seen = append(seen, name)
		return lock.Record{Name: name}.Lock(instant), nil
	}}})
	f.Fuzz(func(t *testing.T, text string) {
		for _, segment := range []string{text, url.PathEscape(text)} {
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET /v1/locks/" + segment + " HTTP/1.1\r\nHost: p\r\n\r\n")))
			if err != nil || strings.ContainsAny(segment, "? ") {
				continue // net/http refuses it, or it is not only a path
			}
			seen = nil
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			checkSegment(t, segment, w.Code, seen)
		}
	})
}

// checkSegment checks that the segment is one name, decoded once, or refused.
func checkSegment(t *testing.T, segment string, status int, seen []string) {
	t.Helper()
	name, err := url.PathUnescape(segment)
	possible := err == nil && lock.CheckName(name) == nil
	switch {
	case possible && (status != http.StatusOK || len(seen) != 1 || seen[0] != name):
		t.Errorf("%q is the name %q: %d, and the service saw %q", segment, name, status, seen)
	case !possible && (status < http.StatusBadRequest || status >= http.StatusInternalServerError || len(seen) != 0):
		t.Errorf("%q is not a name: %d, and the service saw %q", segment, status, seen)
	}
}
