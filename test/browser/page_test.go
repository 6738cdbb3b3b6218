package browser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestInABrowser tests the page in a real browser.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"the time left counts down and ends":              timeRunsDown,
		"revoking by keyboard":                            revokeByKeyboard,
		"escape closes the dialog and restores the focus": escapeGivesBack,
		"untrusted text is inert":                         strangersTextIsInert,
		"untrusted text is inert in queue and events":     strangersWaitInertly,
		"what others write into events is text":           strangersEventsAreInert,
		"right-to-left text does not affect other text":   turningTextStaysInside,
		"an injected script does not run":                 policyHolds,
		"no width makes the page scroll sideways":         noSidewaysScroll,
		"an unreachable service is shown":                 unreachableIsSaid,
		"revoking a permit by keyboard":                   revokePermitByKeyboard,
		"revoking all shared leases":                      revokePhase,
		"revoking without JavaScript":                     revokeWithoutScript,
		"revoking over plain HTTP beyond loopback":        revokeOverPlainHTTP,
	})
}

// inTabs runs the tests in parallel, in one browser.
func inTabs(t *testing.T, tests map[string]func(*testing.T, context.Context)) {
	t.Helper()
	browser := chromium(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

func timeRunsDown(t *testing.T, browser context.Context) {
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("long"), Holder: "h", TTL: time.Hour}, 0)
	fx.Grant(lock.Acquire{Locks: lock.One("short"), Holder: "h", TTL: 1500 * time.Millisecond}, 0)
	b := open(t, browser, fx)
	b.visit("/ui/", 1280, 800)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#pause")))
	const long, short = "document.querySelectorAll('.left')[0].textContent", "document.querySelectorAll('.left')[1].textContent"
	b.wait(short + " === 'ended' && !document.querySelectorAll('[data-over]')[1].hidden")
	b.wait("/^59 min 5[0-8] s$/.test(" + long + ")")
	b.wait("/, [2-9] s ago$/.test(document.getElementById('as-of').textContent)")
	if value[bool](b, "!document.querySelectorAll('[data-over]')[0].hidden") {
		t.Error("the long lease is shown as ended")
	}
}

// tabTo presses Tab until the focus is on the selector.
func (b *tab) tabTo(selector string) {
	b.Helper()
	for range 60 {
		b.press(kb.Tab)
		if value[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
	}
	b.Fatalf("Tab does not reach %s", selector)
}

func revokeByKeyboard(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.visit("/ui/?prefix=deploy", 1280, 800)
	b.tabTo(".skip")
	b.tabTo("form[data-holder='pipeline 1881'] button")
	b.press(kb.Enter)
	b.wait("document.getElementById('ask').open && document.activeElement.id === 'reason'")
	for _, want := range []string{"deploy:production", "pipeline 1881", "4", "Waiters\n0", "Grace\n2 s", "This does not stop the holder"} {
		if got := b.text("#ask"); !strings.Contains(got, want) {
			t.Errorf("the dialog lacks %q: %q", want, got)
		}
	}
	b.tabTo("#ask .strong")
	b.press(kb.Enter) // the reason is missing: the browser focuses it
	b.wait("document.activeElement.id === 'reason'")
	b.press("stuck since noon")
	b.tabTo("#ask .strong")
	b.press(kb.Enter)
	b.wait("document.querySelector('.notice')?.innerText.includes('Token 4 no longer holds deploy:production')")
	b.wait("document.activeElement.matches('.notice') && location.search === '?prefix=deploy'")
	want := []lock.Revoke{{Name: "deploy:production", Token: 4, Reason: "stuck since noon"}}
	if d := cmp.Diff(want, fx.Revocations()); d != "" {
		t.Error(d)
	}
}

func escapeGivesBack(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.visit("/ui/", 1280, 800)
	b.tabTo("[data-revoke] button")
	b.press(" ")
	b.wait("document.getElementById('ask').open")
	b.press("half a reason" + kb.Escape)
	b.wait("!document.getElementById('ask').open && document.activeElement.matches('[data-revoke] button')")
	b.press(kb.Enter)
	b.wait("document.getElementById('ask').open && document.getElementById('reason').value === ''")
	b.do(b.ctx, chromedp.Click(chromedp.CSS("[data-close]")))
	b.wait("!document.getElementById('ask').open")
	if len(fx.Revocations()) != 0 {
		t.Error("revoked")
	}
}
