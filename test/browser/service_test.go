package browser_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/web"
)

// TestServiceInABrowser tests the page of the service in a real browser.
func TestServiceInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){"the page follows a fail-over": followFailOver})
}

// followFailOver opens the page from the head by keyboard, and goes through an outage, the pause after it, and its end.
func followFailOver(t *testing.T, browser context.Context) {
	var now atomic.Pointer[paddock.ServiceInfo]
	all := webtest.Info(t.Context())
	is := func(d paddock.DatabaseInfo) {
		d.Cell = ""
		now.Store(&paddock.ServiceInfo{Settings: all.Settings, Databases: []paddock.DatabaseInfo{d}})
	}
	is(all.Databases[0])
	mux := http.NewServeMux()
	mux.Handle("/ui/", web.New(web.Options{
		Locks: webtest.NewBusyService(), Info: func(context.Context) paddock.ServiceInfo { return *now.Load() },
		Paused: func() []paddock.DatabaseInfo { return now.Load().Databases },
	}))
	b := show(t, browser, mux)
	b.allowed = "Failed to load resource" // the stream of the list
	b.visit("/ui/", 1280, 800)
	b.tabTo("nav a[href='/ui/service']")
	b.press(kb.Enter)
	b.wait("location.pathname === '/ui/service' && document.getElementById('live').textContent === 'every 5 s'")
	b.tabTo("#list summary")
	b.press(kb.Enter)
	b.wait("document.querySelector('#list details').open && document.activeElement.matches('summary')")

	is(all.Databases[2]) // away
	b.wait("document.querySelector('.problem [role=alert]')?.innerText.startsWith('The database is away.')")
	b.wait("/^What follows is 1 min 2[3-9] s old/.test(document.querySelector('.problem [role=alert] + p').innerText)")
	if pills := value[string](b, "[...document.querySelectorAll('.pill')].map((p) => p.textContent).join(' ')"); pills != "alive unknown unknown" {
		t.Errorf("the replicas are %s", pills)
	}
	paused := all.Databases[1]
	paused.Epoch.GrantsPausedUntil = paused.AsOf.Add(2 * time.Second)
	is(paused)
	b.wait("/^Grants are paused for another [1-2] s: the database was failed over/.test(document.querySelector('.caution')?.innerText)")
	ended := paused
	ended.Age = time.Minute
	is(ended) // the script asks again when the pause has run down
	b.wait("document.querySelector('.caution') === null")
	if !value[bool](b, "document.querySelector('#list details').open && document.activeElement.matches('summary')") {
		t.Error("a refresh has closed the tables, or moved the focus")
	}
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	b.wait("document.querySelector('.problem:not([hidden])') === null")
	if text := b.text("#list"); strings.Contains(text, "paused for") || !strings.Contains(text, "not paused") {
		t.Errorf("the page says %s", text)
	}

	b.visit("/ui/", 390, 800)
	b.wait("document.querySelector('#pauses:empty') !== null && document.getElementById('live').textContent === 'not connected' && document.querySelector('#as-of time').textContent === '12:00:00'")
	is(paused)
	b.wait("/^Grants are paused for another [1-2] s: the database was failed over/.test(document.querySelector('#pauses')?.innerText)")
	is(ended)
	b.wait("document.querySelector('#pauses:empty') !== null")
}
