package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// newStockedServer returns a Server with a held lock and events.
func newStockedServer(f *testing.F) *server.Server {
	f.Helper()
	locks := memlock.New().Replica(1)
	if _, err := locks.Acquire(f.Context(), lock.Acquire{Locks: lock.One("a"), Holder: "h"}); err != nil {
		f.Fatal(err)
	}
	return server.New(server.Options{Locks: locks})
}

// FuzzQuery checks that every route with parameters accepts or refuses any query. No call waits here.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "prefix=a:&state=held&holder=h&limit=7&cursor=c", "cursor=after%20a", "limit=99999999999999999999", "lock=a&prefix=b", "limit=1;limit=2", "%zz", "limit=-0",
		"cursor=now", "cursor=1", "cursor=-1", "cursor=%00", "state=%ff", "prefix=%", "LIMIT=1", "limit=1&limit=1", "cursor=0x1", "cursor=+1", "holder='; drop table locks",
	} {
		f.Add(seed)
	}
	h := newStockedServer(f)
	f.Fuzz(func(t *testing.T, query string) {
		if values, _ := url.ParseQuery(query); values.Get("wait_ms") != "" {
			return
		}
		for _, path := range []string{"/v1/locks", "/v1/events", "/v1/locks/a", "/v1/locks/a/queue", "/v1/events/stream", "/v1/sessions"} {
			r := httptest.NewRequest(http.MethodHead, path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
				t.Errorf("%s?%s: %d", path, query, w.Code)
			}
		}
	})
}

// FuzzIfNoneMatch checks that the answer is 200 with the lock, or 304 because its version is listed.
func FuzzIfNoneMatch(f *testing.F) {
	h := newStockedServer(f)
	look := func(tags string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/v1/locks/a", nil)
		r.Header.Set("If-None-Match", tags)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	tag := look("").Header().Get("ETag")
	for _, seed := range []string{"", "*", tag, `"x", ` + tag, `W/`, `"`, `W/"x" "y"`, "W/W/\"x\"", ",,,", `"\"`, "\x00", tag + tag} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tags string) {
		w := look(tags)
		if w.Code != http.StatusOK && w.Code != http.StatusNotModified || w.Header().Get("ETag") != tag || (w.Code == http.StatusOK) != (w.Body.Len() > 0) {
			t.Errorf("%q: %d %v %s", tags, w.Code, w.Header(), w.Body)
		}
	})
}
