package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock/web"
)

// patience is how long a tab may take for all that a test does in it.
const patience = 60 * time.Second

// A tab is a tab of a real browser that shows the page of a real server. What the
// browser complains about is kept, and fails the test at its end unless allowed.
type tab struct {
	*testing.T
	ctx           context.Context
	server        *httptest.Server
	mu            sync.Mutex
	consoleErrors []string // complaints, in order
	allowed       string   // a complaint that the test means to cause
}

// browserPath returns the path of a browser. Without one the test fails: a page that
// no browser has seen is not tested.
func browserPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("No Chromium is installed, and this test needs one: apt-get install -y chromium")
	return ""
}

// chromium starts a browser that ends with the test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(browserPath(t)), chromedp.DisableGPU, chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-features", "Translate,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable"),
		chromedp.Flag("host-resolver-rules", "MAP paddock.test 127.0.0.1"))
	if os.Geteuid() == 0 {
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

// open opens a tab on the page of a server in front of the yard and its feed.
func open(t *testing.T, browser context.Context, y *fixture) *tab {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/ui/", web.New(web.Options{Locks: y}))
	mux.Handle("GET /v1/events/stream", y.feed)
	return show(t, browser, mux)
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
			b.Errorf("the browser complains: %s", s)
		}
	}
}

func (b *tab) do(ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// visit opens the page at the path, as wide and as high as said.
func (b *tab) visit(path string, width, height int64) {
	b.Helper()
	b.do(b.ctx, chromedp.EmulateViewport(width, height), chromedp.Navigate(b.server.URL+path))
}

// press presses the keys one after the other, wherever the focus is.
func (b *tab) press(keys string) {
	b.Helper()
	b.do(b.ctx, chromedp.KeyEvent(keys))
}

// wait waits until the expression is true in the page. It may fail meanwhile: a
// page that is being left or built has not all that it speaks of.
func (b *tab) wait(expression string) {
	b.Helper()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
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

// value returns what the expression is in the page.
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

// waitLive waits until the page says that it is live.
func (b *tab) waitLive() {
	b.Helper()
	b.wait("document.getElementById('live').textContent === 'live'")
}
