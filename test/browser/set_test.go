package browser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// TestSetsInABrowser tests what the pages show of sets in a real browser.
func TestSetsInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"a refresh keeps the names of a set open": refreshKeepsSetOpen,
		"no set makes the page scroll sideways":   noSidewaysScrollOfSets,
	})
}

// acquireSet acquires the locks for a day, and returns the token of the first.
func acquireSet(t *testing.T, locks paddock.Service, holder string, names ...string) lock.Token {
	t.Helper()
	g, err := locks.Acquire(t.Context(), lock.Acquire{Locks: setOf(names), Holder: holder, TTL: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return g.Token
}

// waitForSet waits for the locks until the test ends.
func waitForSet(t *testing.T, locks paddock.Service, holder string, names ...string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := locks.Acquire(ctx, lock.Acquire{Locks: setOf(names), Holder: holder, TTL: time.Hour, Wait: lock.MaxWait}); err == nil {
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
