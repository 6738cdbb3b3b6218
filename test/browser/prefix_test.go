package browser_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// worksUnderAPrefix signs in, follows a lock live, revokes and reads the documentation behind a proxy that removes
// /paddock.
func worksUnderAPrefix(t *testing.T, browser context.Context) {
	g := newAuthFixture(t, server.Options{})
	b := show(t, browser, http.StripPrefix("/paddock", g.server), chromedp.WithNewBrowserContext())
	b.allowed = "Failed to load resource" // for refused pages
	b.visit("/paddock/", 1280, 800)
	b.wait("location.pathname === '/paddock/ui/login' && document.activeElement.id === 'key'")
	b.enter(g.secrets["operator"])
	b.wait("location.pathname === '/paddock/ui/'")
	b.waitLive()
	b.follow("a[href$='ui/locks/billing:invoices']", "/paddock/ui/locks/billing:invoices")
	b.waitLive()
	if _, err := g.locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One("billing:invoices"), Holder: "next", Wait: time.Millisecond}); err == nil {
		t.Error("the lock was free")
	}
	b.wait("[...document.querySelectorAll('.events tbody tr')].some((row) => row.innerText.includes('next'))")
	b.follow("nav a[href$='ui/trees']", "/paddock/ui/trees")
	b.follow("nav a[href$='docs/']", "/paddock/docs/")
	b.wait("document.querySelector('#swagger-ui .title')?.innerText.includes('Paddock')")
}

// follow clicks a link, which leads to the path.
func (b *tab) follow(link, path string) {
	b.Helper()
	b.do(b.ctx, chromedp.Click(chromedp.CSS(link)))
	b.wait("location.pathname === '" + path + "' && document.readyState === 'complete'")
}
