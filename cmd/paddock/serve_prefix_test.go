package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// TestPagesWorkUnderAPrefix follows all addresses of the pages behind a proxy that removes /paddock, redirects
// included. None leads out of the prefix.
func TestPagesWorkUnderAPrefix(t *testing.T) {
	t.Parallel()
	base := serveHere(t, pgtest.URL(t))
	if _, err := replica.Connect(t, client.Options{BaseURL: base}).DeclareTree(t.Context(), "tree"); err != nil {
		t.Fatal(err)
	}
	acquire(t, base, lock.Acquire{Locks: lock.One("tree:src:a"), Holder: "/ui/"})
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.StripPrefix("/paddock", httputil.NewSingleHostReverseProxy(to)))
	t.Cleanup(proxy.Close)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	seen, streams := map[string]bool{}, 0
	for next := []string{proxy.URL + "/paddock/"}; len(next) > 0; next = next[1:] {
		at, err := url.Parse(next[0])
		if err != nil {
			t.Fatal(err)
		}
		at.Fragment = ""
		switch {
		case at.Host != to.Host && "http://"+at.Host != proxy.URL || !strings.HasPrefix(at.Path, "/paddock/"):
			t.Errorf("an address leads to %s", at)
			continue
		case strings.HasSuffix(at.Path, "/v1/events/stream"):
			streams++
			continue
		case seen[at.Path]:
			continue
		}
		seen[at.Path] = true
		for _, address := range addressesAt(t, client, at) {
			next = append(next, address.String())
		}
	}
	for _, want := range []string{"/paddock/ui/", "/paddock/ui/locks/tree:src:a", "/paddock/ui/locks/tree", "/paddock/ui/sessions",
		"/paddock/ui/trees", "/paddock/ui/trees/tree", "/paddock/docs/", "/paddock/docs/swagger-ui-bundle.js", "/paddock/openapi.json"} {
		if !seen[want] {
			t.Errorf("no address leads to %s", want)
		}
	}
	if streams == 0 {
		t.Error("no page has a stream")
	}
}

var (
	inPage = regexp.MustCompile(` (?:href|src|action|data-stream)="([^"]*)"`)
	inDocs = regexp.MustCompile(`"swaggerJsonUrl":"([^"]*)"`)
)

// isForForms reports whether the address answers forms alone.
func isForForms(at *url.URL) bool {
	return strings.HasSuffix(at.Path, "/ui/revoke") || strings.HasSuffix(at.Path, "/ui/revocations")
}

// addressesAt returns the addresses to which the answer leads.
func addressesAt(t *testing.T, client *http.Client, at *url.URL) (all []*url.URL) {
	t.Helper()
	answer, err := client.Get(at.String())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusBadRequest && !isForForms(at) {
		t.Errorf("%s: %s, %v", at, answer.Status, err)
	}
	_ = answer.Body.Close()
	found := []string{}
	if to := answer.Header.Get("Location"); to != "" {
		found = append(found, to)
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		for _, address := range append(inPage.FindAllStringSubmatch(string(text), -1), inDocs.FindAllStringSubmatch(string(text), -1)...) {
			found = append(found, strings.ReplaceAll(address[1], "&amp;", "&"))
		}
	}
	for _, address := range found {
		to, err := at.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, to)
	}
	return all
}
