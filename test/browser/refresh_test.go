package browser_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

func unreachableIsSaid(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.allowed = "Failed to load resource"
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	fx.BreakDown(&lock.Error{Code: lock.ErrUnavailable, Detail: "The database is away."})
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	b.wait("document.getElementById('trouble').firstElementChild.innerText === 'Not refreshed. The database is away.'")
	b.wait("document.getElementById('live').textContent === 'not refreshed' && document.querySelector('#as-of time').textContent === '12:00:00'")
	fx.BreakDown(nil)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	b.waitLive()
	b.wait("document.getElementById('trouble').hidden")
	fx.Feed.Cut()
	b.server.Close()
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	b.wait("document.getElementById('trouble').firstElementChild.innerText === 'Not refreshed. The service cannot be reached.'")
	if n := value[int](b, "document.querySelectorAll('#list.stale tbody tr').length"); n != 7 {
		t.Errorf("%d stale rows, want 7", n)
	}
}

// withoutPeriods disables the page's periodic refreshes.
func (b *tab) withoutPeriods() {
	b.Helper()
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: "{ const soon = setTimeout; window.setTimeout = (f, ms) => ms < 4000 ? soon(f, ms) : 0; }",
	})
	if err != nil {
		b.Fatal(err)
	}
}

func endIsLookedUp(t *testing.T, browser context.Context) {
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("n"), Holder: "h", TTL: 1500 * time.Millisecond}, 0)
	b := open(t, browser, fx)
	b.withoutPeriods()
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	fx.Pass(time.Minute)
	b.wait("document.querySelector('.pill').textContent === 'free'")
}

func renewalShows(t *testing.T, browser context.Context) {
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("n"), Holder: "h", TTL: time.Minute}, 0)
	b := open(t, browser, fx)
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	fx.Apply(lock.Renew{Locks: []string{"n"}, LeaseID: webtest.CallID(1), TTL: 24 * time.Hour}, 0)
	b.wait("/^(1 d 0 h|23 h 59 min)$/.test(document.querySelector('.left').textContent)")
}

func newsKeepsPlace(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Click(chromedp.CSS("summary")), chromedp.SendKeys(chromedp.CSS("#prefix"), "half a na"),
		chromedp.Focus(chromedp.CSS("form[data-holder='pipeline 1881'] button")),
		chromedp.Evaluate[chromedp.Void]("getSelection().selectAllChildren(document.querySelector(`[data-key='lock cron:reindex'] bdi`))"))
	fx.Grant(lock.Acquire{Locks: lock.One("aaa:new"), Holder: "h", TTL: time.Hour}, 0)
	b.wait("document.querySelectorAll('tbody tr').length === 8")
	for what, holds := range map[string]string{
		"the selection":      "getSelection().toString() === 'cron-2'",
		"the focus":          "document.activeElement.matches(`form[data-holder='pipeline 1881'] button`)",
		"what was opened":    "document.querySelectorAll('details[open]').length === 1",
		"what was typed":     "document.getElementById('prefix').value === 'half a na'",
		"the order of names": "[...document.querySelectorAll('tbody th')].map((e) => e.innerText).join() === [...document.querySelectorAll('tbody th')].map((e) => e.innerText).sort().join()",
	} {
		if !value[bool](b, holds) {
			t.Errorf("%s is lost", what)
		}
	}
	fx.Apply(lock.Revoke{Name: "deploy:production", Token: 4, Reason: "x", SkipGrace: true}, 0)
	b.wait("document.activeElement.id === 'list'")
}

func newsKeepsDialog(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.visit("/ui/?prefix=deploy", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Click(chromedp.CSS("form[data-holder='pipeline 1881'] button")))
	b.wait("document.activeElement.id === 'reason'")
	b.press("stuck")
	fx.Grant(lock.Acquire{Locks: lock.One("deploy:a"), Holder: "h", TTL: time.Hour}, 0)
	b.wait("document.querySelectorAll('tbody tr').length === 3")
	b.press(" since noon")
	if got := value[string](b, "document.getElementById('ask').open && document.getElementById('reason').value"); got != "stuck since noon" {
		t.Errorf("the reason is %q", got)
	}
	fx.Apply(lock.Revoke{Name: "deploy:production", Token: 4, Reason: "x", SkipGrace: true}, 0)
	b.wait("!document.querySelector(`form[data-holder='pipeline 1881']`)")
	b.press(kb.Escape)
	b.wait("document.activeElement.id === 'list'")
}

func revokeWithoutScript(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.visit("/ui/?prefix=deploy", 360, 1000) // the form below covers no button
	b.do(b.ctx, chromedp.Click(chromedp.CSS("[data-revoke] button")), chromedp.WaitVisible(chromedp.CSS("main .sheet textarea:focus")))
	b.do(b.ctx, chromedp.SendKeys(chromedp.CSS("#reason"), "by hand"), chromedp.Click(chromedp.CSS(".sheet .strong")), chromedp.WaitVisible(chromedp.CSS(".notice")))
	if got := fx.Revocations(); len(got) != 1 || got[0].Token != 4 || got[0].Reason != "by hand" {
		t.Errorf("revoked %v", got)
	}
}

// revokeOverPlainHTTP revokes where browsers send no Sec-Fetch-Site: the Origin must be enough.
func revokeOverPlainHTTP(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.server.URL = strings.Replace(b.server.URL, "127.0.0.1", "paddock.test", 1)
	b.visit("/ui/revoke?name=deploy:production&token=4", 1280, 800)
	b.do(b.ctx, chromedp.WaitVisible(chromedp.CSS("#reason:focus")), chromedp.SendKeys(chromedp.CSS("#reason"), "from afar"), chromedp.Click(chromedp.CSS(".sheet .strong")), chromedp.WaitVisible(chromedp.CSS(".notice")))
	if got := fx.Revocations(); len(got) != 1 || got[0].Reason != "from afar" {
		t.Errorf("revoked %v", got)
	}
}
