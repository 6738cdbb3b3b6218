package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/web"
)

// readBy requests the page with the key in the context, from a Service behind a Guard.
func readBy(t *testing.T, k access.Key, r *http.Request) (*http.Response, string) {
	t.Helper()
	h := web.New(web.Options{Locks: access.Guard(webtest.NewBusyService(), access.Limits{})})
	return ask(t, h, r.WithContext(access.WithKey(r.Context(), k)))
}

func TestSignInForm(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"":                   {`<form method="post" action="/ui/login">`, `type="password" required autofocus`, `name="back" value=""`},
		"?back=%2Fui%2F%3Fa": {`name="back" value="/ui/?a"`},
		"?back=%22%3E%3Cscript%3E&why=key_invalid": {`value="&#34;&gt;&lt;script&gt;"`, "mistyped or revoked", `role="alert"`},
		"?why=key_expired":                         {"has expired"},
		"?why=rate_limited":                        {"Wait a minute"},
		"?why=key_missing":                         {"nothing was done"},
		"?why=signed_out":                          {"You are signed out", `role="status"`},
		"?why=%3Cb%3E":                             {"Sign in"},
	} {
		r, body := get(t, webtest.NewService(), "/ui/login"+query)
		wantStatus(t, r, http.StatusOK)
		wantText(t, body, want...)
		if strings.Contains(body, "<script") || strings.Contains(body, "<b>") || strings.Contains(body, "Sign out") {
			t.Errorf("%s: %s", query, body)
		}
	}
}

func TestPageShowsTheKeyAndRole(t *testing.T) {
	t.Parallel()
	get := func(k access.Key) string {
		r, body := readBy(t, k, httptest.NewRequest(http.MethodGet, "/ui/", nil))
		wantStatus(t, r, http.StatusOK)
		return body
	}
	for role, may := range map[access.Role]bool{access.Read: false, access.Lock: false, access.Admin: true} {
		body := get(access.Key{ID: "k", Name: "<ops>", Role: role})
		wantText(t, body, "Signed in as <bdi>&lt;ops&gt;</bdi> <small>"+role.String()+"</small>", `action="/ui/logout"`)
		if strings.Contains(body, "data-revoke") != may {
			t.Errorf("%s: the page offers to revoke: %t", role, !may)
		}
	}
	_, open := ask(t, web.New(web.Options{Locks: webtest.NewBusyService()}), httptest.NewRequest(http.MethodGet, "/ui/", nil))
	if strings.Contains(open, "Signed in") || !strings.Contains(open, "data-revoke") {
		t.Error("a page without keys shows a key, or offers no revoke")
	}
}

func TestListIsNarrowedToTheKeysPrefixes(t *testing.T) {
	t.Parallel()
	k := access.Key{ID: "k", Name: "n", Role: access.Read, Prefixes: []string{"deploy", "cron", "billing"}}
	for asked, want := range map[string]struct {
		status int
		prefix string
	}{
		"":              {http.StatusOK, "deploy:"},
		"c":             {http.StatusOK, "cron:"},
		"billing":       {http.StatusOK, "billing:"},
		"billing:":      {http.StatusOK, "billing:"},
		"billing:month": {http.StatusOK, "billing:month"},
		"billing2":      {http.StatusForbidden, "billing2"},
		"hostile":       {http.StatusForbidden, "hostile"},
	} {
		r, body := readBy(t, k, httptest.NewRequest(http.MethodGet, "/ui/?prefix="+url.QueryEscape(asked), nil))
		wantStatus(t, r, want.status)
		wantText(t, body, `name="prefix" value="`+want.prefix+`"`, `<a href="/ui/?prefix=cron%3A">cron:</a>`)
		if strings.Contains(body, "hostile</") {
			t.Errorf("%q shows names that the key does not cover", asked)
		}
		followed := strings.Contains(body, `data-stream="/v1/events/stream?prefix=`+url.QueryEscape(want.prefix)+`"`)
		if followed != (want.status == http.StatusOK) {
			t.Errorf("%q: the page has a stream: %t", asked, followed)
		}
	}
}

func TestRefusalsOfTheGuardAreShown(t *testing.T) {
	t.Parallel()
	form := form("deploy:production", "4", "stuck", "").Encode()
	for name, c := range map[string]struct {
		key          access.Key
		method, path string
		words        string
	}{
		"asking to revoke without the role": {access.Key{Role: access.Lock}, "GET", "/ui/revoke?name=deploy:production&token=4", "needs the role admin"},
		"revoking without the role":         {access.Key{Role: access.Lock}, "POST", "/ui/revoke", "role admin"},
		"asking to revoke another's":        {access.Key{Role: access.Admin, Prefixes: []string{"cron"}}, "GET", "/ui/revoke?name=deploy:production&token=4", "does not cover"},
		"revoking another's":                {access.Key{Role: access.Admin, Prefixes: []string{"cron"}}, "POST", "/ui/revoke", "does not cover"},
		"looking at another's":              {access.Key{Role: access.Admin, Prefixes: []string{"deploy2"}}, "GET", "/ui/locks/deploy:production", "does not cover"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.key.ID, c.key.Name = "k", "n"
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			got, body := readBy(t, c.key, r)
			wantStatus(t, got, http.StatusForbidden)
			wantText(t, body, c.words, `role="alert"`)
			if strings.Contains(c.path, "revoke") && strings.Contains(body, "<textarea") || strings.Contains(body, "pipeline 1881") {
				t.Errorf("it is not refused: %s", body)
			}
		})
	}
}
