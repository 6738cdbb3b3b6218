package browser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// TestSetsInABrowser tests what the pages show of sets in a real browser.
func TestSetsInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"revoking a set by keyboard":              revokeSetByKeyboard,
		"the locks of a set without JavaScript":   setWithoutScript,
		"a refresh keeps the names of a set open": refreshKeepsSetOpen,
		"an idle lock waits for its sister":       idleLockWaitsForOthers,
		"no set makes the page scroll sideways":   noSidewaysScrollOfSets,
	})
}

// acquireSet acquires the locks for a day, and returns the token of the first.
func acquireSet(t *testing.T, locks lock.Service, holder string, names ...string) lock.Token {
	t.Helper()
	g, err := locks.Acquire(t.Context(), lock.Acquire{Set: setOf(names), Holder: holder, TTL: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return g.Token
}

// waitForSet waits for the locks until the test ends.
func waitForSet(t *testing.T, locks lock.Service, holder string, names ...string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := locks.Acquire(ctx, lock.Acquire{Set: setOf(names), Holder: holder, TTL: time.Hour, Wait: lock.MaxWait}); err == nil {
			t.Errorf("%s was granted the locks", holder)
		}
	}()
	t.Cleanup(func() { leave(); <-done })
	for {
		if q, err := locks.Queue(t.Context(), names[len(names)-1]); err != nil {
			t.Fatal(err)
		} else if len(q.Waiters) > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func setOf(names []string) (set []lock.Member) {
	for _, name := range names {
		set = append(set, lock.Member{Name: name})
	}
	return set
}

// longSet returns the names of the largest set with the longest names.
func longSet() (names []string) {
	for i := range lock.MaxSetSize {
		names = append(names, fmt.Sprintf("%s%02d", strings.Repeat("n", lock.MaxNameLength-2), i))
	}
	return names
}

func revokeSetByKeyboard(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	acquireSet(t, locks, "mover", "jobs:a", "jobs:b", "jobs:c")
	b := showSessions(t, browser, locks)
	b.visit("/ui/locks/jobs:a", 1280, 800)
	b.waitLive()
	b.tabTo(".set a")
	b.press(kb.Enter)
	b.wait("location.pathname === '/ui/locks/jobs:b'")
	b.waitLive()
	b.tabTo(".leases .danger")
	b.press(kb.Enter)
	b.wait("location.pathname === '/ui/revoke' && document.activeElement.id === 'reason'")
	if got := b.text(".sheet"); !strings.Contains(got, "Revoke the leases of all 3 locks?") || !strings.Contains(got, "jobs:a, jobs:c") {
		t.Errorf("the page says %q", got)
	}
	b.press("the host is gone")
	b.tabTo(".sheet .strong")
	b.press(kb.Enter)
	b.wait("location.pathname === '/ui/locks/jobs:b' && document.querySelector('.notice')?.innerText.includes('no longer holds jobs:b.')")
	for _, name := range []string{"jobs:a", "jobs:b", "jobs:c"} {
		if l, err := locks.Lock(t.Context(), name); err != nil || l.State != lock.Free {
			t.Errorf("%s is %s, %v", name, l.State, err)
		}
	}
}

func setWithoutScript(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	names := []string{"a", "b", "c", "d", "e"}
	acquireSet(t, locks, "mover", names...)
	b := showSessions(t, browser, locks)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.visit("/ui/locks/a", 320, 740)
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".set summary")), chromedp.Click(chromedp.CSS(".set details a")))
	b.do(b.ctx, chromedp.WaitVisible(chromedp.CSS(`.set a[href$="/ui/locks/a"]`)), chromedp.Click(chromedp.CSS(".leases .danger")))
	b.do(b.ctx, chromedp.WaitVisible(chromedp.CSS(".caution")), chromedp.WaitVisible(chromedp.CSS("#reason:focus")))
	b.do(b.ctx, chromedp.SendKeys(chromedp.CSS("#reason"), "by hand"), chromedp.Click(chromedp.CSS(".sheet .strong")), chromedp.WaitVisible(chromedp.CSS(".notice")))
	for _, name := range names {
		if l, err := locks.Lock(t.Context(), name); err != nil || l.State != lock.Free {
			t.Errorf("%s is %s, %v", name, l.State, err)
		}
	}
}

func refreshKeepsSetOpen(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	names := []string{"a", "b", "c", "d", "e"}
	acquireSet(t, locks, "mover", names...)
	b := showSessions(t, browser, locks)
	b.visit("/ui/locks/a", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".leases .set summary")))
	waitForSet(t, locks, "next", names...)
	b.wait("document.querySelectorAll('.queue tbody tr').length === 1")
	if !value[bool](b, "document.querySelector('.leases .set details').open && document.activeElement.matches('.leases .set summary')") {
		t.Error("the names are closed, or have lost the focus")
	}
	if got, want := b.text(".queue tbody tr .reason"), "together with b, c, d\nand 1 more"; !strings.HasSuffix(got, want) {
		t.Errorf("the waiter waits for %q, want %q at the end", got, want)
	}
	if value[bool](b, "document.querySelector('.queue .set details').open") {
		t.Error("the waiter's names are open")
	}
}

func idleLockWaitsForOthers(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	acquireSet(t, locks, "holder", "busy")
	waitForSet(t, locks, "mover", "busy", "idle")
	waitForSet(t, locks, "later", "idle", "other")
	b := showSessions(t, browser, locks)
	b.visit("/ui/locks/idle", 1280, 800)
	const held = "holder on busy (token 1, ends in 1 d 0 h unless renewed)" // or a little less
	for number, want := range []string{held + "\ntogether with busy", "1 other ahead\nbehind mover\nheld by " + held + "\ntogether with other"} {
		got := strings.ReplaceAll(b.text(fmt.Sprintf(".queue tbody tr:nth-child(%d) .reason", number+1)), "23 h 59 min", "1 d 0 h")
		if got != want {
			t.Errorf("waiter %d waits for %q, want %q", number+1, got, want)
		}
	}
}

func noSidewaysScrollOfSets(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	names, holder := longSet(), strings.Repeat("W", lock.MaxHolderLength)
	acquireSet(t, locks, holder, "jobs:blocking")
	token := acquireSet(t, locks, holder, names...)
	waitForSet(t, locks, holder, names...)
	waitForSet(t, locks, holder, append(names[:lock.MaxSetSize-2:lock.MaxSetSize-2], "jobs:blocking", "jobs:free")...)
	b := showSessions(t, browser, locks)
	for _, path := range []string{"/ui/", "/ui/locks/" + names[0], "/ui/locks/jobs:free", fmt.Sprintf("/ui/revoke?name=%s&token=%d", names[0], token)} {
		b.wantNoSidewaysScroll(path)
	}
}
