package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock/lock"
)

// TestLiveInABrowser shows to a real browser a page that changes under its eyes.
func TestLiveInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"a waiter appears in the list without a reload":         waiterAppearsInList,
		"a waiter appears on the page of its lock":              waiterAppearsOnPage,
		"a cut connection is said, and so is its return":        cutIsSaid,
		"without the stream the page is still refreshed":        refreshedWhileCut,
		"a stream that says nothing does not count":             silentStreamIsNone,
		"many events at once cost few requests":                 eventsAreGathered,
		"a lease that has run down is looked at anew":           endIsLookedUp,
		"a renewal, which is no event, shows in a while":        renewalShows,
		"what is selected, focused and opened stays so":         newsKeepsPlace,
		"a dialog stays open with what was typed into it":       newsKeepsDialog,
		"a page that is paused stays as it is":                  pausedStays,
		"a page that nobody sees gives its connection back":     hiddenLetsGo,
		"the last events are told, and that some are missing":   eventsAreTold,
		"a page with a filter that cannot be follows nothing":   badFilterFollowsNothing,
		"the page of a lock that vanished says why it is stale": brokenServiceIsSaid,
	})
}

func waiterAppearsInList(t *testing.T, browser context.Context) {
	y := newBusyFixture()
	b := open(t, browser, y)
	b.visit("/ui/?prefix=deploy", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("window.same = true"))
	y.wait(lock.Acquire{Name: "deploy:production", Holder: "pipeline 1882", TTL: time.Minute}, 0)
	b.wait("document.querySelector('.waiting a')?.textContent === '1 wait for deploy:production'")
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".waiting a")))
	b.wait("location.pathname === '/ui/locks/deploy:production' && location.hash === '#queue'")
	b.wait("document.querySelector('.queue bdi').textContent === 'pipeline 1882'")
	if got := y.feed.queries()[0]; got != "prefix=deploy" {
		t.Errorf("the page follows %q", got)
	}
}

func waiterAppearsOnPage(t *testing.T, browser context.Context) {
	y := newBusyFixture()
	b := open(t, browser, y)
	b.visit("/ui/locks/billing:invoice-run", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("window.same = true"))
	y.wait(lock.Acquire{Name: "billing:invoice-run", Holder: "worker-8", TTL: time.Minute}, 0)
	b.wait("/for worker-7 on db-3 \\(token 1, ends in \\d+ s unless renewed\\)/.test(document.querySelector('.queue .reason')?.innerText)")
	if !value[bool](b, "window.same === true") {
		t.Error("the page was loaded anew")
	}
}

func cutIsSaid(t *testing.T, browser context.Context) {
	y := newBusyFixture()
	b := open(t, browser, y)
	b.allowed = "Failed to load resource"
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	y.feed.cut()
	b.wait("document.getElementById('live').textContent === 'not connected; what you see is as of 12:00:00'")
	if got := value[string](b, "document.querySelector('[role=status][aria-live=polite]').id"); got != "live" {
		t.Errorf("it is told to those who listen by %q", got)
	}
	y.pass(time.Second)
	y.feed.repair()
	b.waitLive()
	b.wait("document.querySelector('#as-of time').textContent.endsWith('12:00:01')")
}

func refreshedWhileCut(t *testing.T, browser context.Context) {
	y := newFixture()
	y.free("first")
	y.feed.cut()
	b := open(t, browser, y)
	b.allowed = "Failed to load resource"
	b.visit("/ui/", 1280, 800)
	b.wait("document.getElementById('live').textContent === 'not connected; what you see is as of 12:00:00'")
	y.grant(lock.Acquire{Name: "second", Holder: "h", TTL: time.Hour}, 0)
	y.pass(2 * time.Second)
	b.wait("document.querySelectorAll('tbody tr').length === 2")
	b.wait("document.getElementById('live').textContent === 'not connected; what you see is as of 12:00:02'")
}

func silentStreamIsNone(t *testing.T, browser context.Context) {
	y := newBusyFixture()
	y.feed.hold()
	b := open(t, browser, y)
	b.visit("/ui/", 1280, 800)
	b.wait("document.getElementById('live').textContent === 'connecting…'")
	b.wait("document.getElementById('live').textContent.startsWith('not connected')")
}

func eventsAreGathered(t *testing.T, browser context.Context) {
	y := newFixture()
	y.free("first")
	b := open(t, browser, y)
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	before, begin := y.lookups(), time.Now()
	stroke := time.NewTicker(40 * time.Millisecond)
	defer stroke.Stop()
	for i := range 40 {
		<-stroke.C
		y.grant(lock.Acquire{Name: fmt.Sprintf("n:%d", i), Holder: "h", TTL: time.Hour}, 0)
	}
	b.wait("document.querySelectorAll('tbody tr').length === 41")
	if n, most := y.lookups()-before, 2+int(time.Since(begin)/(500*time.Millisecond)); n > most {
		t.Errorf("%d requests, want %d at most", n, most)
	}
}

func pausedStays(t *testing.T, browser context.Context) {
	y := newBusyFixture()
	b := open(t, browser, y)
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	b.tabTo("#pause")
	b.press(" ")
	b.wait("document.getElementById('live').textContent === 'paused; what you see is as of 12:00:00'")
	y.feed.await(t, 0)
	y.grant(lock.Acquire{Name: "aaa:new", Holder: "h", TTL: time.Hour}, 0)
	b.wait("/, [2-9] s ago$/.test(document.getElementById('as-of').textContent)")
	if n := value[int](b, "document.querySelectorAll('tbody tr').length"); n != 7 {
		t.Errorf("%d rows, want the 7 that there were", n)
	}
	b.press(" ")
	b.waitLive()
	b.wait("document.querySelectorAll('tbody tr').length === 8")
}

// seen makes the page believe that it is in view, or is not.
func (b *tab) seen(yes bool) {
	b.Helper()
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		"Object.defineProperty(document, 'hidden', {value: %t, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))", !yes)))
}

func hiddenLetsGo(t *testing.T, browser context.Context) {
	y := newBusyFixture()
	b := open(t, browser, y)
	b.visit("/ui/locks/deploy:staging", 1280, 800)
	b.waitLive()
	b.seen(false)
	y.feed.await(t, 0)
	y.grant(lock.Acquire{Name: "deploy:staging", Holder: "missed", TTL: time.Hour}, 0)
	b.seen(true)
	b.waitLive()
	b.wait("document.querySelector('#events .holder').innerText === 'missed' && document.querySelector('.leases .holder').innerText === 'missed'")
	if got := y.feed.queries(); !strings.Contains(got[len(got)-1], "cursor=") {
		t.Errorf("connected with %q", got)
	}
}

func eventsAreTold(t *testing.T, browser context.Context) {
	y := newBusyFixture()
	b := open(t, browser, y)
	b.visit("/ui/locks/deploy:staging", 1280, 800)
	b.waitLive()
	for range 12 {
		y.grant(lock.Acquire{Name: "deploy:staging", Holder: "h", TTL: time.Hour}, 0)
		y.do(lock.Release{Name: "deploy:staging", LeaseID: callID(y.calls)}, 0)
	}
	y.grant(lock.Acquire{Name: "deploy:staging", Holder: "last", TTL: time.Hour}, 0)
	b.wait("[...document.querySelectorAll('#events tbody tr')].at(-1)?.innerText.includes('last')")
	if n := value[int](b, "document.querySelectorAll('#events tbody tr').length"); n != 20 {
		t.Errorf("%d events are shown, want 20", n)
	}
	y.feed.lose()
	b.wait("[...document.querySelectorAll('#events tbody tr')].at(-1).innerText === 'Events are missing here; see all events.'")
}

func badFilterFollowsNothing(t *testing.T, browser context.Context) {
	y := newBusyFixture()
	b := open(t, browser, y)
	b.allowed = "400 (Bad Request)"
	b.visit("/ui/?state=bad", 1280, 800)
	b.wait("document.getElementById('age') !== null || document.querySelector('.problem') !== null")
	if got := b.text("#live"); got != "" || len(y.feed.queries()) > 0 {
		t.Errorf("it says %q and follows %q", got, y.feed.queries())
	}
}

func brokenServiceIsSaid(t *testing.T, browser context.Context) {
	y := newBusyFixture()
	b := open(t, browser, y)
	b.allowed = "Failed to load resource"
	b.visit("/ui/locks/deploy:staging", 1280, 800)
	b.waitLive()
	y.breakDown(&lock.Error{Code: lock.ErrUnavailable, Detail: "The database is away."})
	y.feed.send(lock.Event{At: noon, Name: "deploy:staging", Kind: lock.Queued, Mode: lock.Shared, Holder: "h", Place: 3})
	b.wait("document.getElementById('live').textContent === 'not refreshed; what you see is as of 12:00:00'")
	b.wait("document.getElementById('trouble').innerText === 'Not refreshed. The database is away.'")
	y.breakDown(nil)
	b.waitLive()
	b.wait("document.getElementById('trouble').hidden")
}
