package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/internal/usercache"
	"github.com/paddock-lock/paddock/test/internal/tools"
	"github.com/paddock-lock/paddock/web"
)

// patience bounds the time of a test in a tab.
const patience = 60 * time.Second

// A tab is a tab of a real browser that shows a page of a real server. Console errors fail the test at its end unless
// they are allowed.
type tab struct {
	*testing.T
	ctx           context.Context
	server        *httptest.Server
	mu            sync.Mutex
	consoleErrors []string // in order
	allowed       string   // an error that the test causes intentionally
}

// chromium starts a browser that ends with the test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	program := tools.Path(t, "chromium")
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program), chromedp.DisableGPU, chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-features", "Translate,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable"),
		chromedp.Flag("host-resolver-rules", "MAP paddock.test 127.0.0.1"))
	// The sandbox works neither for root nor, on some systems, without an installed program. The pages are our own.
	if os.Geteuid() == 0 || strings.HasPrefix(program, usercache.Default().Path) {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error(err)
		}
	})
	return ctx
}

// open opens a tab for a server with the fixture and its feed.
func open(t *testing.T, browser context.Context, fx *webtest.Service) *tab {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/ui/", web.New(web.Options{Locks: fx, Overview: func() web.Overview { return counts(fx) }, Info: webtest.Info}))
	mux.Handle("GET /v1/events/stream", fx.Feed)
	return show(t, browser, mux)
}

// counts returns large numbers, and how often the list was asked for.
func counts(fx *webtest.Service) web.Overview {
	return web.Overview{
		CountedAt: time.Now(), StartedAt: time.Now().Add(-9999 * time.Hour), Known: 1_234_567, Held: 1_234_566, InGrace: 123_456, Contended: 10_000, Waiters: 123_456,
		LongestWait: 100 * time.Hour, LongestHeld: 9999 * time.Hour, Expired: 9_876_543, Revoked: 9_876_543, Deadlocks: 9_876_543,
		StaleTokens: int64(fx.Lookups()),
	}
}

// show opens a tab for the pages of a server.
func show(t *testing.T, browser context.Context, h http.Handler, o ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{T: t, server: httptest.NewServer(h)}
	t.Cleanup(b.server.Close)
	ctx, cancel := chromedp.NewContext(browser, o...)
	t.Cleanup(cancel)
	b.do(ctx)
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	b.ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	t.Cleanup(b.wantNoConsoleErrors)
	return b
}

func (b *tab) listen(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		b.addConsoleError("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventExceptionThrown:
		b.addConsoleError("exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.addConsoleError("console.%s", e.Type)
	case *page.EventJavascriptDialogOpening:
		b.addConsoleError("alert: %s", e.Message)
	}
}

func (b *tab) addConsoleError(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.consoleErrors = append(b.consoleErrors, fmt.Sprintf(format, args...))
}

func (b *tab) wantNoConsoleErrors() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.consoleErrors {
		if b.allowed == "" || !strings.Contains(s, b.allowed) {
			b.Errorf("console error: %s", s)
		}
	}
}

func (b *tab) do(ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// visit opens the page at the path, in a window of this size.
func (b *tab) visit(path string, width, height int64) {
	b.Helper()
	b.do(b.ctx, chromedp.EmulateViewport(width, height), chromedp.Navigate(b.server.URL+path))
}

// press presses the keys one after the other.
func (b *tab) press(keys string) {
	b.Helper()
	b.do(b.ctx, chromedp.KeyEvent(keys))
}

// wait waits until the expression is true in a page that has been read to its end. Until then elements may be missing,
// also those after one that the expression finds. Errors count as false.
func (b *tab) wait(expression string) {
	b.Helper()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("document.readyState !== 'loading' && ("+expression+")"))
		if ok {
			return
		}
		select {
		case <-retry.C:
		case <-b.ctx.Done():
			b.Fatalf("never true: %s (%v)", expression, err)
		}
	}
}

// value returns the value of the expression in the page.
func value[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// text returns the visible text of the first element that matches.
func (b *tab) text(selector string) string {
	b.Helper()
	return value[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? 'nothing'", selector))
}

// waitLive waits until the page is live.
func (b *tab) waitLive() {
	b.Helper()
	b.wait("document.getElementById('live').textContent === 'live'")
}
