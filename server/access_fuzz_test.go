package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/server"
)

// newKeyedServer returns a Server with keys and a page, and the secret of a key with the role read.
func newKeyedServer(f *testing.F) (*server.Server, string) {
	f.Helper()
	k := newKeyring(f)
	page := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	return server.New(server.Options{
		Locks: access.Guard(inMemory(), access.Limits{}), Keys: k.Keyring, UI: page, Attempts: access.NewAttempts(1<<30, 0),
	}), k.secrets["read"]
}

// FuzzAuthorization checks that only "Bearer KEY" authenticates, and that answers do not repeat the header.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{
		"Bearer KEY", "bearer  KEY ", "Bearer", "Basic KEY", "KEY", "Bearer KEYx", "Bearer KEY KEY", "Bearer pk__", "", "Bearer \x00", "Bearer é", "\tBearer KEY", ",Bearer KEY",
	} {
		f.Add(seed)
	}
	h, key := newKeyedServer(f)
	f.Fuzz(func(t *testing.T, header string) {
		header = strings.ReplaceAll(header, "KEY", key)
		r := httptest.NewRequest(http.MethodGet, "/v1/locks", nil)
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fields := strings.Fields(header)
		good := len(fields) == 2 && strings.EqualFold(fields[0], "Bearer") && fields[1] == key
		switch {
		case w.Code == http.StatusOK && !good, w.Code != http.StatusOK && w.Code != http.StatusUnauthorized:
			t.Errorf("%q: %d", header, w.Code)
		case w.Code == http.StatusUnauthorized && strings.Contains(w.Body.String(), key):
			t.Errorf("%q is repeated: %s", header, w.Body)
		}
	})
}

// FuzzCookie checks that only the one cookie with the key authenticates.
func FuzzCookie(f *testing.F) {
	for _, seed := range []string{
		"paddock=KEY", "a=b; paddock=KEY", "paddock=KEY; paddock=KEY", "__Host-paddock=KEY", "paddock=\"KEY\"", "paddock=", "paddock", "PADDOCK=KEY", "paddock=KEY;;", "=;\x00,",
	} {
		f.Add(seed)
	}
	h, key := newKeyedServer(f)
	f.Fuzz(func(t *testing.T, header string) {
		header = strings.ReplaceAll(header, "KEY", key)
		r := httptest.NewRequest(http.MethodGet, "/v1/events", nil)
		r.Header.Set("Cookie", header)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		good := strings.Contains(header, "paddock=") && strings.Contains(header, key)
		if w.Code == http.StatusOK && !good || w.Code != http.StatusOK && w.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", header, w.Code)
		}
	})
}

// FuzzSignIn checks that only a valid key gets a cookie, and that no form redirects to another site.
func FuzzSignIn(f *testing.F) {
	for _, seed := range []string{
		"key=KEY&back=/ui/locks/a", "key=KEY&back=//evil.example/", "key=KEY&back=/ui/%5c..", "key=pk_x", "key=%zz", "back=/ui/", "key=KEY&key=x", "key=KEY&back=/docs/",
		"key=+KEY+&back=https:/ui/", "key=KEY;back=x", "key=KEY&back=/ui//evil.example", "key=KEY&back=%09//x", "key=KEY&back=/ui/?a%0d%0aSet-Cookie:x=y",
	} {
		f.Add(seed)
	}
	h, key := newKeyedServer(f)
	f.Fuzz(func(t *testing.T, form string) {
		form = strings.ReplaceAll(form, "KEY", key)
		r := httptest.NewRequest(http.MethodPost, "/ui/login", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		to, err := url.Parse(w.Header().Get("Location"))
		if err != nil || to.Host != "" || to.Scheme != "" {
			t.Fatalf("%q: %d to %v, %v", form, w.Code, to, err)
		}
		to = r.URL.ResolveReference(to)
		if w.Code != http.StatusSeeOther ||
			!strings.HasPrefix(to.EscapedPath(), "/ui/") && !strings.HasPrefix(to.EscapedPath(), "/docs/") {
			t.Errorf("%q: %d to %v", form, w.Code, to)
		}
		values, err := url.ParseQuery(form)
		good := err == nil && strings.TrimSpace(values.Get("key")) == key
		if in := len(w.Result().Cookies()) == 1; in != good || in == (to.Path == "/ui/login") {
			t.Errorf("%q: signed in is %t, to %v", form, in, to)
		}
		if strings.Contains(to.String(), key) && !strings.Contains(values.Get("back"), key) {
			t.Errorf("%q: the key is in the address %v", form, to)
		}
	})
}
