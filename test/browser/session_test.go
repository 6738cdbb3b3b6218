package browser_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/web"
)

// TestSessionsInABrowser tests the pages of sessions in a real browser.
func TestSessionsInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"revoking a session by keyboard":                  revokeSessionByKeyboard,
		"no width makes a session's page scroll sideways": noSidewaysScrollOfSessions,
	})
}

// openSession opens a session with leases of the locks, and returns its public name.
func openSession(t *testing.T, locks paddock.Service, o lock.OpenSession, names ...string) lock.SessionRef {
	t.Helper()
	s, err := locks.OpenSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One(name), Holder: "h", SessionID: s.ID}); err != nil {
			t.Fatal(err)
		}
	}
	return s.ID.Ref()
}

// showSessions opens a tab for a complete service without keys.
func showSessions(t *testing.T, browser context.Context, locks paddock.Service) *tab {
	t.Helper()
	return show(t, browser, server.New(server.Options{Locks: locks, UI: web.New(web.Options{Locks: locks, Info: webtest.Info})}))
}

// wantRevoked fails unless the session was revoked for the reason.
func wantRevoked(t *testing.T, locks paddock.Service, ref lock.SessionRef, reason string) {
	t.Helper()
	if s, err := locks.Session(t.Context(), ref); err != nil || s.Ended != lock.Revoked || s.Reason != reason {
		t.Errorf("the session is %+v, %v", s, err)
	}
}

func revokeSessionByKeyboard(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	ref := openSession(t, locks, lock.OpenSession{Holder: "worker-1", TTL: time.Hour}, "jobs:a", "jobs:b")
	b := showSessions(t, browser, locks)
	b.visit("/ui/locks/jobs:a", 1280, 800)
	b.tabTo(".leases .holder small a")
	b.press(kb.Enter)
	b.wait("location.pathname === '/ui/sessions/" + ref.String() + "' && document.querySelectorAll('tbody tr').length === 2")
	b.tabTo("form .strong")
	b.press(kb.Enter) // the reason is missing: the browser focuses it
	b.wait("document.activeElement.id === 'reason'")
	b.press("the host is gone")
	b.tabTo("input[name=skip_grace]")
	b.press(" ")
	b.tabTo("form .strong")
	b.press(kb.Enter)
	b.wait("document.activeElement.matches('.notice') && document.activeElement.innerText.startsWith('Revoked.')")
	if got := b.text(".facts"); !strings.Contains(got, "revoked") || !strings.Contains(got, "the host is gone") {
		t.Errorf("the page shows %q", got)
	}
	wantRevoked(t, locks, ref, "the host is gone")
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".heading a")))
	b.wait("document.querySelector('.empty')?.innerText.startsWith('No open session.')")
}

func noSidewaysScrollOfSessions(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	long := lock.OpenSession{
		Holder: strings.Repeat("W", lock.MaxHolderLength), TTL: 24 * time.Hour, Grace: time.Minute,
		Metadata: []byte(`{"` + strings.Repeat("k", 200) + `":"` + strings.Repeat("v", 200) + `"}`),
	}
	open := openSession(t, locks, long, strings.Repeat("n", lock.MaxNameLength), "a:b")
	revoked := openSession(t, locks, long)
	if _, err := locks.RevokeSession(t.Context(), lock.RevokeSession{Ref: revoked, Reason: strings.Repeat("R", lock.MaxReasonLength)}); err != nil {
		t.Fatal(err)
	}
	b := showSessions(t, browser, locks)
	b.allowed = "Failed to load resource" // for the unknown session
	for _, path := range []string{
		"/ui/sessions", "/ui/sessions?holder=" + strings.Repeat("W", lock.MaxHolderLength-1), "/ui/sessions/" + open.String(),
		"/ui/sessions/" + revoked.String() + "?revoked=1", "/ui/sessions/0000000000000001",
	} {
		b.wantNoSidewaysScroll(path)
	}
}
