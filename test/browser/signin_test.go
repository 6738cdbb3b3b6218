package browser_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/web"
)

// An authFixture is a complete service with keys: page, server and locks in memory.
type authFixture struct {
	*testing.T
	path    string // of the auth file
	locks   paddock.Service
	ids     map[string]string // of the keys, by name
	secrets map[string]string
	server  *server.Server
}

// newAuthFixture returns an authFixture with a key of each role, and two held locks.
func newAuthFixture(t *testing.T, o server.Options) *authFixture {
	t.Helper()
	g := &authFixture{T: t, path: filepath.Join(t.TempDir(), "keys.json"), locks: memlock.New().Replica(1), ids: map[string]string{}, secrets: map[string]string{}}
	for name, role := range map[string]access.Role{"looker": access.Read, "worker": access.Lock, "operator": access.Admin} {
		g.issue(name, role)
	}
	keys, err := access.Open(g.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	for _, name := range []string{"billing:invoices", "deploy:production"} {
		if _, err := g.locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One(name), Holder: "holder of " + name, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	locks := access.Guard(g.locks, access.Limits{})
	o.Locks, o.Keys, o.UI = locks, keys, web.New(web.Options{Locks: locks, Overview: ordinaryCounts})
	g.server = server.New(o)
	return g
}

// ordinaryCounts returns the counts of a service with something of each.
func ordinaryCounts() web.Overview {
	return web.Overview{
		CountedAt: time.Now(), StartedAt: time.Now().Add(-100 * time.Hour), Known: 549, Held: 540, InGrace: 3, Contended: 4, Waiters: 12,
		LongestWait: 200 * time.Second, LongestHeld: 100 * time.Hour, Expired: 12, Revoked: 3, Deadlocks: 2, StaleTokens: 1,
	}
}

func (g *authFixture) issue(name string, role access.Role) {
	g.Helper()
	key, secret, err := access.Issue(name, role, nil, time.Time{})
	if err == nil {
		err = access.Add(g.path, key)
	}
	if err != nil {
		g.Fatal(err)
	}
	g.ids[name], g.secrets[name] = key.ID, secret
}

// visit opens a tab without cookies.
func (g *authFixture) visit(browser context.Context) *tab {
	g.Helper()
	b := show(g.T, browser, g.server, chromedp.WithNewBrowserContext())
	b.allowed = "Failed to load resource" // for refused pages
	return b
}

// enter submits the key in the form. It waits for the autofocus first: the browser logs one that comes too late.
func (b *tab) enter(secret string) {
	b.Helper()
	b.do(b.ctx, chromedp.WaitVisible(chromedp.CSS("#key:focus")))
	b.do(b.ctx, chromedp.SendKeys(chromedp.CSS("#key"), secret), chromedp.Click(chromedp.CSS(".sheet .strong")))
}

// TestSigningInInABrowser tests a service with keys in a real browser.
func TestSigningInInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"signing in returns to the requested page": visitorSignsIn,
		"an operator revokes and signs out":        operatorRevokes,
		"a revoked key redirects to the form":      revokedKeyLeaves,
		"a link on another site works":             linkFromElsewhere,
		"a browser keeps the secure cookie":        secureCookieIsKept,
		"everything works under a prefix":          worksUnderAPrefix,
	})
}

func visitorSignsIn(t *testing.T, browser context.Context) {
	g := newAuthFixture(t, server.Options{})
	b := g.visit(browser)
	b.visit("/ui/locks/billing:invoices?all=1", 1280, 800)
	b.wait("location.pathname === '/ui/login' && document.activeElement.id === 'key'")
	b.enter("pk_wrong_key")
	b.wait("document.querySelector('.problem')?.innerText === 'Unknown API key: mistyped or revoked.'")
	b.enter(g.secrets["looker"])
	b.wait("location.pathname + location.search === '/ui/locks/billing:invoices?all=1'")
	b.waitLive()
	if got := b.text(".reader span"); got != "Signed in as looker read" {
		t.Errorf("it shows %q", got)
	}
	if n := value[int](b, "document.querySelectorAll('[data-revoke]').length"); n != 0 {
		t.Errorf("%d leases have a revoke button", n)
	}
	if got := value[string](b, "document.cookie"); got != "" {
		t.Errorf("a script reads %q", got)
	}
	if _, err := g.locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One("billing:invoices"), Holder: "next", Wait: time.Second}); err == nil {
		t.Error("the lock was free")
	}
	b.wait("[...document.querySelectorAll('.events tbody tr')].some((row) => row.innerText.includes('next'))")
	b.visit("/ui/revoke?name=billing:invoices&token=1", 1280, 800)
	b.wait("document.querySelector('.problem')?.innerText.includes('has the role read, but revoking needs the role admin')")
	if n := value[int](b, "document.querySelectorAll('textarea').length"); n != 0 {
		t.Error("it asks for a reason")
	}
}

func operatorRevokes(t *testing.T, browser context.Context) {
	g := newAuthFixture(t, server.Options{})
	b := g.visit(browser)
	b.visit("/ui/", 1280, 800)
	b.enter(g.secrets["operator"])
	b.wait("document.querySelectorAll('tbody tr').length === 2")
	b.waitLive()
	b.visit("/ui/", 390, 844)
	b.waitLive()
	b.wantFirstLockAbove(300)
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Click(chromedp.CSS("[data-revoke] button")), chromedp.WaitVisible(chromedp.CSS("dialog[open] textarea")))
	b.do(b.ctx, chromedp.SendKeys(chromedp.CSS("#reason"), "stuck"), chromedp.Click(chromedp.CSS("dialog .strong")))
	b.wait("document.querySelector('.notice')?.innerText.startsWith('Revoked.')")
	l, err := g.locks.Lock(t.Context(), "billing:invoices")
	if err != nil || l.State != lock.Free {
		t.Errorf("the lock is %s, %v", l.State, err)
	}
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".reader button")))
	b.wait("location.pathname === '/ui/login' && document.querySelector('.notice')?.innerText.startsWith('You are signed out.')")
	b.visit("/ui/", 1280, 800)
	b.wait("location.pathname === '/ui/login'")
}

func revokedKeyLeaves(t *testing.T, browser context.Context) {
	g := newAuthFixture(t, server.Options{})
	b := g.visit(browser)
	b.visit("/ui/", 1280, 800)
	b.enter(g.secrets["worker"])
	b.wait("document.querySelectorAll('tbody tr').length === 2")
	b.waitLive()
	if _, err := access.Revoke(g.path, g.ids["worker"]); err != nil {
		t.Fatal(err)
	}
	b.wait("location.pathname === '/ui/login' && document.querySelector('.problem')?.innerText.includes('mistyped or revoked')")
}

// linkFromElsewhere follows a link on another site, for which browsers send no SameSite=Strict cookie.
func linkFromElsewhere(t *testing.T, browser context.Context) {
	g := newAuthFixture(t, server.Options{})
	b := g.visit(browser)
	b.visit("/ui/", 1280, 800)
	b.enter(g.secrets["looker"])
	b.wait("document.querySelectorAll('tbody tr').length === 2")
	here := b.server.URL
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if _, err := w.Write([]byte(`<link rel="icon" href="data:,"><a href="` + here + `/ui/locks/deploy:production">look</a>`)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(chat.Close)
	b.server.URL = strings.Replace(chat.URL, "127.0.0.1", "localhost", 1)
	b.visit("/", 1280, 800)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("a")))
	b.wait("location.pathname === '/ui/locks/deploy:production' && document.querySelector('.leases .holder')?.innerText === 'holder of deploy:production'")
	b.waitLive()
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".reader button")))
	b.wait("location.pathname === '/ui/login'")
	b.visit("/", 1280, 800)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("a")))
	b.wait("location.pathname + location.search === '/ui/login?back=%2Fui%2Flocks%2Fdeploy%3Aproduction'")
}

func secureCookieIsKept(t *testing.T, browser context.Context) {
	g := newAuthFixture(t, server.Options{SecureCookies: true})
	b := g.visit(browser)
	b.server.URL = strings.Replace(b.server.URL, "127.0.0.1", "localhost", 1) // browsers treat it as secure without TLS
	b.visit("/ui/", 1280, 800)
	b.enter(g.secrets["looker"])
	b.wait("document.querySelectorAll('tbody tr').length === 2")
	b.waitLive()
}
