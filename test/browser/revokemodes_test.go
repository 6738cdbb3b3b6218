package browser_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

func slot(n int) *int { return &n }

func revokePermitByKeyboard(t *testing.T, browser context.Context) {
	fx := webtest.NewSharedService()
	b := open(t, browser, fx)
	b.visit("/ui/locks/gpu:pool", 1280, 800)
	b.waitLive()
	b.tabTo("form[data-holder='train-b'] button")
	b.press(kb.Enter)
	b.wait("document.getElementById('ask').open && document.activeElement.id === 'reason'")
	if got := b.text("#ask dl"); !strings.Contains(got, "train-b") || !strings.Contains(got, "Slot\n2") {
		t.Errorf("the dialog shows %q", got)
	}
	b.press("it leaks")
	b.tabTo("#ask input[name=skip_grace]")
	b.press(" ")
	b.tabTo("#ask .strong")
	b.press(kb.Enter)
	b.wait("document.querySelector('.notice')?.innerText.includes('Token 3 no longer holds slot 2 of gpu:pool.')")
	b.wait("location.pathname === '/ui/locks/gpu:pool' && location.search === '' && document.querySelectorAll('.leases tbody tr').length === 2")
	if d := cmp.Diff([]lock.Revoke{{Name: "gpu:pool", Token: 3, Slot: slot(2), Reason: "it leaks", SkipGrace: true}}, fx.Revocations()); d != "" {
		t.Error(d)
	}
}

func revokePhase(t *testing.T, browser context.Context) {
	fx := webtest.NewSharedService()
	b := open(t, browser, fx)
	b.visit("/ui/locks/db:schema?back=prefix%3Ddb", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Click(chromedp.CSS("form[data-title] button")))
	b.wait("document.activeElement.id === 'reason'")
	if got := b.text("#ask"); !strings.Contains(got, "Revoke all 3 leases?") || strings.Contains(got, "Slot") {
		t.Errorf("the dialog says %q", got)
	}
	b.press("the writer must go on")
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#ask .strong")))
	b.wait("document.querySelector('.notice')?.innerText.includes('Token 1 no longer holds db:schema.')")
	b.wait("document.querySelector('.leases .holder').innerText === 'migration 218' && location.search === '?back=prefix%3Ddb'")
	if d := cmp.Diff([]lock.Revoke{{Name: "db:schema", Token: 1, Reason: "the writer must go on"}}, fx.Revocations()); d != "" {
		t.Error(d)
	}
}
