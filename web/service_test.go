package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// serviceOf returns the page of a service that is as info says, for the holder of the key, if there is one.
func serviceOf(t *testing.T, info paddock.ServiceInfo, keys ...access.Key) (*http.Response, string) {
	t.Helper()
	h := web.New(web.Options{Locks: webtest.NewBusyService(), Info: func(context.Context) paddock.ServiceInfo { return info }})
	r := httptest.NewRequest(http.MethodGet, "/ui/service", nil)
	for _, k := range keys {
		r = r.WithContext(access.WithKey(r.Context(), k))
	}
	return ask(t, h, r)
}

// partOf returns the part of the page about the cell.
func partOf(t *testing.T, body, cell string) string {
	t.Helper()
	_, part, found := strings.Cut(body, `aria-label="Cell `+cell+`"`)
	if !found {
		t.Fatalf("the page lacks the cell %s:\n%s", cell, body)
	}
	part, _, _ = strings.Cut(part, "</section>")
	return part
}

func TestServicePageTellsHowEachDatabaseIs(t *testing.T) {
	t.Parallel()
	answer, body := serviceOf(t, webtest.Info(t.Context()))
	wantStatus(t, answer, http.StatusOK)
	main := partOf(t, body, "main")
	wantText(t, main,
		`<dt>Epoch</dt><dd>1<small>for <span data-age-ms="864000000">10 d 0 h</span>: installed<`, "<dd>not paused<small>a quorum is required<",
		`<dt>PostgreSQL 17.5</dt><dd>primary<small>10.0.0.5:5432, runs for <span data-age-ms="864000000">10 d 0 h<`, "<bdi>ANY 1 (a, b)</bdi>",
		`<div class="bad"><dt>Replicas</dt><dd>2<small>and 1 without heartbeats<`, "7 d 0 h</span> ago<small>kept for 7 d<", "<dd>3072 MiB<",
		`<bdi>paddock-0</bdi><small class="num">3f0c2a9e51d7b864, this replica<`, `<span data-age-ms="93600000">1 d 2 h</span>`,
		`<span class="pill">silent</span>`, `<span data-age-ms="720000">12 min 0 s</span> ago`, "<div>120</div>", "<div>17</div>", "<div>4</div>",
		"<div>5120 KiB</div>", "<div>42ms</div>", `<span class="past">unknown</span>`, "2 tables</summary>", "event_batches", "<div>19 KiB</div>",
	)
	wantText(t, partOf(t, body, "spare"),
		`Grants are paused in cell spare for another <span data-left-ms="95000" data-end="0 s">1 min 35 s</span>:</strong> <bdi>the database was failed over</bdi>`,
		"<dd>paused<small>no quorum", "As a superuser, run: grant pg_monitor to &#34;paddock_app&#34;;")
	wantText(t, body, "<div>:8443</div>", "<div>file /etc/paddock/paddock.toml:1</div>", "all 3 settings")
	if strings.Contains(body, "<script>alert") || strings.Contains(main, "paused for") {
		t.Errorf("markup is alive, or grants are paused: %s", body)
	}
}

// TestServicePageWhileADatabaseIsAway shows what was known, and how old that is.
func TestServicePageWhileADatabaseIsAway(t *testing.T) {
	t.Parallel()
	info := webtest.Info(t.Context())
	answer, body := serviceOf(t, info)
	wantStatus(t, answer, http.StatusOK)
	away := partOf(t, body, "old")
	wantText(t, away, "The database is away.</strong> The database does not answer within 2s.",
		`What follows is <span data-age-ms="83000">1 min 23 s</span> old`, `<span class="pill">unknown</span>`, `<time datetime="2026-01-02T11:59:59.7Z">`, `<dt>Grants</dt><dd>unknown<`,
		`<dd>away, was the primary<small>10.0.0.5:5432</small>`, `class="old"`)
	// Only how old all of this is, and how long the replica that answers has run, goes on.
	if n := strings.Count(away, "data-age-ms"); n != 2 {
		t.Errorf("%d times of the database that is away go on: %s", n, away)
	}
	if n := strings.Count(away, `<span class="pill">alive<`); n != 1 {
		t.Errorf("%d replicas are called alive; want only the one that answers", n)
	}
	if strings.Contains(body, "As of </span>") {
		t.Error("the page has one age although its parts have several")
	}
	never := paddock.ServiceInfo{Databases: []paddock.DatabaseInfo{{Problem: "No answer."}}}
	_, body = serviceOf(t, never)
	wantText(t, body, "This replica has not read it since its start")
	wantNoText(t, body, "<dt>Epoch</dt>")
	_, body = serviceOf(t, paddock.ServiceInfo{Databases: info.Databases[:1]})
	wantText(t, body, "As of </span>", `datetime="2026-01-02T12:00:00Z"`)
	_, body = serviceOf(t, paddock.ServiceInfo{})
	wantText(t, body, "Nothing is known")
}

// TestServicePageOfAStandby says why nothing can be locked.
func TestServicePageOfAStandby(t *testing.T) {
	t.Parallel()
	info := webtest.Info(t.Context())
	info.Databases = info.Databases[:1]
	info.Databases[0].Server.Standby = true
	_, body := serviceOf(t, info)
	wantText(t, body, "The server is a standby.", `<div class="bad"><dt>PostgreSQL 17.5</dt><dd>standby<`)
}

// TestServicePageIsForAdminsOfAllNames, and so are the links to it.
func TestServicePageIsForAdminsOfAllNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key    access.Key
		status int
	}{
		{access.Key{Role: access.Admin}, http.StatusOK},
		{access.Key{Role: access.Admin, Prefixes: []string{"billing"}}, http.StatusForbidden},
		{access.Key{Role: access.Lock}, http.StatusForbidden},
	} {
		c.key.ID, c.key.Name = "k", "ops"
		answer, body := serviceOf(t, webtest.Info(t.Context()), c.key)
		wantStatus(t, answer, c.status)
		if linked := strings.Contains(body, ">Service</a>"); linked != (c.status == http.StatusOK) {
			t.Errorf("%v: the page is linked: %t", c.key, linked)
		}
		if shown := strings.Contains(body, "paddock-0"); shown != (c.status == http.StatusOK) {
			t.Errorf("%v: the page shows the replicas: %t", c.key, shown)
		}
	}
}

// TestAPageThatCannotBeReadLeadsToTheService, where an operator sees why.
func TestAPageThatCannotBeReadLeadsToTheService(t *testing.T) {
	t.Parallel()
	fx := webtest.NewBusyService()
	fx.BreakDown(&lock.Error{Code: lock.ErrUnavailable, Detail: "The database is away."})
	for _, path := range []string{"/ui/", "/ui/locks/hostile", "/ui/events"} {
		r, body := get(t, fx, path)
		wantStatus(t, r, http.StatusServiceUnavailable)
		if n := strings.Count(body, "What is known of the replicas and the database"); n != 2 { // one is hidden, for the script
			t.Errorf("%s: %d links to the page of the service", path, n)
		}
		wantText(t, body, `<p>The database is away.</p><p><a href="/ui/service">`)
	}
	fx.BreakDown(nil)
	if _, body := get(t, fx, "/ui/"); strings.Count(body, "What is known of the replicas") != 1 {
		t.Error("a page that was read leads to the service")
	}
}
