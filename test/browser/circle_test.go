package browser_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// TestDeadlocksInABrowser tests the picture of a broken deadlock in a real browser, with the styles that its policy
// allows.
func TestDeadlocksInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"a deadlock appears as a circle":           deadlockAppears,
		"no circle makes the page scroll sideways": noSidewaysScrollOfCircles,
	})
}

// breakDeadlock lets as many tasks wait for each other's locks, until the wait of the last one is refused. It returns
// the names of the locks; the victim waited for the first one.
func breakDeadlock(t *testing.T, locks paddock.Service, n int, holder, prefix string) (names []string) {
	t.Helper()
	for i := range n {
		names = append(names, fmt.Sprint(prefix, i))
		a := lock.Acquire{Locks: lock.One(names[i]), Holder: holder, Task: lock.TaskID(fmt.Sprint("t", i)), TTL: time.Hour}
		if _, err := locks.Acquire(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	refused := make(chan error, n)
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	for i := range n {
		a := lock.Acquire{Locks: lock.One(names[(i+1)%n]), Holder: holder, Task: lock.TaskID(fmt.Sprintf("t%d.1", i)), TTL: time.Hour, Wait: lock.MaxWait}
		go func() {
			_, err := locks.Acquire(ctx, a)
			refused <- err
		}()
		for q := (lock.QueueInfo{}); len(q.Waiters) == 0; time.Sleep(time.Millisecond) {
			var err error
			if q, err = locks.Queue(t.Context(), a.Locks[0].Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-refused; !errors.Is(err, lock.ErrDeadlock) {
		t.Fatal(err)
	}
	return names
}

func deadlockAppears(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	b := showSessions(t, browser, locks)
	b.visit("/ui/locks/jobs:0", 1280, 800)
	b.waitLive()
	breakDeadlock(t, locks, 3, "worker", "jobs:")
	b.wait("document.querySelectorAll('.events .ring circle').length === 3")
	if got := b.text(".events .circle ol"); !strings.HasPrefix(got, "worker waited for jobs:0; worker held it\ngave way\n") {
		t.Errorf("the words are %q", got)
	}
	for what, script := range map[string]string{
		"the ring has its size":        "(r => r.width === 120 && r.height === 120)(document.querySelector('.events .ring').getBoundingClientRect())",
		"its arrows are lines":         "getComputedStyle(document.querySelector('.events .ring path')).fill === 'none'",
		"the victim has another color": "(c => c('.ring .victim') !== c('.ring circle:not(.victim)'))(s => getComputedStyle(document.querySelector(s)).stroke)",
	} {
		if !value[bool](b, script) {
			t.Errorf("it is not true that %s", what)
		}
	}
	b.do(b.ctx, chromedp.Click(chromedp.CSS(".events .circle a.lock")))
	b.wait("location.pathname === '/ui/locks/jobs:1'")
}

func noSidewaysScrollOfCircles(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	names := breakDeadlock(t, locks, lock.MaxCycleSteps, strings.Repeat("W", lock.MaxHolderLength), strings.Repeat("n", lock.MaxNameLength-2))
	showSessions(t, browser, locks).wantNoSidewaysScroll("/ui/locks/" + names[0])
}
