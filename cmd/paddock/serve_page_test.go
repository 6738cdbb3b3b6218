package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// A browser is a session at the page of a replica.
type browser struct {
	*keyedReplica
	browser *http.Client
}

// signIn returns a browser that is signed in with the key.
func (h *keyedReplica) signIn(k issuedKey) browser {
	h.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.Fatal(err)
	}
	r := browser{h, &http.Client{Jar: jar, Timeout: proctest.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if status, page := r.request(http.MethodPost, "/ui/login",
		url.Values{"key": {k.secret}}); status != http.StatusSeeOther {
		h.Fatalf("signing in: %d\n%s", status, page)
	}
	return r
}

// request requests a page, or posts a form.
func (r browser) request(method, path string, form url.Values) (int, string) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, r.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		r.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := r.browser.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		r.Fatal(err)
	}
	return response.StatusCode, string(page)
}

// TestPageAndAPIRequireTheSameRights uses the page and the API with a key that may only read some locks.
func TestPageAndAPIRequireTheSameRights(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	admin, k := h.newLoadedKey(access.Admin), h.newLoadedKey(access.Read, "billing")
	locks, err := h.flags(admin).client()
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]lock.Token{}
	for _, name := range []string{"billing:x", "strangers:x"} {
		g, err := locks.Acquire(t.Context(), lock.Acquire{Name: name, Holder: "who has " + name, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = g.Token
	}
	h.expectStatus(http.StatusForbidden, "POST", "/v1/locks/billing:y/acquire", aLease, k.secret)
	h.expectStatus(http.StatusForbidden, "GET", "/v1/locks/strangers:x", "", k.secret)

	reads, revokes := h.signIn(k), h.signIn(admin)
	for path, want := range map[string]int{
		"/ui/locks/billing:x": http.StatusOK, "/ui/?prefix=billing%3A": http.StatusOK, "/ui/": http.StatusOK,
		"/ui/locks/strangers:x": http.StatusForbidden, "/ui/?prefix=strangers": http.StatusForbidden,
		"/ui/?holder=who": http.StatusOK,
	} {
		status, page := reads.request(http.MethodGet, path, nil)
		if status != want || strings.Contains(page, "who has strangers:x") {
			t.Errorf("GET %s: %d, want %d and nothing that the key does not cover:\n%s", path, status, want, page)
		}
	}
	for name, token := range tokens {
		form := url.Values{"name": {name}, "token": {fmt.Sprint(token)}, "reason": {"because"}}
		if status, page := reads.request(http.MethodPost, "/ui/revoke", form); status != http.StatusForbidden {
			t.Errorf("a reader revokes %s: %d\n%s", name, status, page)
		}
		if status, page := revokes.request(http.MethodPost, "/ui/revoke", form); status != http.StatusSeeOther {
			t.Errorf("an admin revokes %s: %d\n%s", name, status, page)
		}
	}
}
