package browser_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestManyLocksInABrowser answers an operator's questions where there are too many locks to read.
func TestManyLocksInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){"50,000 locks": findAmongMany})
}

// findAmongMany turns pages forwards and back, then finds a lock by a part of its name, the one with waiters, and the
// one that is held longest.
func findAmongMany(t *testing.T, browser context.Context) {
	const locks = 50_000
	fx := webtest.NewService()
	for i := range locks {
		held := time.Second
		if i == locks/3 {
			held = time.Hour
		}
		fx.Grant(lock.Acquire{Locks: lock.One(fmt.Sprintf("tenant-%05d:sync", i)), Holder: fmt.Sprintf("worker-%d", i%97), TTL: 24 * time.Hour}, held)
	}
	contended, oldest, last := fmt.Sprintf("tenant-%05d:sync", locks/2), fmt.Sprintf("tenant-%05d:sync", locks/3), fmt.Sprintf("%05d", locks-1)
	fx.Wait(lock.Acquire{Locks: lock.One(contended), Holder: "patient", TTL: time.Minute}, 0)
	b := open(t, browser, fx)
	b.visit("/ui/", 1360, 900)
	b.waitLive()
	const rows = "document.querySelectorAll('.locks tbody').length"
	if n := value[int](b, rows); n != paddock.DefaultLimit {
		t.Errorf("the first page has %d locks, want %d", n, paddock.DefaultLimit)
	}
	begins := func(number int) {
		t.Helper()
		b.wait(fmt.Sprintf("document.querySelector('.locks tbody th').textContent.trim() === 'tenant-%05d:sync'", number))
	}
	for _, c := range []struct {
		link   string
		number int
	}{{"next", 100}, {"next", 200}, {"previous", 100}, {"previous", 0}} {
		b.do(b.ctx, chromedp.Click(chromedp.CSS("#"+c.link)))
		begins(c.number)
	}
	b.visit("/ui/?q="+last, 1360, 900)
	b.wait(rows + " === 1")
	b.visit("/ui/?contended=true", 1360, 900)
	b.wait(rows + " === 1 && document.querySelector('.locks tbody th').textContent.trim() === '" + contended + "'")
	for _, sort := range []string{"waiters", "age"} {
		want := map[string]string{"waiters": contended, "age": oldest}[sort]
		b.visit("/ui/?sort="+sort, 1360, 900)
		b.wait(fmt.Sprintf("document.querySelector('.locks tbody th').textContent.trim() === '%s'", want))
		if n := value[int](b, rows); n != paddock.DefaultLimit {
			t.Errorf("the list sorted by %s has %d locks, want %d", sort, n, paddock.DefaultLimit)
		}
	}
	b.wantNoConsoleErrors()
}
