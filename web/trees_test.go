package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// A treeFixture is a service in memory with the tree repo, in a bubble whose time begins at the start of the year 2000.
type treeFixture struct{ setFixture }

func inTree(t *testing.T, test func(treeFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fx := treeFixture{setFixture{t, memlock.New().Replica(1)}}
		fx.declare("repo")
		test(fx)
	})
}

func (fx treeFixture) declare(root string) {
	fx.Helper()
	if _, err := fx.locks.DeclareTree(fx.Context(), root); err != nil {
		fx.Fatal(err)
	}
}

// hold acquires one lock for an hour.
func (fx treeFixture) hold(holder, name string, mode lock.Mode) {
	fx.Helper()
	if _, err := fx.locks.Acquire(fx.Context(), lock.Acquire{Locks: []lock.Member{{Name: name, Mode: mode}}, Holder: holder, TTL: time.Hour}); err != nil {
		fx.Fatal(err)
	}
}

func (fx treeFixture) post(target string, form url.Values) (*http.Response, string) {
	fx.Helper()
	return ask(fx.T, web.New(web.Options{Locks: fx.locks}), posted(target, form))
}

// wantTrees fails unless these are the roots of all trees.
func (fx treeFixture) wantTrees(roots ...string) {
	fx.Helper()
	all, err := fx.locks.Trees(fx.Context())
	if err != nil {
		fx.Fatal(err)
	}
	var got []string
	for _, t := range all {
		got = append(got, t.Root)
	}
	if fmt.Sprint(got) != fmt.Sprint(roots) {
		fx.Errorf("the trees are %v, want %v", got, roots)
	}
}

func TestTreesAreListed(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		time.Sleep(time.Hour)
		fx.declare("billing:eu")
		body := fx.page("/ui/trees")
		wantText(fx.T, body, `<a href="/ui/trees/repo">repo`, "2000-01-01 00:00:00</time>",
			`<a href="/ui/trees/billing:eu">billing:`, "2000-01-01 01:00:00</time>", `action="/ui/trees"`)
		wantNoText(fx.T, body, "<script>", `role="alert" tabindex`, "No tree.")
		wantText(fx.T, fx.page("/ui/"), `<a href="/ui/trees">Trees</a>`)
	})
}

func TestEmptyListOfTrees(t *testing.T) {
	t.Parallel()
	r, body := getFrom(t, memlock.New().Replica(1), "/ui/trees?removed=&unknown=1")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "No tree is declared.", "Declare the tree")
}

func TestDeclaredTreeIsConfirmed(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		for range 2 { // as after a lost answer
			r, _ := fx.post("/ui/trees", url.Values{"root": {" billing:eu "}})
			wantStatus(fx.T, r, http.StatusSeeOther)
			if got := r.Header.Get("Location"); got != "/ui/trees/billing:eu?declared=1" {
				t.Errorf("leads to %q", got)
			}
		}
		fx.wantTrees("billing:eu", "repo")
		wantText(fx.T, fx.page("/ui/trees/billing:eu?declared=1"), `<div class="notice" role="status"`, "Declared.", "No lock is held or waited for.", "Remove the tree")
	})
}

func TestRemovedTreeIsConfirmed(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		for range 2 {
			r, _ := fx.post("/ui/trees/repo", url.Values{"confirm": {"1"}})
			wantStatus(fx.T, r, http.StatusSeeOther)
			if got := r.Header.Get("Location"); got != "/ui/trees?removed=repo" {
				t.Errorf("leads to %q", got)
			}
		}
		fx.wantTrees()
		wantText(fx.T, fx.page("/ui/trees?removed=repo"), `<div class="notice" role="status"`, "Removed.", "<b class=\"lock\">repo</b>")
		fx.declare("repo")
		wantNoText(fx.T, fx.page("/ui/trees?removed=repo"), "Removed.") // the URL may be old, or forged
		wantNoText(fx.T, fx.page("/ui/trees?removed=%3Cb%3E"), "Removed.")
	})
}

func TestRefusedDeclaration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		root   string
		status int
		words  []string
	}{
		"a lock of the tree is held": {"jobs", http.StatusConflict, []string{"jobs:a, in the tree jobs, is held or waited for.",
			`<a href="/ui/locks/jobs">jobs</a>`, `<a href="/ui/?prefix=jobs%3A&amp;sort=age">the locks below it</a>`, "Then declare the tree again."}},
		"it is inside another tree":   {"repo:src", http.StatusConflict, []string{"repo:src is inside the tree repo.", "remove it first"}},
		"it is no name":               {"a b", http.StatusBadRequest, []string{"root"}},
		"it has a colon at its end":   {"jobs:", http.StatusBadRequest, []string{"root ends with a colon"}},
		"it is missing":               {"", http.StatusBadRequest, []string{"root"}},
		"it would be markup":          {"<b>x", http.StatusBadRequest, []string{`value="&lt;b&gt;x"`}},
		"it is longer than any name":  {strings.Repeat("n", lock.MaxNameLength+1), http.StatusBadRequest, []string{"root"}},
		"the lock itself is acquired": {"jobs:a", http.StatusConflict, []string{"jobs:a, in the tree jobs:a, is held or waited for."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTree(t, func(fx treeFixture) {
				fx.hold("worker", "jobs:a", lock.Exclusive)
				r, body := fx.post("/ui/trees", url.Values{"root": {c.root}})
				wantStatus(fx.T, r, c.status)
				wantText(fx.T, body, append(c.words, `role="alert"`, `href="/ui/trees/repo"`, "Declare the tree")...)
				if !strings.Contains(c.root, "<") {
					wantText(fx.T, body, `value="`+c.root+`"`)
				}
				wantSecured(fx.T, r, body)
				fx.wantTrees("repo")
			})
		})
	}
}

func TestRefusedRemoval(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		fx.hold("worker", "repo:src", lock.Shared)
		r, body := fx.post("/ui/trees/repo", url.Values{"confirm": {"1"}})
		wantStatus(fx.T, r, http.StatusConflict)
		wantText(fx.T, body, "in the tree repo, is held or waited for.", "Then remove the tree again.", "<bdi>worker</bdi>", `name="confirm"`)
		r, body = fx.post("/ui/trees/repo", url.Values{})
		wantStatus(fx.T, r, http.StatusBadRequest)
		wantText(fx.T, body, "Check the box to confirm", `name="confirm"`)
		r, body = fx.post("/ui/trees/repo:", url.Values{"confirm": {"1"}})
		wantStatus(fx.T, r, http.StatusBadRequest)
		wantText(fx.T, body, "No such tree")
		fx.wantTrees("repo")
	})
}

// TestOnlyAdminsOfTheRootChangeATree: others see no form, and their requests are refused.
func TestOnlyAdminsOfTheRootChangeATree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key           access.Key
		declare, may  bool // the page offers to declare trees, to remove this one
		declared, got int
	}{
		"a reader":             {access.Key{Role: access.Read}, false, false, http.StatusForbidden, http.StatusForbidden},
		"an admin of a part":   {access.Key{Role: access.Admin, Prefixes: []string{"repo:src"}}, true, false, http.StatusForbidden, http.StatusForbidden},
		"an admin of the root": {access.Key{Role: access.Admin, Prefixes: []string{"ops", "repo"}}, true, true, http.StatusForbidden, http.StatusSeeOther},
		"an admin":             {access.Key{Role: access.Admin}, true, true, http.StatusSeeOther, http.StatusSeeOther},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTree(t, func(fx treeFixture) {
				_, body := fx.as(c.key, httptest.NewRequest(http.MethodGet, "/ui/trees", nil))
				if strings.Contains(body, `name="root"`) != c.declare {
					t.Errorf("the list offers to declare: %t, want %t", !c.declare, c.declare)
				}
				_, body = fx.as(c.key, httptest.NewRequest(http.MethodGet, "/ui/trees/repo", nil))
				if strings.Contains(body, `name="confirm"`) != c.may {
					t.Errorf("the page offers to remove: %t, want %t:\n%s", !c.may, c.may, body)
				}
				r, _ := fx.as(c.key, posted("/ui/trees", url.Values{"root": {"billing"}}))
				wantStatus(fx.T, r, c.declared)
				r, body = fx.as(c.key, posted("/ui/trees/repo", url.Values{"confirm": {"1"}}))
				wantStatus(fx.T, r, c.got)
				if !c.may {
					wantText(fx.T, body, `role="alert"`)
					wantNoText(fx.T, body, `name="confirm"`)
				}
			})
		})
	}
}

func TestTreesAreListedAsTheKeyCovers(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		fx.declare("billing")
		_, body := fx.as(access.Key{Role: access.Read, Prefixes: []string{"repo:src"}}, httptest.NewRequest(http.MethodGet, "/ui/trees?removed=secret", nil))
		wantText(fx.T, body, "/ui/trees/repo")
		wantNoText(fx.T, body, "billing", "Removed.") // whether there is a tree secret is hidden
		_, body = fx.as(access.Key{Role: access.Read, Prefixes: []string{"ops"}}, httptest.NewRequest(http.MethodGet, "/ui/trees", nil))
		wantText(fx.T, body, "Your key covers no lock of a tree.")
		r, body := fx.as(access.Key{Role: access.Read, Prefixes: []string{"ops"}}, httptest.NewRequest(http.MethodGet, "/ui/trees/billing", nil))
		wantStatus(fx.T, r, http.StatusNotFound)
		wantText(fx.T, body, "No such tree")
	})
}
