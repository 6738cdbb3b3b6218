package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/web"
)

// counted returns the list with these counts, for the holder of the key, if there is one.
func counted(t *testing.T, o web.Overview, keys ...access.Key) string {
	t.Helper()
	h := web.New(web.Options{Locks: webtest.NewBusyService(), Overview: func() web.Overview { return o }})
	r := httptest.NewRequest(http.MethodGet, "/ui/?prefix=billing", nil)
	for _, k := range keys {
		r = r.WithContext(access.WithKey(r.Context(), k))
	}
	answer, body := ask(t, h, r)
	wantStatus(t, answer, http.StatusOK)
	return body
}

func TestListBeginsWithCounts(t *testing.T) {
	t.Parallel()
	body := counted(t, web.Overview{
		Schema: "team_b", CountedAt: time.Now(), StartedAt: time.Now().Add(-time.Hour), Known: 50_123, Held: 4711, InGrace: 3, Contended: 1, Waiters: 12,
		LongestWait: 95 * time.Second, LongestHeld: 26 * time.Hour, Expired: 7, StaleTokens: 2, Deadlocks: 4,
	})
	wantText(t, body,
		"<dt>Known locks</dt><dd><a href=\"/ui/\">50123<", `<a href="/ui/?state=held">4711</a> <small>and 3 in grace<`,
		`<a href="/ui/?contended=true&amp;sort=waiters">12</a> <small>on 1 lock<`, `<dt>Longest wait</dt><dd><a href="/ui/?contended=true&amp;sort=waiters">1 min 35 s<`,
		`<a href="/ui/?sort=age">1 d 2 h<`,
		`<div class="some"><dt>Expired</dt><dd><a href="/ui/events?kind=expired">7</a></dd>`, `<div class=""><dt>Revoked</dt><dd><a href="/ui/events?kind=revoked">0<`,
		`<div class="bad"><dt>Stale tokens</dt><dd><a href="/ui/events?kind=refused">2<`, `<div class="some"><dt>Deadlocks</dt><dd><a href="/ui/events?kind=deadlock">4<`, "counted <span data-age-ms=", "ago, schema team_b<", `by this replica, since it started <span data-age-ms="3600`)
}

func TestCountsOfAnEmptyService(t *testing.T) {
	t.Parallel()
	body := counted(t, web.Overview{CountedAt: time.Now()})
	wantText(t, body, "<dt>Held</dt><dd><a href=\"/ui/?state=held\">0</a></dd>", "<dt>Waiters</dt><dd>0</dd>",
		`<dt>Longest wait</dt><dd><span class="past">none<`, `<dt>Held longest</dt><dd><span class="past">none<`)
	wantText(t, counted(t, web.Overview{}), "The locks are being counted.")
}

// TestCountsAreForKeysThatCoverAllNames: they tell of locks that another key does not cover.
func TestCountsAreForKeysThatCoverAllNames(t *testing.T) {
	t.Parallel()
	o := web.Overview{CountedAt: time.Now(), Known: 50_123}
	wantText(t, counted(t, o, access.Key{ID: "k", Name: "ops", Role: access.Read}), "50123")
	narrow := counted(t, o, access.Key{ID: "k", Name: "billing", Role: access.Admin, Prefixes: []string{"billing"}})
	if strings.Contains(narrow, "50123") || strings.Contains(narrow, "overview") {
		t.Error("a key for some names sees the counts of all")
	}
	if _, body := get(t, webtest.NewBusyService(), "/ui/"); strings.Contains(body, "overview") {
		t.Error("a page without counts has a place for them")
	}
}
