package browser_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

// A tab fails its test if a script runs, throws or opens a dialog.

func strangersTextIsInert(t *testing.T, browser context.Context) {
	b := open(t, browser, webtest.NewBusyService())
	b.visit("/ui/?prefix=hostile", 1280, 800)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("summary")), chromedp.Click(chromedp.CSS("[data-revoke] button")))
	b.wait("document.getElementById('ask').open")
	for _, selector := range []string{".holder bdi", "#ask bdi"} {
		if got := value[string](b, fmt.Sprintf("document.querySelector(%q).textContent", selector)); got != webtest.Hostile {
			t.Errorf("%s holds %q, want %q", selector, got, webtest.Hostile)
		}
	}
	b.do(b.ctx, chromedp.Click(chromedp.CSS("[data-close]")), chromedp.Click(chromedp.CSS("#refresh")))
	b.wait("document.querySelectorAll('main script, main img[src=x]').length === 0")
}

func strangersWaitInertly(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	fx.Wait(lock.Acquire{Locks: lock.One("hostile"), Holder: webtest.Hostile, TTL: time.Hour}, time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("hostile"), Holder: "second", TTL: time.Hour}, time.Second)
	b := open(t, browser, fx)
	b.visit("/ui/locks/hostile", 1280, 800)
	b.waitLive()
	before := value[int](b, "document.querySelectorAll('.events tbody tr').length")
	fx.Feed.Send(lock.Event{At: webtest.Noon, Name: "hostile", Kind: lock.Revoked, Mode: lock.Exclusive, Holder: webtest.Hostile, Token: 6, Reason: webtest.Hostile,
		Caller: lock.Caller{Name: webtest.Hostile, KeyID: "k1"}})
	b.wait(fmt.Sprintf("document.querySelectorAll('.events tbody tr').length === %d", before+1))
	for _, selector := range []string{".leases .holder bdi", ".queue .holder bdi", ".events .holder bdi", ".events .caller bdi", ".events .reason bdi", ".timeline tbody tr:last-child .holder bdi"} {
		if got := value[string](b, fmt.Sprintf("document.querySelector(%q).textContent", selector)); got != webtest.Hostile {
			t.Errorf("%s holds %q, want %q", selector, got, webtest.Hostile)
		}
	}
	b.wait("document.querySelectorAll('main script, main img[src=x]').length === 0")
	b.visit("/ui/events?kind=revoked", 1280, 800)
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".events .by")))
	b.wait("location.pathname === '/ui/holder' && document.querySelectorAll('.leases tbody tr').length === 1")
	for _, selector := range []string{"h1 bdi", ".leases .holder bdi", ".events .holder bdi", ".events .caller bdi", ".events .reason bdi"} {
		if got := value[string](b, fmt.Sprintf("document.querySelector(%q).textContent", selector)); got != webtest.Hostile {
			t.Errorf("%s holds %q, want %q", selector, got, webtest.Hostile)
		}
	}
	b.wait("document.querySelectorAll('main script, main img[src=x]').length === 0")
}

// turningTextStaysInside checks that the text after a hostile text is right of it or below it, in its own direction.
// strangersEventsAreInert: a stale write, a freeze and a deadlock, and the fields of the filter.
func strangersEventsAreInert(t *testing.T, browser context.Context) {
	fx := webtest.NewService()
	ops := lock.Caller{Name: webtest.Hostile, KeyID: "k1"}
	fx.Feed.Send(
		lock.Event{At: webtest.Noon, Name: "a", Kind: lock.Refused, Mode: lock.Exclusive, Holder: webtest.Hostile, Token: 7, Newest: 9, HeldBy: webtest.Hostile,
			Reason: webtest.Hostile, Caller: ops},
		lock.Event{At: webtest.Noon, Name: "a:", Kind: lock.Frozen, Mode: lock.Exclusive, Reason: webtest.Hostile, Caller: ops},
		lock.Event{At: webtest.Noon, Name: "b", Kind: lock.Dequeued, Mode: lock.Exclusive, Holder: webtest.Hostile, Place: 2, Reason: "deadlock",
			Cycle: lock.CycleOf([]lock.DeadlockStep{{Name: "b", Holder: webtest.Hostile, WaitsFor: "c"}, {Name: "c", Holder: "c", WaitsFor: webtest.Hostile}})},
	)
	b := open(t, browser, fx)
	stranger := url.QueryEscape(webtest.Hostile)
	for path, rows := range map[string]int{
		"/ui/events": 3, "/ui/events?kind=deadlock": 1, "/ui/events?kind=refused": 1, "/ui/events?holder=" + stranger: 2, "/ui/events?prefix=" + stranger: 0,
		"/ui/events?around=" + stranger: 0, "/ui/events?kind=" + stranger: 0,
	} {
		b.allowed = "Failed to load resource" // of a field that is refused
		b.visit(path, 1280, 800)
		b.wait(fmt.Sprintf("document.querySelectorAll('.events tbody > tr').length === %d && document.querySelectorAll('main script, main img[src=x]').length === 0", rows))
	}
	b.visit("/ui/events?holder="+stranger, 1280, 800)
	if got := value[string](b, "document.getElementById('holder').value"); got != webtest.Hostile {
		t.Errorf("the filter has the holder %q", got)
	}
	b.visit("/ui/events?kind=deadlock", 1280, 800)
	if got := value[string](b, "document.querySelector('.circle bdi').textContent"); got != webtest.Hostile {
		t.Errorf("the circle shows %q", got)
	}
}

func turningTextStaysInside(t *testing.T, browser context.Context) {
	const turning = "\u2069\u2069\u202eabc"
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("n"), Holder: turning, TTL: time.Hour}, 0)
	fx.Wait(lock.Acquire{Locks: lock.One("n"), Holder: turning, TTL: time.Hour}, 0)
	b := open(t, browser, fx)
	for path, selector := range map[string]string{
		"/ui/": ".holder bdi", "/ui/locks/n": ".queue .holder bdi", "/ui/locks/n?x": ".queue .reason bdi",
		"/ui/revoke?name=n&token=1": "dd bdi", "/ui/?state=free&holder=" + url.QueryEscape(turning): ".empty bdi",
	} {
		b.visit(path, 1280, 800)
		if !value[bool](b, fmt.Sprintf(`(() => {
			const bdi = document.querySelector(%q), after = document.createTextNode('xyz'), range = document.createRange();
			bdi.after(after);
			const box = (i) => { range.setStart(after, i); range.setEnd(after, i + 1); return range.getBoundingClientRect(); };
			const outside = box(0).left >= bdi.getBoundingClientRect().right || box(0).top >= bdi.getBoundingClientRect().bottom;
			return outside && box(0).left < box(1).left && box(1).left < box(2).left;
		})()`, selector)) {
			t.Errorf("%s: the text after %s is reversed", path, selector)
		}
	}
}

func policyHolds(t *testing.T, browser context.Context) {
	b := open(t, browser, webtest.NewBusyService())
	b.allowed = "Content Security Policy"
	b.visit("/ui/", 1280, 800)
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void](`(() => {
		const s = document.createElement('script');
		s.textContent = 'window.ran = true';
		document.body.append(s);
		document.body.insertAdjacentHTML('beforeend', '<p style="color:red" onclick="window.ran = true">x</p>');
		document.body.lastElementChild.click();
	})()`))
	if value[bool](b, "window.ran === true") {
		t.Error("an inline script ran")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.Contains(strings.Join(b.consoleErrors, "\n"), "violates") {
		t.Errorf("no console error, so other tests may miss errors: %q", b.consoleErrors)
	}
}

// newLongTextFixture returns a fixture with the longest possible texts.
func newLongTextFixture() *webtest.Service {
	fx := webtest.NewService()
	fx.LastToken = lock.MaxToken - 10
	fx.PageSize = 4
	fx.Grant(lock.Acquire{Locks: lock.One(strings.Repeat("n", lock.MaxNameLength)), Holder: strings.Repeat("W", lock.MaxHolderLength), TTL: 24 * time.Hour,
		Metadata: []byte(`{"` + strings.Repeat("k", 200) + `":"` + strings.Repeat("v", 200) + `"}`)}, time.Hour)
	fx.Grant(lock.Acquire{Locks: lock.One("a:b"), Holder: "h", TTL: time.Second, Grace: time.Minute}, 2*time.Second)
	fx.Grant(lock.Acquire{Locks: lock.One("c:d"), Holder: "h", TTL: time.Second, Grace: time.Minute}, 0)
	fx.Free("x")
	for i := range 5 {
		fx.Grant(lock.Acquire{Locks: []lock.Member{{Name: "d:e", Mode: lock.Permit, Capacity: 1000}}, Holder: strings.Repeat("W", lock.MaxHolderLength), TTL: 24 * time.Hour}, time.Duration(i)*time.Hour)
	}
	for _, name := range []string{"d:e", strings.Repeat("n", lock.MaxNameLength)} {
		fx.Wait(lock.Acquire{Locks: lock.One(name), Holder: strings.Repeat("W", lock.MaxHolderLength), TTL: time.Hour}, 0)
		fx.Apply(fx.Wait(lock.Acquire{Locks: []lock.Member{{Name: name, Mode: lock.Permit, Capacity: 1000}}, Holder: "h", TTL: time.Hour}, 0), 0)
	}
	return fx
}

func noSidewaysScroll(t *testing.T, browser context.Context) {
	b := open(t, browser, newLongTextFixture())
	b.allowed = "400 (Bad Request)"
	for _, path := range []string{"/ui/", "/ui/service", "/ui/?prefix=none", "/ui/?state=bad", "/ui/events", "/ui/holder?holder=" + strings.Repeat("W", 200), "/ui/locks/d:e", "/ui/locks/" + strings.Repeat("n", 200), fmt.Sprintf("/ui/revoke?name=%s&token=%d", strings.Repeat("n", 200), lock.MaxToken-9)} {
		b.wantNoSidewaysScroll(path)
	}
}

// wantNoSidewaysScroll shows the page in windows of many widths, with all that can be opened open.
func (b *tab) wantNoSidewaysScroll(path string) {
	b.Helper()
	b.visit(path, 320, 740)
	for _, width := range []int64{320, 360, 480, 720, 721, 900, 1024, 1248, 1249, 1280, 1920} {
		b.do(b.ctx, chromedp.EmulateViewport(width, 740))
		b.do(b.ctx, chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll('details')) d.open = true;
			for (const s of document.querySelectorAll('[data-over]')) s.hidden = false; document.querySelector('dialog:not([open])') && document.querySelector('[data-revoke] button')?.click()`))
		if value[bool](b, "document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth") {
			b.Errorf("%s scrolls sideways at %d pixels", path, width)
		}
		if value[bool](b, "[...document.querySelectorAll('dialog[open], tbody tr')].some((e) => e.scrollWidth > e.clientWidth)") {
			b.Errorf("an element of %s overflows at %d pixels", path, width)
		}
	}
}
