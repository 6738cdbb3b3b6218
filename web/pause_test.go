package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// TestAPauseOfGrantsIsShownOnEveryPage, with its reason and what to do for those who may see how the service is.
func TestAPauseOfGrantsIsShownOnEveryPage(t *testing.T) {
	t.Parallel()
	info := webtest.Info(t.Context()).Databases
	var paused []paddock.DatabaseInfo
	locks := memlock.New().Replica(1)
	for _, name := range []string{"busy", "idle"} {
		if _, err := locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One(name), LeaseID: lock.LeaseID{7}, Holder: "h", TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if err := locks.Release(t.Context(), lock.Release{Locks: []string{"idle"}, LeaseID: lock.LeaseID{7}}); err != nil {
		t.Fatal(err)
	}
	h := web.New(web.Options{
		Locks: locks, Info: webtest.Info, Paused: func() []paddock.DatabaseInfo { return paused },
		CellOf: func(string) string { return "spare" },
	})
	page := func(path string, k access.Key) string {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		answer, body := ask(t, h, r.WithContext(access.WithKey(r.Context(), k)))
		wantStatus(t, answer, http.StatusOK)
		return body
	}
	operator := access.Key{ID: "k", Name: "ops", Role: access.Admin}
	wantNoText(t, page("/ui/", operator), "Grants are paused", "not granted until")
	paused = info // those that are not paused say so themselves
	for _, path := range []string{"/ui/", "/ui/locks/hostile", "/ui/events", "/ui/freezes", "/ui/trees", "/ui/rules", "/ui/sessions"} {
		body := page(path, operator)
		wantText(t, body, `Grants are paused in cell spare for another <span data-left-ms="95000" data-end="0 s">1 min 35 s</span>:</strong> <bdi>the database was failed over</bdi>`,
			"2026-01-02 12:01:35", `<code>paddock epoch open --reason`, `<a href="/ui/service" data-key="service">`)
		wantNoText(t, body, "paused in cell main", "paused in cell old")
	}
	wantText(t, page("/ui/locks/never-used", operator), "not granted until", "since grants are paused")
	wantNoText(t, page("/ui/service", operator), `data-key="service"`, `id="pauses" class="parts" data-fragment><div`)
	wantText(t, page("/ui/service", operator), "Grants are paused in cell spare", "paddock epoch open")
	wantText(t, page("/ui/?state=free", operator), `not granted until <time datetime="2026-01-02T12:01:35Z" data-short>12:01:35</time>`)
	wantNoText(t, page("/ui/?state=held", operator), "not granted until")
	body := page("/ui/", access.Key{ID: "k", Name: "team", Role: access.Lock})
	wantText(t, body, "Grants are paused in cell spare for another", "2026-01-02 12:01:35")
	wantNoText(t, body, "failed over", "epoch open", "/ui/service")
	paused = info[:1]
	wantNoText(t, page("/ui/locks/never-used", operator), "Grants are paused", "not granted until")
}
