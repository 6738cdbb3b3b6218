package browser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestHandsInABrowser tests how much a window shows, and how an operator moves and acts in it.
func TestHandsInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"a small window shows 16 locks":               sixteenRows,
		"the first lock is near the top on a phone":   firstLockOnAPhone,
		"everything is on the screen of a phone":      nothingCutOnAPhone,
		"the past of a lock unfolds on a phone":       pastUnfoldsOnAPhone,
		"words of the events stay whole":              wordsStayWhole,
		"the search and the rows by keyboard":         moveByKeyboard,
		"several leases are selected and revoked":     revokeSelected,
		"all leases of a holder are selected":         selectAllOfAHolder,
		"the row under the pointer stays where it is": rowStaysUnderThePointer,
		"newer events wait while one is read":         newerEventsWait,
	})
}

// newManyFixture returns a fixture with locks whose names and holders are as long as usual.
func newManyFixture() *webtest.Service {
	fx := webtest.NewService()
	for i := range 60 {
		fx.Grant(lock.Acquire{Locks: lock.One(fmt.Sprintf("orders:shard-%03d:compact", i)), Holder: fmt.Sprintf("compactor-%d.eu-west-1.internal", i%7), TTL: time.Hour}, time.Duration(i)*time.Second)
	}
	return fx
}

func sixteenRows(t *testing.T, browser context.Context) {
	fx := newManyFixture()
	b := open(t, browser, fx)
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	if n := value[int](b, "[...document.querySelectorAll('.locks tbody')].filter((r) => r.getBoundingClientRect().bottom <= innerHeight).length"); n < 16 {
		t.Errorf("%d rows are visible, want 16", n)
	}
	if n := value[int](b, "[...document.querySelectorAll('.holder bdi, .locks tbody th')].filter((e) => e.getClientRects().length && e.getBoundingClientRect().height > 40).length"); n != 0 {
		t.Errorf("%d names and holders have several lines", n)
	}
	oneLineOfHead := func() {
		t.Helper()
		if height := value[float64](b, "document.querySelector('.top').getBoundingClientRect().height"); height > 60 {
			t.Errorf("the head is %g pixels high: %s", height, b.text(".bar"))
		}
	}
	oneLineOfHead()
	b.connecting(fx, "/ui/", 1280, 800)
	oneLineOfHead()
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#zone")))
	oneLineOfHead()
}

func firstLockOnAPhone(t *testing.T, browser context.Context) {
	fx := newManyFixture()
	b := open(t, browser, fx) // with counts as long as they may be
	b.visit("/ui/", 390, 844)
	b.waitLive()
	b.wantFirstLockAbove(300)
	b.connecting(fx, "/ui/", 390, 844)
	b.wantFirstLockAbove(300)
	if value[bool](b, "document.getElementById('prefix').checkVisibility()") {
		t.Error("the filters are not folded")
	}
	b.tabTo("#contains")
	b.tabTo(".fold input")
	b.press(" ")
	b.wait("document.getElementById('prefix').checkVisibility()")
	b.press(" ")
	b.wait("!document.getElementById('prefix').checkVisibility()")
}

// stopClock stops the clock of the pages that are opened later, so that they do not lose patience with a slow machine.
func (b *tab) stopClock() {
	b.Helper()
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: "performance.now = () => 1000;"})
	if err != nil {
		b.Fatal(err)
	}
}

// connecting opens the page without a stream.
func (b *tab) connecting(fx *webtest.Service, path string, width, height int64) {
	b.Helper()
	fx.Feed.Hold()
	b.stopClock()
	b.visit(path, width, height)
	b.wait("document.getElementById('live').textContent === 'connecting…'")
}

// wantFirstLockAbove fails if the first lock of the list begins lower than this.
func (b *tab) wantFirstLockAbove(pixels float64) {
	b.Helper()
	if top := value[float64](b, "document.querySelector('.locks tbody').getBoundingClientRect().top"); top > pixels {
		b.Errorf("the first lock begins at %g pixels", top)
	}
}

// nothingCutOnAPhone: each link of the head and each count is on the screen, and the fields show what is typed.
func nothingCutOnAPhone(t *testing.T, browser context.Context) {
	b := open(t, browser, newManyFixture())
	for _, path := range []string{"/ui/?prefix=orders", "/ui/", "/ui/events?kind=refused&prefix=orders", "/ui/events"} {
		b.visit(path, 390, 844)
		if got := value[string](b, "[...document.querySelectorAll('.top nav a, .overview dd')].filter((e) => e.getBoundingClientRect().right > innerWidth - 8).map((e) => e.textContent).join()"); got != "" {
			t.Errorf("%s: off the screen: %s", path, got)
		}
		if width := value[float64](b, "document.querySelector('.filters .field :is(input, select)').getBoundingClientRect().width"); width < 130 {
			t.Errorf("%s: the first field is %g pixels wide", path, width)
		}
	}
	b.visit("/ui/", 1280, 844)
	if width := value[float64](b, "document.getElementById('contains').getBoundingClientRect().width"); width < 150 {
		t.Errorf("the search is %g pixels wide in a window of 1280", width)
	}
}

func pastUnfoldsOnAPhone(t *testing.T, browser context.Context) {
	fx := newManyFixture()
	for i := range 9 {
		fx.Wait(lock.Acquire{Locks: lock.One("orders:shard-001:compact"), Holder: fmt.Sprintf("waiter-%d", i), TTL: time.Hour}, time.Second)
	}
	b := open(t, browser, fx)
	b.visit("/ui/locks/orders:shard-001:compact", 390, 844)
	b.waitLive()
	rows := func(table string, n int) {
		t.Helper()
		b.wait(fmt.Sprintf("[...document.querySelectorAll('.%s tbody tr')].filter((r) => r.checkVisibility()).length === %d", table, n))
	}
	rows("queue", 9)
	rows("timeline", 3)
	rows("events", 3)
	b.tabTo("[aria-labelledby=timeline] .fold input")
	b.press(" ")
	rows("timeline", 10)
	rows("events", 3)
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	rows("timeline", 10)
	b.do(b.ctx, chromedp.EmulateViewport(1280, 800))
	rows("events", 10)
}

// wordsStayWhole: the column By breaks names between words, not inside them, and how long a lease was held is on one line
// beside a long holder.
func wordsStayWhole(t *testing.T, browser context.Context) {
	fx := webtest.NewService()
	fx.Feed.Send(lock.Event{At: webtest.Noon, Name: "billing:month-end", Kind: lock.Revoked, Mode: lock.Exclusive, Holder: "host-17.eu-west-1.internal", Token: 6,
		Reason: strings.Repeat("stuck since the fail-over ", 6), Caller: lock.Caller{Name: "workers", KeyID: "k1"}})
	b := open(t, browser, fx)
	for _, width := range []int64{1249, 1280} {
		b.visit("/ui/events", width, 800)
		if height := value[float64](b, "document.querySelector('.caller bdi').getBoundingClientRect().height"); height > 30 {
			t.Errorf("workers is %g pixels high in a window of %d", height, width)
		}
	}
	fx.Grant(lock.Acquire{Locks: lock.One("billing:month-end"), Holder: strings.Repeat("host-17.eu-west-1.", 11)[:190], TTL: time.Hour}, 70*time.Minute)
	b.visit("/ui/locks/billing:month-end", 1280, 800)
	if height := value[float64](b, "document.querySelector('.timeline [data-label=For] div').getBoundingClientRect().height"); height > 30 {
		t.Errorf("how long the lease was held is %g pixels high", height)
	}
}

func moveByKeyboard(t *testing.T, browser context.Context) {
	b := open(t, browser, newManyFixture())
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	at := func(name string) {
		t.Helper()
		b.wait(fmt.Sprintf("document.activeElement.closest('tbody')?.dataset.key === 'lock %s'", name))
	}
	b.press(kb.ArrowDown + kb.ArrowDown)
	at("orders:shard-001:compact")
	b.press(kb.ArrowUp)
	at("orders:shard-000:compact")
	b.press("/")
	b.wait("document.activeElement.id === 'contains'")
	b.press("/042" + kb.ArrowUp) // the field has the keys
	b.wait("document.activeElement.value.endsWith('/042')")
	b.press(kb.ArrowDown)
	at("orders:shard-000:compact")
	b.do(b.ctx, chromedp.Focus(chromedp.CSS(".pick input")))
	b.press(kb.ArrowDown + " " + kb.ArrowDown + " ")
	b.wait("document.getElementById('selected').textContent === '2 leases selected'")
	at("orders:shard-002:compact")
	b.do(b.ctx, chromedp.Focus(chromedp.CSS("tbody:nth-of-type(5) th a")))
	b.press(kb.Enter)
	b.wait("location.pathname === '/ui/locks/orders:shard-004:compact'")
}

func revokeSelected(t *testing.T, browser context.Context) {
	fx := newManyFixture()
	b := open(t, browser, fx)
	b.visit("/ui/?q=00", 1280, 800)
	b.waitLive()
	b.wait("document.getElementById('several').hidden")
	for _, n := range []int{1, 3} {
		b.do(b.ctx, chromedp.Click(chromedp.CSS(fmt.Sprintf("tbody:nth-of-type(%d) .pick input", n))))
	}
	b.wait("document.getElementById('selected').textContent === '2 leases selected'")
	fx.Grant(lock.Acquire{Locks: lock.One("new:00"), Holder: "h", TTL: time.Hour}, 0)
	b.wait("document.querySelectorAll('.locks tbody').length === 11 && document.querySelectorAll('.pick :checked, .pick input:checked').length === 2")
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#several .danger")))
	b.wait("location.pathname === '/ui/revocations' && document.activeElement.id === 'reason'")
	for _, want := range []string{"Revoke 2 leases?", "orders:shard-000:compact", "orders:shard-002:compact", "compactor-2.eu-west-1.internal"} {
		if got := b.text(".sheet"); !strings.Contains(got, want) {
			t.Errorf("the form lacks %q: %s", want, got)
		}
	}
	b.press("pager 4711")
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".sheet .strong")))
	b.wait("document.querySelector('h1').textContent === 'Revoked 2 of 2 leases'")
	if done := fx.Revocations(); len(done) != 2 || done[0].Reason != "pager 4711" || done[1].Name != "orders:shard-002:compact" {
		t.Errorf("revoked %v", done)
	}
}

// selectAllOfAHolder selects one of its leases, then all.
func selectAllOfAHolder(t *testing.T, browser context.Context) {
	b := open(t, browser, newManyFixture())
	b.visit("/ui/holder?holder=compactor-2.eu-west-1.internal", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".pick input")))
	b.tabTo("#select-all")
	b.press(kb.Enter)
	b.wait("document.getElementById('selected').textContent === '9 leases selected' && document.activeElement.matches('#several .danger')")
	b.wait("document.getElementById('select-all').hidden")
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#several .danger")))
	b.wait("document.querySelector('h1').textContent === 'Revoke 9 leases?'")
}

// rowStaysUnderThePointer adds locks above the one under the pointer, and removes them again.
func rowStaysUnderThePointer(t *testing.T, browser context.Context) {
	fx := newManyFixture()
	b := open(t, browser, fx)
	b.stopClock()
	b.visit("/ui/", 1280, 800)
	b.waitLive()
	const row = "document.querySelector('[data-key=\"lock orders:shard-007:compact\"]').getBoundingClientRect().top"
	// waitFor waits until that is true while the page says nothing above the list, and returns where the row is then.
	waitFor := func(that string) float64 {
		t.Helper()
		b.wait(that + " && document.getElementById('trouble').hidden && Boolean(window.at = " + row + ")")
		return value[float64](b, "window.at")
	}
	before := waitFor("true")
	b.do(b.ctx, chromedp.MouseEvent("mouseMoved", 400, before+12))
	for n := range 5 {
		fx.Grant(lock.Acquire{Locks: lock.One(fmt.Sprintf("aaa:%d", n)), Holder: "h", TTL: time.Hour}, 0)
		if at := waitFor(fmt.Sprintf("document.querySelector('[data-key=\"lock aaa:%d\"]') !== null", n)); at < before-2 || at > before+2 {
			t.Fatalf("the row was at %g, is at %g after %d locks came", before, at, n+1)
		}
	}
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("scrollTo(0, 0)"))
	before = waitFor("true")
	b.do(b.ctx, chromedp.MouseEvent("mouseMoved", 401, before+12))
	for n := range 3 {
		fx.Forget(fmt.Sprintf("aaa:%d", n))
		if at := waitFor(fmt.Sprintf("document.querySelector('[data-key=\"lock aaa:%d\"]') === null", n)); at < before-2 || at > before+2 {
			t.Fatalf("the row was at %g, is at %g after %d locks went", before, at, n+1)
		}
	}
}

// newerEventsWait sends events while the pointer is on one, and while the page is scrolled.
func newerEventsWait(t *testing.T, browser context.Context) {
	fx := webtest.NewService()
	sent := 0
	send := func(n int) {
		for range n {
			sent++
			fx.Feed.Send(lock.Event{At: webtest.Noon, Name: fmt.Sprintf("n:%d", sent), Kind: lock.Granted, Mode: lock.Exclusive, Holder: "h", Token: 1, Revision: 1})
		}
	}
	send(150)
	b := open(t, browser, fx)
	b.stopClock()
	b.visit("/ui/events", 1280, 800)
	b.waitLive()
	const row = "document.querySelector('[data-key=\"event 145\"]').getBoundingClientRect().top"
	newest := func() string {
		return fmt.Sprintf("document.querySelector('.events tbody tr').dataset.key === 'event %d' && document.getElementById('live').textContent === 'live'", sent)
	}
	before := value[float64](b, row)
	b.do(b.ctx, chromedp.MouseEvent("mouseMoved", 600, before+12))
	send(120)
	b.wait("document.getElementById('live').textContent === '100+ newer'")
	if at, y := value[float64](b, row), value[int](b, "scrollY"); at != before || y != 0 {
		t.Errorf("the row was at %g, is at %g; the page is scrolled by %d", before, at, y)
	}
	b.do(b.ctx, chromedp.MouseEvent("mouseMoved", 600, 5))
	b.wait(newest())
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("scrollTo(0, 400)"))
	send(5)
	b.wait("document.getElementById('live').textContent === '5 newer' && scrollY === 400")
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("scrollTo(0, 0)"))
	b.wait(newest())
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("scrollTo(0, 400)"))
	send(5)
	b.wait("document.getElementById('live').textContent === '5 newer' && scrollY === 400")
	b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("document.getElementById('refresh').click()"))
	b.wait(newest())
}
