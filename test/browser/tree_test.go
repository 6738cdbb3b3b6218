package browser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// TestTreesInABrowser tests what the pages show of trees in a real browser.
func TestTreesInABrowser(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){
		"declaring and removing a tree by keyboard": changeTreesByKeyboard,
		"levels are further to the right":           levelsAreIndented,
		"a lock's page follows its tree":            lockFollowsItsTree,
		"no tree makes the page scroll sideways":    noSidewaysScrollOfTrees,
	})
}

// withTree returns a service with the tree, where the locks below the root are held.
func withTree(t *testing.T, root string, held ...string) paddock.Service {
	t.Helper()
	locks := memlock.New().Replica(1)
	if _, err := locks.DeclareTree(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	for _, name := range held {
		acquireSet(t, locks, "holder of "+name, name)
	}
	return locks
}

// wantRoots fails unless these are the roots of all trees.
func wantRoots(t *testing.T, locks paddock.Service, roots ...string) {
	t.Helper()
	all, err := locks.Trees(t.Context())
	got := []string{}
	for _, tree := range all {
		got = append(got, tree.Root)
	}
	if fmt.Sprint(got) != fmt.Sprint(roots) || err != nil {
		t.Errorf("the trees are %v, %v, want %v", got, err, roots)
	}
}

func changeTreesByKeyboard(t *testing.T, browser context.Context) {
	locks := withTree(t, "repo")
	token := acquireSet(t, locks, "worker", "jobs:a")
	b := showSessions(t, browser, locks)
	b.allowed = "Failed to load resource" // for the refusal
	b.visit("/ui/", 1280, 800)
	b.tabTo("nav a[href$='/ui/trees']")
	b.press(kb.Enter)
	b.wait("document.querySelectorAll('.trees tbody tr').length === 1")
	b.tabTo("#root")
	b.press("jobs" + kb.Enter)
	b.wait("document.activeElement.matches('.problem') && document.getElementById('root').value === 'jobs'")
	b.tabTo(".next a[href*='prefix=jobs']")
	b.press(kb.Enter)
	b.wait("document.querySelectorAll('#list tbody').length === 1")
	if _, err := locks.Revoke(t.Context(), lock.Revoke{Name: "jobs:a", Token: token, Reason: "a tree", SkipGrace: true}); err != nil {
		t.Fatal(err)
	}
	b.visit("/ui/trees", 1280, 800)
	b.tabTo("#root")
	b.press("jobs" + kb.Enter)
	b.wait("document.activeElement.matches('.notice') && document.activeElement.innerText.startsWith('Declared.')")
	wantRoots(t, locks, "jobs", "repo")
	b.tabTo("form .danger")
	b.press(kb.Enter) // the box is not checked: the browser focuses it
	b.wait("document.activeElement.name === 'confirm'")
	b.press(" ")
	b.tabTo("form .danger")
	b.press(kb.Enter)
	b.wait("document.activeElement.matches('.notice') && document.activeElement.innerText.startsWith('Removed.')")
	wantRoots(t, locks, "repo")
}

func levelsAreIndented(t *testing.T, browser context.Context) {
	locks := withTree(t, "repo", "repo:a:b:c", "repo:d")
	b := showSessions(t, browser, locks)
	for _, path := range []string{"/ui/trees/repo", "/ui/locks/repo"} {
		for _, width := range []int64{1400, 320} {
			b.visit(path, width, 800)
			b.wait("document.querySelectorAll('.tree .level').length === 5")
			steps := value[[]float64](b, "[...document.querySelectorAll('.tree .level')].map(e => e.getBoundingClientRect().left).map((x, i, all) => Math.sign(x - all[Math.max(i - 1, 0)]))")
			if fmt.Sprint(steps) != "[0 1 1 1 -1]" {
				t.Errorf("%s, %d pixels wide: the levels go %v", path, width, steps)
			}
		}
	}
}

func lockFollowsItsTree(t *testing.T, browser context.Context) {
	locks := withTree(t, "repo")
	b := showSessions(t, browser, locks)
	b.visit("/ui/locks/repo", 1280, 800)
	b.waitLive()
	token := acquireSet(t, locks, "worker", "repo:src")
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#refresh")))
	b.wait("document.getElementById('obstacle')?.innerText.includes('cannot be acquired')")
	b.wait("document.querySelector('.tree')?.innerText.includes('worker')")
	if _, err := locks.Revoke(t.Context(), lock.Revoke{Name: "repo:src", Token: token, Reason: "done", SkipGrace: true}); err != nil {
		t.Fatal(err)
	}
	b.wait("!document.getElementById('obstacle') && !document.querySelector('.tree')") // at the latest ten seconds later
}

func noSidewaysScrollOfTrees(t *testing.T, browser context.Context) {
	long, root := strings.Repeat("W", lock.MaxHolderLength), strings.Repeat("n", 60)
	deep := root + strings.Repeat(":"+strings.Repeat("m", 18), 7)
	locks := withTree(t, root, root+":a")
	acquireSet(t, locks, long, deep)
	waitForSet(t, locks, long, deep)
	if _, err := locks.DeclareTree(t.Context(), "idle"); err != nil {
		t.Fatal(err)
	}
	b := showSessions(t, browser, locks)
	b.allowed = "Failed to load resource" // for the unknown tree
	for _, path := range []string{"/ui/trees", "/ui/trees?removed=" + root + ":x", "/ui/trees/" + root, "/ui/trees/idle?declared=1", "/ui/trees/none", "/ui/locks/" + root, "/ui/locks/" + root + ":" + strings.Repeat("m", 18)} {
		b.wantNoSidewaysScroll(path)
	}
	b.visit("/ui/trees/none", 1280, 800)
	if got := b.text(".problem:not([hidden]) p"); !strings.HasPrefix(got, "none is not the root of a tree.") {
		t.Errorf("the problem is %q", got)
	}
}
