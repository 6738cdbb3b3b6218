package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// TestLiveInABrowser tests live updates in a real browser.
func TestLiveInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"a waiter appears in the list without a reload": waiterAppearsInList,
		"a lost and a restored connection are shown":    cutIsSaid,
		"without the stream the page is refreshed":      refreshedWhileCut,
		"a silent stream is not live":                   silentStreamIsNone,
		"a stuck service is not live":                   stuckIsSaid,
		"many events cause few requests":                eventsAreGathered,
		"a lease that has run down causes a refresh":    endIsLookedUp,
		"a renewal shows after a while":                 renewalShows,
		"a refresh keeps selection, focus and details":  newsKeepsPlace,
		"a refresh keeps the dialog and its text":       newsKeepsDialog,
		"a paused page does not change":                 pausedStays,
		"a hidden page closes its connection":           hiddenLetsGo,
		"the page of a lock has its latest events":      eventsAreShown,
		"times turn to the browser's zone and back":     timesTurnLocal,
	})
}

func waiterAppearsInList(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.visit("/ui/?prefix=deploy", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("window.same = true; window.counted = document.querySelector('#overview .bad dd').textContent"))
	fx.Wait(lock.Acquire{Locks: lock.One("deploy:production"), Holder: "pipeline 1882", TTL: time.Minute}, 0)
	b.wait("document.querySelector('.waiting a')?.textContent === '1 waiting for deploy:production'")
	b.wait("document.querySelector('#overview .bad dd').textContent !== window.counted")
	if !value[bool](b, "window.same === true") {
		t.Error("the page was reloaded")
	}
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".waiting a")))
	b.wait("location.pathname === '/ui/locks/deploy:production' && location.hash === '#queue'")
	b.wait("document.querySelector('.queue bdi').textContent === 'pipeline 1882'")
	if got := fx.Feed.Queries()[0]; got != "prefix=deploy" {
		t.Errorf("the page follows %q", got)
	}
}

func cutIsSaid(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.allowed = "Failed to load resource"
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	fx.Feed.Cut()
	b.wait("document.getElementById('live').textContent === 'not connected' && document.querySelector('#as-of time').textContent === '12:00:00'")
	if got := value[string](b, "document.querySelector('[role=status][aria-live=polite]').id"); got != "live" {
		t.Errorf("the live region is %q", got)
	}
	fx.Pass(time.Second)
	fx.Feed.Repair()
	b.waitLive()
	b.wait("document.querySelector('#as-of time').textContent.endsWith('12:00:01')")
}

func refreshedWhileCut(t *testing.T, browser context.Context) {
	fx := webtest.NewService()
	fx.Free("first")
	fx.Feed.Cut()
	b := open(t, browser, fx)
	b.allowed = "Failed to load resource"
	b.visit("/ui/", 1280, 800)
	b.wait("document.getElementById('live').textContent === 'not connected' && document.querySelector('#as-of time').textContent === '12:00:00'")
	fx.Grant(lock.Acquire{Locks: lock.One("second"), Holder: "h", TTL: time.Hour}, 0)
	fx.Pass(2 * time.Second)
	b.wait("document.querySelectorAll('tbody tr').length === 2")
	b.wait("document.getElementById('live').textContent === 'not connected' && document.querySelector('#as-of time').textContent === '12:00:02'")
}

func silentStreamIsNone(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	fx.Feed.Hold()
	b := open(t, browser, fx)
	b.withoutPeriods() // nor the one after which a silent connection is closed
	b.visit("/ui/", 1280, 800)
	b.wait("document.getElementById('live').textContent === 'not connected'")
}

// stuckIsSaid stops all answers while the stream stays open, as when the database is stuck.
func stuckIsSaid(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	var answering sync.RWMutex
	pages := web.New(web.Options{Locks: fx})
	mux := http.NewServeMux()
	mux.HandleFunc("/ui/", func(w http.ResponseWriter, r *http.Request) {
		answering.RLock()
		defer answering.RUnlock()
		pages.ServeHTTP(w, r)
	})
	mux.Handle("GET /v1/events/stream", fx.Feed)
	b := show(t, browser, mux)
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	func() {
		answering.Lock()
		defer answering.Unlock()
		b.wait("document.getElementById('live').textContent === 'no answer' && document.querySelector('#as-of time').textContent === '12:00:00'")
		b.wait("document.getElementById('trouble').innerText.startsWith('Not refreshed. No answer has come yet.')")
		if !value[bool](b, "document.getElementById('list').classList.contains('stale')") {
			t.Error("old data look like new ones")
		}
	}()
	b.waitLive()
	b.wait("document.getElementById('trouble').hidden && !document.getElementById('list').classList.contains('stale')")
}

func eventsAreGathered(t *testing.T, browser context.Context) {
	fx := webtest.NewService()
	fx.Free("first")
	b := open(t, browser, fx)
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	before, begin := fx.Lookups(), time.Now()
	stroke := time.NewTicker(40 * time.Millisecond)
	defer stroke.Stop()
	for i := range 40 {
		<-stroke.C
		fx.Grant(lock.Acquire{Locks: lock.One(fmt.Sprintf("n:%d", i)), Holder: "h", TTL: time.Hour}, 0)
	}
	b.wait("document.querySelectorAll('tbody tr').length === 41")
	if n, most := fx.Lookups()-before, 2+int(time.Since(begin)/time.Second); n > most {
		t.Errorf("%d requests, want %d at most", n, most)
	}
}

func pausedStays(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	b.tabTo("#pause")
	b.press(" ")
	b.wait("document.getElementById('live').textContent === 'paused' && document.querySelector('#as-of time').textContent === '12:00:00'")
	fx.Feed.Await(t, 0)
	fx.Grant(lock.Acquire{Locks: lock.One("aaa:new"), Holder: "h", TTL: time.Hour}, 0)
	b.wait("/, [2-9] s ago$/.test(document.getElementById('as-of').textContent)")
	if n := value[int](b, "document.querySelectorAll('tbody tr').length"); n != 7 {
		t.Errorf("%d rows, want 7", n)
	}
	b.press(" ")
	b.waitLive()
	b.wait("document.querySelectorAll('tbody tr').length === 8")
}

// seen makes the page believe that it is visible or hidden.
func (b *tab) seen(yes bool) {
	b.Helper()
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		"Object.defineProperty(document, 'hidden', {value: %t, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))", !yes)))
}

func hiddenLetsGo(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.visit("/ui/locks/deploy:staging", 1280, 800)
	b.waitLive()
	b.seen(false)
	fx.Feed.Await(t, 0)
	fx.Grant(lock.Acquire{Locks: lock.One("deploy:staging"), Holder: "missed", TTL: time.Hour}, 0)
	b.seen(true)
	b.waitLive()
	b.wait("document.querySelector('.events .holder').innerText === 'missed' && document.querySelector('.leases .holder').innerText === 'missed'")
}

func eventsAreShown(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	b.visit("/ui/locks/deploy:staging", 1280, 800)
	b.waitLive()
	for range 12 {
		fx.Grant(lock.Acquire{Locks: lock.One("deploy:staging"), Holder: "h", TTL: time.Hour}, 0)
		fx.Apply(lock.Release{Locks: []string{"deploy:staging"}, LeaseID: webtest.CallID(fx.Calls)}, 0)
	}
	fx.Grant(lock.Acquire{Locks: lock.One("deploy:staging"), Holder: "last", TTL: time.Hour}, 0)
	b.wait("document.querySelector('.events tbody tr')?.innerText.includes('last')")
	b.wait("document.querySelector('.timeline tbody tr').innerText.includes('held')")
	if n := value[int](b, "document.querySelectorAll('.events tbody tr').length"); n != 20 {
		t.Errorf("%d events are shown, want 20", n)
	}
	// Each bar is inside its chart, and an earlier one is not right of a later one.
	if bad := value[int](b, `[...document.querySelectorAll('.bar-chart')].filter((chart, i, all) => {
		const [box, bar] = [chart, chart.firstElementChild].map((e) => e.getBoundingClientRect());
		const later = all[i - 1]?.firstElementChild.getBoundingClientRect() ?? bar;
		return bar.width < 1 || bar.left < box.left - 1 || bar.right > box.right + 1 || bar.left > later.left + 1;
	}).length`); bad != 0 {
		t.Errorf("%d bars are not at their places", bad)
	}
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#older")))
	b.wait("document.querySelectorAll('.events tbody tr').length === 6 && document.getElementById('newest') !== null")
}

// timesTurnLocal shows times in the browser's zone, on this page and the next, and in UTC again.
func timesTurnLocal(t *testing.T, browser context.Context) {
	fx := webtest.NewBusyService()
	b := open(t, browser, fx)
	zone := emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, zone); err != nil {
		t.Fatal(err)
	}
	b.visit("/ui/locks/deploy:production", 1280, 800)
	b.waitLive()
	times := func(want, zone string) {
		t.Helper()
		b.wait(fmt.Sprintf("document.querySelector('.leases time').textContent === %q && document.querySelector('.leases [data-zone]').textContent === %q", want, zone))
	}
	times("2031-05-04 11:58:25", "UTC")
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#zone")))
	times("2031-05-04 17:28:25", "local time")
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	b.visit("/ui/locks/deploy:production?all=1", 1280, 800)
	b.waitLive()
	times("2031-05-04 17:28:25", "local time")
	if got := value[string](b, "document.querySelector('.leases time').closest('td').dataset.label"); got != "Held since, local time" {
		t.Errorf("the label is %q", got)
	}
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#zone")))
	times("2031-05-04 11:58:25", "UTC")
}
