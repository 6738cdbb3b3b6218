package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// FuzzAddress checks that no URL causes an internal error, or puts a script or style into a page.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"prefix=a&state=held&holder=h&cursor=c&refresh=5", "back=prefix%3Da&all=1", "revoked=deploy:production&token=3&slot=0", "name=hostile&token=6&slot=1&since=2031-05-04T12:00:00Z",
		"name=gpu:pool&token=9007199254740992", "why=key_invalid&back=//evil.example", "prefix=%22%3E%3Cscript%3E", "%zz", "state=</script>", "holder=\u202e", "token=-1&name=",
	} {
		f.Add(seed)
	}
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Name: "deploy:production", Holder: webtest.Hostile, TTL: time.Hour}, 0)
	h := web.New(web.Options{Locks: fx})
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/ui/", "/ui/locks/deploy:production", "/ui/revoke", "/ui/login"} {
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
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, form string) {
		r := httptest.NewRequest(http.MethodPost, "/ui/revoke", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		web.New(web.Options{Locks: webtest.NewBusyService()}).ServeHTTP(w, r)
		to, err := url.Parse(w.Header().Get("Location"))
		switch {
		case w.Code >= http.StatusInternalServerError, err != nil:
			t.Errorf("%q: %d %v", form, w.Code, err)
		case w.Code == http.StatusSeeOther && (to.Host != "" || !strings.HasPrefix(to.Path, "/ui/")):
			t.Errorf("%q leads to %v", form, to)
		}
	})
}
