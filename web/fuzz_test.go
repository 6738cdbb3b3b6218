package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// FuzzAddress checks that no URL causes an internal error, or puts a script or style into a page.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"prefix=a&state=held&holder=h&cursor=c&refresh=5", "back=prefix%3Da&all=1", "revoked=deploy:production&token=3&slot=0", "name=hostile&token=6&slot=1&since=2031-05-04T12:00:00Z",
		"name=gpu:pool&token=9007199254740992", "why=key_invalid&back=//evil.example", "prefix=%22%3E%3Cscript%3E", "%zz", "state=</script>", "all=1&revoked=1&cursor=7fffffffffffffff&trail=", "holder=\u202e", "token=-1&name=",
	} {
		f.Add(seed)
	}
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("deploy:production"), Holder: webtest.Hostile, TTL: time.Hour}, 0)
	sessions, session := sessionsForFuzzing(f)
	pages := map[string]http.Handler{"/ui/sessions": sessions, session: sessions}
	for _, path := range []string{"/ui/trees", "/ui/trees/t", "/ui/freezes", "/ui/freezes/t", "/ui/rules"} {
		pages[path] = sessions
	}
	for _, path := range []string{"/ui/", "/ui/locks/deploy:production", "/ui/revoke", "/ui/login"} {
		pages[path] = web.New(web.Options{Locks: fx})
	}
	f.Fuzz(func(t *testing.T, query string) {
		for path, h := range pages {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= http.StatusInternalServerError || inline.MatchString(w.Body.String()) {
				t.Errorf("%s?%s: %d %s", path, query, w.Code, inline.FindString(w.Body.String()))
			}
		}
	})
}

// FuzzRevokeForm checks that no form causes an internal error or redirects to another site.
func FuzzRevokeForm(f *testing.F) {
	for _, seed := range []string{
		"name=deploy:production&token=4&reason=r&back=prefix%3Da", "name=deploy:production&token=4&reason=r&back=//evil.example/", "name=a/b&token=4&reason=r", "name=a&token=4x&reason=",
		"name=a&token=4&slot=1001&since=now&reason=r", "%zz", "name=deploy:production&token=4&reason=%00", "name=a;token=4", "name=deploy:production&token=4&reason=r&back=lock%3Da%26all%3D1",
		"root=t", "root=//evil.example", "root=a&confirm=1", "confirm=1", "scope=t&reason=r&minutes=30", "scope=//evil.example&reason=r", "scope=a:&reason=r&minutes=1e9",
	} {
		f.Add(seed)
	}
	sessions, session := sessionsForFuzzing(f)
	f.Fuzz(func(t *testing.T, form string) {
		for path, h := range map[string]http.Handler{
			"/ui/revoke": web.New(web.Options{Locks: webtest.NewBusyService()}), session: sessions,
			"/ui/trees": sessions, "/ui/trees/t": sessions, "/ui/freezes": sessions, "/ui/freezes/t": sessions,
		} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			to, err := url.Parse(w.Header().Get("Location"))
			switch {
			case w.Code >= http.StatusInternalServerError, err != nil:
				t.Errorf("%s with %q: %d %v", path, form, w.Code, err)
			case w.Code == http.StatusSeeOther && (to.Host != "" || !strings.HasPrefix(to.Path, "/ui/")):
				t.Errorf("%s with %q leads to %v", path, form, to)
			}
		}
	})
}

// sessionsForFuzzing returns the pages of a service with a session and the tree t, and the path of the session's page.
func sessionsForFuzzing(f *testing.F) (h http.Handler, path string) {
	f.Helper()
	locks := memlock.New().Replica(1)
	s, err := locks.OpenSession(f.Context(), lock.OpenSession{Holder: "<script>alert(1)</script>", TTL: lock.MaxTTL})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := locks.Acquire(f.Context(), lock.Acquire{Locks: lock.One("a"), Holder: "h", SessionID: s.ID}); err != nil {
		f.Fatal(err)
	}
	if _, err := locks.DeclareTree(f.Context(), "t"); err != nil {
		f.Fatal(err)
	}
	return web.New(web.Options{Locks: locks}), "/ui/sessions/" + s.ID.Ref().String()
}
