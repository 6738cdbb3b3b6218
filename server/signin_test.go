package server_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/web"
)

// A signInHarness is a service with keys and a page, used by a browser.
type signInHarness struct {
	*testing.T
	*keyring
	server *server.Server
	tls    bool // the browser connects over TLS
}

func newSignInHarness(t *testing.T, o server.Options) *signInHarness {
	t.Helper()
	s := new(swappableService)
	s.reset(t)
	d := &signInHarness{T: t, keyring: newKeyring(t)}
	o.Locks, o.Keys = access.Guard(s, access.Limits{}), d.Keyring
	o.UI = web.New(web.Options{Locks: o.Locks})
	d.server = server.New(o)
	return d
}

// browse sends the request as a browser with the cookie does.
func (d *signInHarness) browse(method, path string, form url.Values, cookie *http.Cookie) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = "paddock.example"
	if d.tls {
		r.TLS = &tls.ConnectionState{}
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != nil {
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	}
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, r)
	res := w.Result()
	res.Request = r
	return res
}

// signIn posts the key and returns the answer and its cookie, nil if there is none.
func (d *signInHarness) signIn(key, back string) (*http.Response, *http.Cookie) {
	got := d.browse(http.MethodPost, "/ui/login", url.Values{"key": {key}, "back": {back}}, nil)
	if cookies := got.Cookies(); len(cookies) > 0 {
		return got, cookies[0]
	}
	return got, nil
}

func (d *signInHarness) wantRedirect(got *http.Response, to string) {
	d.Helper()
	at, err := got.Location() // relative, since a proxy may have put a prefix before
	if err != nil || got.StatusCode != http.StatusSeeOther || strings.HasPrefix(got.Header.Get("Location"), "/") || at.RequestURI() != to {
		d.Errorf("%d to %q, %v, want 303 to %q", got.StatusCode, got.Header.Get("Location"), err, to)
	}
}

func TestUserSignsInAndOut(t *testing.T) {
	t.Parallel()
	d := newSignInHarness(t, server.Options{})
	d.wantRedirect(d.browse("GET", "/ui/locks/a?all=1", nil, nil), "/ui/login?back=%2Fui%2Flocks%2Fa%3Fall%3D1")
	d.wantRedirect(d.browse("GET", "/ui/", nil, nil), "/ui/login")
	got, cookie := d.signIn(" "+d.secrets["read"]+"\n", "/ui/locks/a?all=1")
	d.wantRedirect(got, "/ui/locks/a?all=1")
	if got := d.browse("GET", "/ui/locks/a?all=1", nil, cookie); got.StatusCode != http.StatusOK {
		t.Errorf("%d with the cookie", got.StatusCode)
	}
	got = d.browse("POST", "/ui/logout", url.Values{}, cookie)
	d.wantRedirect(got, "/ui/login?why=signed_out")
	if c := got.Cookies()[0]; c.Name != cookie.Name || c.Value != "" || c.MaxAge >= 0 {
		t.Errorf("sign-out sets %v", c)
	}
}

func TestCookieAttributes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options server.Options
		tls     bool
		cookie  string
		secure  bool
	}{
		"over plain HTTP":          {cookie: "paddock"},
		"over TLS":                 {tls: true, cookie: "__Host-paddock", secure: true},
		"behind a TLS proxy":       {options: server.Options{SecureCookies: true}, cookie: "__Host-paddock", secure: true},
		"behind a proxy, over TLS": {options: server.Options{SecureCookies: true}, tls: true, cookie: "__Host-paddock", secure: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newSignInHarness(t, c.options)
			d.tls = c.tls
			got, cookie := d.signIn(d.secrets["admin"], "")
			if cookie.Name != c.cookie || cookie.Secure != c.secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode ||
				cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 8*3600 {
				t.Errorf("sets %v", cookie)
			}
			if stays := got.Header.Get("Strict-Transport-Security") != ""; stays != c.secure {
				t.Errorf("Strict-Transport-Security: %v", got.Header)
			}
			if got := d.browse("GET", "/ui/", nil, cookie); got.StatusCode != http.StatusOK {
				t.Errorf("%d with it", got.StatusCode)
			}
			other := &http.Cookie{Name: map[bool]string{true: "paddock", false: "__Host-paddock"}[c.secure], Value: cookie.Value}
			d.wantRedirect(d.browse("GET", "/ui/", nil, other), "/ui/login")
		})
	}
}

func TestInvalidKeyDoesNotSignIn(t *testing.T) {
	t.Parallel()
	d := newSignInHarness(t, server.Options{Attempts: access.NewAttempts(2, 0)})
	for _, c := range []struct{ key, to string }{
		{"", "/ui/login?why=key_missing"},
		{"pk_nobody", "/ui/login?back=%2Fui%2Flocks%2Fa&why=key_invalid"},
		{d.secrets["expired"], "/ui/login?back=%2Fui%2Flocks%2Fa&why=key_expired"},
		{"pk_nobody", "/ui/login?back=%2Fui%2Flocks%2Fa&why=rate_limited"},
	} {
		back := "/ui/locks/a"
		if c.key == "" {
			back = ""
		}
		got, cookie := d.signIn(c.key, back)
		if d.wantRedirect(got, c.to); cookie != nil {
			t.Errorf("sets %v", cookie)
		}
	}
	got, cookie := d.signIn(strings.Repeat("x", 9<<10), "")
	if d.wantRedirect(got, "/ui/login?why=invalid_request"); cookie != nil {
		t.Errorf("sets %v", cookie)
	}
	for _, cookie := range []*http.Cookie{{Name: "paddock", Value: "pk_nobody"}, {Name: "paddock", Value: d.secrets["expired"]}} {
		if got := d.browse("GET", "/ui/", nil, cookie); got.StatusCode != http.StatusSeeOther || !strings.Contains(got.Header.Get("Location"), "why=rate_limited") {
			t.Errorf("%d to %s", got.StatusCode, got.Header.Get("Location"))
		}
	}
}

func TestSignInDoesNotRedirectElsewhere(t *testing.T) {
	t.Parallel()
	d := newSignInHarness(t, server.Options{})
	for _, back := range []string{
		"", "/", "https://evil.example/ui/", "//evil.example/ui/", `/\evil.example/ui/`, `\\evil.example`, "/ui/../..//evil.example", "/ui//evil.example",
		"javascript:alert(1)", "/v1/locks", "/ui/%2e%2e/v1/locks", "/ui/x%2f..%2f..%2fv1", "/ui/login", "/ui/login?back=x", "/ui/logout", "/ui/\r\nSet-Cookie: a=b", "ui/", "?x", "/ui/" + strings.Repeat("x", 3000),
		"http:/ui/", "/ui/%2e%2e/..", "//user@evil.example:80/ui/", "/ui/\\..\\", "\x00/ui/",
		"/ui/%2E%2E/",
	} {
		got, cookie := d.signIn(d.secrets["read"], back)
		if d.wantRedirect(got, "/ui/"); cookie == nil {
			t.Errorf("%q: no cookie", back)
		}
	}
	for _, back := range []string{"/ui/locks/a%3Ab?all=1&back=prefix%3Dx", "/docs/", "/ui/?prefix=a%3A"} {
		got, _ := d.signIn(d.secrets["read"], back)
		d.wantRedirect(got, back)
	}
}

// TestCookieAuthenticatesOnlyThePage checks that the API accepts it only for reads that the page makes.
func TestCookieAuthenticatesOnlyThePage(t *testing.T) {
	t.Parallel()
	d := newSignInHarness(t, server.Options{})
	_, cookie := d.signIn(d.secrets["admin"], "")
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/v1/locks/billing:a/revoke", 401}, {"POST", "/v1/locks/a/acquire", 401}, {"POST", "/v1/tokens/verify", 401},
		{"PUT", "/v1/fenced/k", 401}, {"GET", "/v1/locks", 401}, {"GET", "/v1/locks/a", 401}, {"GET", "/v1/fenced/billing:k", 401},
		{"POST", "/v1/events", 401}, {"DELETE", "/docs/", 401},
		{"GET", "/v1/events", 200}, {"HEAD", "/v1/events/stream", 200}, {"GET", "/version", 200}, {"GET", "/openapi.json", 200},
		{"GET", "/openapi.yaml", 200}, {"GET", "/docs/", 200}, {"GET", "/docs/swagger-ui.css", 200}, {"GET", "/ui/", 200},
	} {
		got := d.browse(c.method, c.path, nil, cookie)
		if got.StatusCode != c.status && (c.status != http.StatusUnauthorized || got.StatusCode != http.StatusSeeOther) {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got.StatusCode, c.status)
		}
	}
}

func TestOtherSitesCannotUseTheCookie(t *testing.T) {
	t.Parallel()
	d := newSignInHarness(t, server.Options{})
	_, cookie := d.signIn(d.secrets["admin"], "")
	revoke := url.Values{"name": {"billing:a"}, "token": {"1"}, "reason": {"r"}}
	for path, form := range map[string]url.Values{
		"/ui/revoke": revoke, "/ui/sessions/" + sessionName: {"reason": {"r"}}, "/ui/logout": {}, "/ui/login": {"key": {d.secrets["read"]}},
	} {
		for _, from := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set(from[0], from[1])
			r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
			w := httptest.NewRecorder()
			if d.server.ServeHTTP(w, r); w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
				t.Errorf("POST %s with %v: %d %v", path, from, w.Code, w.Header())
			}
		}
	}
	twice := httptest.NewRequest(http.MethodGet, "/v1/events", nil)
	twice.AddCookie(&http.Cookie{Name: cookie.Name, Value: "pk_planted"})
	twice.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	w := httptest.NewRecorder()
	if d.server.ServeHTTP(w, twice); w.Code != http.StatusUnauthorized {
		t.Errorf("%d with two cookies", w.Code)
	}
}

func TestWithoutKeysThereIsNoSignIn(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{UI: http.NotFoundHandler()})
	if got := s.get("/ui/login"); got.StatusCode != http.StatusTemporaryRedirect || got.Header.Get("Location") != "../ui/" {
		t.Errorf("%d to %s", got.StatusCode, got.Header.Get("Location"))
	}
	k := newKeyring(t)
	bare := serve(t, server.Options{Keys: k.Keyring}) // no page, so no sign-in
	for _, path := range []string{"/ui/login", "/ui/assets/x/paddock.css", "/"} {
		r := bare.request(http.MethodGet, path, "")
		r.Header.Set("Accept", "text/html")
		bare.do(r).want(t, http.StatusUnauthorized, map[string]any{"code": "key_missing"})
	}
}

// TestInvalidCookieIsDeleted checks that it is deleted when the user sees why, and at sign-out, but not earlier.
func TestInvalidCookieIsDeleted(t *testing.T) {
	t.Parallel()
	d := newSignInHarness(t, server.Options{Attempts: access.NewAttempts(1, 0)})
	forgets := func(got *http.Response, name string) bool {
		c := got.Cookies()
		return len(c) == 1 && c[0].Name == name && c[0].Value == "" && c[0].MaxAge < 0 && c[0].Path == "/"
	}
	for _, d.tls = range []bool{false, true} {
		name := map[bool]string{false: "paddock", true: "__Host-paddock"}[d.tls]
		for _, bad := range []string{"pk_nobody", d.secrets["expired"]} {
			cookie := &http.Cookie{Name: name, Value: bad}
			for _, path := range []string{"/ui/", "/ui/locks/a", "/docs/"} {
				if got := d.browse("GET", path, nil, cookie); got.StatusCode != http.StatusSeeOther || !forgets(got, name) {
					t.Errorf("GET %s: %d sets %v", path, got.StatusCode, got.Cookies())
				}
			}
			got := d.browse("POST", "/ui/logout", url.Values{}, cookie)
			if d.wantRedirect(got, "/ui/login?why=signed_out"); !forgets(got, name) {
				t.Errorf("sign-out sets %v", got.Cookies())
			}
			if got := d.browse("GET", "/v1/events/stream", nil, cookie); len(got.Cookies()) > 0 {
				t.Errorf("a request of the script sets %v", got.Cookies())
			}
		}
		if got := d.browse("GET", "/ui/", nil, nil); len(got.Cookies()) > 0 {
			t.Errorf("without a cookie one is set: %v", got.Cookies())
		}
		if got := d.browse("GET", "/ui/", nil, &http.Cookie{Name: name, Value: d.secrets["read"]}); len(got.Cookies()) > 0 {
			t.Errorf("a valid cookie is set again: %v", got.Cookies())
		}
	}
	d.tls = false
	r := httptest.NewRequest("GET", "/ui/", nil)
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Authorization", "Bearer pk_nobody")
	r.AddCookie(&http.Cookie{Name: "paddock", Value: d.secrets["read"]})
	w := httptest.NewRecorder()
	if d.server.ServeHTTP(w, r); len(w.Result().Cookies()) > 0 {
		t.Errorf("an invalid header deletes the cookie: %v", w.Result().Cookies())
	}
}
