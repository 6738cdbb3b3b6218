package web_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paddock-lock/paddock/lock"
)

func refreshKeepsPlace(t *testing.T, browser context.Context) {
	y := busy()
	b := open(t, browser, y)
	b.visit("/ui/", 1280, 800)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("summary")))
	b.do(b.ctx, chromedp.Focus(chromedp.CSS("form[data-holder='cron-2'] button")))
	y.grant(lock.Acquire{Name: "aaa:new", Holder: "h", TTL: time.Hour}, 0)
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("document.getElementById('refresh').click()"))
	b.wait("document.querySelectorAll('tbody tr').length === 8")
	if !value[bool](b, "document.activeElement.matches(\"form[data-holder='cron-2'] button\")") {
		t.Error("the focus is elsewhere")
	}
	if n := value[int](b, "document.querySelectorAll('details[open]').length"); n != 1 {
		t.Errorf("%d metadata open, want the one that was", n)
	}
}

func unreachableIsSaid(t *testing.T, browser context.Context) {
	y := busy()
	b := open(t, browser, y)
	b.allowed = "Failed to load resource"
	b.visit("/ui/", 1280, 800)
	y.breakDown(&lock.Error{Code: lock.ErrUnavailable, Detail: "The database is away."})
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	b.wait("document.getElementById('trouble').innerText === 'Not refreshed. The database is away.'")
	y.breakDown(nil)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	b.wait("document.getElementById('trouble').hidden")
	b.server.Close()
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	b.wait("document.getElementById('trouble').innerText === 'Not refreshed. The service cannot be reached.'")
	if n := value[int](b, "document.querySelectorAll('#list.stale tbody tr').length"); n != 7 {
		t.Errorf("%d rows still shown as stale, want 7", n)
	}
}

func refreshesByItself(t *testing.T, browser context.Context) {
	y := busy()
	b := open(t, browser, y)
	b.visit("/ui/", 1280, 800)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#auto")))
	b.wait("location.search === '?refresh=5'")
	b.wait("document.querySelector('[name=back]').value === 'refresh=5'")
	y.grant(lock.Acquire{Name: "aaa:new", Holder: "h", TTL: time.Hour}, 0)
	b.wait("document.querySelectorAll('tbody tr').length === 8")
	b.do(b.ctx, chromedp.Click(chromedp.CSS("[data-revoke] button")))
	y.grant(lock.Acquire{Name: "aab:newer", Holder: "h", TTL: time.Hour}, 0)
	b.wait("/, [6-9] s ago$/.test(document.getElementById('as-of').textContent)")
	if n := value[int](b, "document.querySelectorAll('tbody tr').length"); n != 8 {
		t.Errorf("%d rows under the open dialog, want 8", n)
	}
	b.press(kb.Escape)
	b.wait("document.querySelectorAll('tbody tr').length === 9")
}

func revokeWithoutScript(t *testing.T, browser context.Context) {
	y := busy()
	b := open(t, browser, y)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.visit("/ui/?prefix=deploy", 360, 740)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("[data-revoke] button")), chromedp.WaitVisible(chromedp.CSS("main .sheet textarea")))
	b.do(b.ctx, chromedp.SendKeys(chromedp.CSS("#reason"), "by hand"), chromedp.Click(chromedp.CSS(".sheet .strong")), chromedp.WaitVisible(chromedp.CSS(".notice")))
	if got := y.revocations(); len(got) != 1 || got[0].Token != 4 || got[0].Reason != "by hand" {
		t.Errorf("revoked %v", got)
	}
}

// revokeOverPlainHTTP revokes where browsers send no Sec-Fetch-Site: the form's
// own Origin must be enough.
func revokeOverPlainHTTP(t *testing.T, browser context.Context) {
	y := busy()
	b := open(t, browser, y)
	b.server.URL = strings.Replace(b.server.URL, "127.0.0.1", "paddock.test", 1)
	b.visit("/ui/revoke?name=deploy:production&token=4", 1280, 800)
	b.do(b.ctx, chromedp.SendKeys(chromedp.CSS("#reason"), "from afar"), chromedp.Click(chromedp.CSS(".sheet .strong")), chromedp.WaitVisible(chromedp.CSS(".notice")))
	if got := y.revocations(); len(got) != 1 || got[0].Reason != "from afar" {
		t.Errorf("revoked %v", got)
	}
}
