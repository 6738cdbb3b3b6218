package browser_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// TestFreezesInABrowser tests what the pages show of freezes, closed locks and rules in a real browser.
func TestFreezesInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"freezing and thawing by keyboard":           freezeByKeyboard,
		"a lock's page follows its freeze":           lockFollowsItsFreeze,
		"no freeze makes the page scroll sideways":   noSidewaysScrollOfFreezes,
		"a closed lock counts down, and opens again": closedLockCountsDown,
		"an operator opens a closed lock":            operatorOpensClosedLock,
	})
}

// freeze freezes the locks of the scope.
func freeze(t *testing.T, locks paddock.Service, r lock.FreezeRequest) {
	t.Helper()
	if _, err := locks.Freeze(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// closeLock acquires the lock, and releases it so that it is closed.
func closeLock(t *testing.T, locks paddock.Service, holder, name string, d time.Duration) {
	t.Helper()
	id := lock.LeaseID{1}
	if _, err := locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One(name), LeaseID: id, Holder: holder, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := locks.Release(t.Context(), lock.Release{Locks: []string{name}, LeaseID: id, Closed: lock.Closing{For: d}}); err != nil {
		t.Fatal(err)
	}
}

func freezeByKeyboard(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	acquireSet(t, locks, "worker", "billing:eu")
	b := showSessions(t, browser, locks)
	b.allowed = "Failed to load resource" // for the refusal
	b.visit("/ui/", 1280, 800)
	b.tabTo("nav a[href$='/ui/freezes']")
	b.press(kb.Enter)
	b.wait("document.querySelector('.empty')?.innerText.startsWith('No freeze.')")
	b.tabTo("#scope")
	b.press("billing:: ")
	b.tabTo("form .strong")
	b.press(kb.Enter) // the reason is missing: the browser focuses it
	b.wait("document.activeElement.id === 'reason'")
	b.press("database migration")
	b.tabTo("#scope")
	b.press(kb.Backspace + kb.Backspace + "%") // the field's text ends in a character that no name has
	b.press(kb.Enter)
	b.wait("document.activeElement.matches('.problem') && document.getElementById('reason').value === 'database migration'")
	b.tabTo("#scope")
	b.press("billing:" + kb.Enter)
	b.wait("document.activeElement.matches('.notice') && document.activeElement.innerText.startsWith('Frozen.')")
	if got := b.text(".facts"); !strings.Contains(got, "database migration") || !strings.Contains(got, "Leases left\n1") || !strings.Contains(got, "for another ") {
		t.Errorf("the page shows %q", got)
	}
	if f, err := locks.Frozen(t.Context(), "billing:"); err != nil || f.Until.Sub(f.FrozenAt) != 30*time.Minute {
		t.Errorf("the freeze is %+v, %v", f, err)
	}
	b.tabTo("form .danger")
	b.press(kb.Enter) // the box is not checked: the browser focuses it
	b.wait("document.activeElement.name === 'confirm'")
	b.press(" ")
	b.tabTo("form .danger")
	b.press(kb.Enter)
	b.wait("document.activeElement.matches('.notice') && document.activeElement.innerText.startsWith('Thawed.')")
	if _, err := locks.Frozen(t.Context(), "billing:"); !errors.Is(err, lock.ErrNotFound) {
		t.Errorf("it is still frozen: %v", err)
	}
}

func lockFollowsItsFreeze(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	b := showSessions(t, browser, locks)
	b.visit("/ui/locks/billing:eu", 1280, 800)
	b.waitLive()
	freeze(t, locks, lock.FreezeRequest{Scope: "billing:", Reason: "a migration"})
	b.wait("document.getElementById('frozen')?.innerText.includes('a migration')") // at the latest ten seconds later
	b.follow("#frozen a", "/ui/freezes/billing:")
	b.visit("/ui/locks/billing", 1280, 800)
	b.waitLive()
	freeze(t, locks, lock.FreezeRequest{Scope: "billing", Reason: "at once"})
	b.wait("document.getElementById('frozen')?.innerText.includes('at once')")
	b.wait("document.querySelector('.events .frozen') !== null")
	if err := locks.Thaw(t.Context(), lock.ThawRequest{Scope: "billing"}); err != nil {
		t.Fatal(err)
	}
	b.wait("!document.getElementById('frozen')")
}

func closedLockCountsDown(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	closeLock(t, locks, "worker", "nightly", 3*time.Second)
	closeLock(t, locks, "worker", "weekly", time.Hour)
	b := showSessions(t, browser, locks)
	b.visit("/ui/locks/weekly", 1280, 800)
	b.wait("/by worker,/.test(document.getElementById('closed')?.innerText) && /another 59 min 5\\d s/.test(document.getElementById('closed').innerText)")
	b.visit("/ui/locks/nightly", 1280, 800)
	b.wait("document.querySelector('.facts .pill')?.innerText === 'free' && !document.getElementById('closed')")
}

func operatorOpensClosedLock(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	closeLock(t, locks, "worker", "nightly", time.Hour)
	b := showSessions(t, browser, locks)
	b.visit("/ui/locks/nightly", 1280, 800)
	b.tabTo("#closed + form button")
	b.press(kb.Enter)
	b.wait("document.querySelector('h1')?.innerText === 'Open this lock?' && document.activeElement.id === 'reason'")
	b.press("the work was wrong")
	b.tabTo("form .danger")
	b.press(kb.Enter)
	b.wait("location.pathname === '/ui/locks/nightly' && !document.getElementById('closed') && document.querySelector('.facts .pill')?.innerText === 'free'")
	if l, err := locks.Lock(t.Context(), "nightly"); err != nil || l.Closed != nil {
		t.Errorf("the lock is %+v, %v", l.Closed, err)
	}
}

func noSidewaysScrollOfFreezes(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	name := strings.Repeat("n", lock.MaxNameLength-1)
	long := lock.FreezeRequest{Scope: lock.Scope(name + ":"), Reason: strings.Repeat("R", lock.MaxReasonLength), By: strings.Repeat("W", 100), For: lock.MaxFreeze}
	freeze(t, locks, long)
	long.Scope = lock.Scope(name)
	freeze(t, locks, long)
	freeze(t, locks, lock.FreezeRequest{Scope: "a", Reason: "r"})
	closeLock(t, locks, strings.Repeat("W", lock.MaxHolderLength), "closed", lock.MaxClosed)
	freeze(t, locks, lock.FreezeRequest{Scope: "closed", Reason: "r"})
	if _, err := locks.SetRule(t.Context(), lock.Rule{Scope: lock.Scope(name + ":"), MaxTTL: time.Hour, MaxHold: 1001 * time.Millisecond, MinGrace: time.Second, Capacity: 1000, MaxLeases: lock.MaxRuleLeases, SetBy: strings.Repeat("W", 100)}); err != nil {
		t.Fatal(err)
	}
	b := showSessions(t, browser, locks)
	b.allowed = "Failed to load resource" // for the unknown freeze
	for _, path := range []string{"/ui/", "/ui/freezes", "/ui/freezes?thawed=" + name[1:], "/ui/freezes/" + name + ":?begun=1", "/ui/freezes/none", "/ui/locks/" + name, "/ui/locks/closed", "/ui/revoke?name=closed&token=1", "/ui/rules"} {
		b.wantNoSidewaysScroll(path)
	}
}
