package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// treesRoot is the path of the list of trees. That of a tree's page begins with it.
const treesRoot = "/ui/trees"

func treePath(root string) string { return treesRoot + "/" + url.PathEscape(root) }

// A tree is a declared tree in the list.
type tree struct{ lock.Tree }

// URL returns the URL of the tree's page.
func (t tree) URL() string { return treePath(t.Root) }

// A treesPage lists the declared trees, with the form to declare one, or shows an error, or both.
type treesPage struct {
	view
	Trees   []tree
	Unread  bool        // the trees could not be read
	Removed string      // the root of a tree that the reader has just removed; empty: none
	Advice  *treeAdvice // what to do about the problem; nil: the problem says it all
	Form    bool        // to declare a tree
	Root    string      // as typed into the form
}

// MaxName returns the greatest length of a root, in characters.
func (treesPage) MaxName() int { return lock.MaxNameLength }

// treeAdvice is what to do after the refusal to declare or remove a tree.
type treeAdvice struct {
	Busy      bool // a lock of the tree is held or waited for; otherwise, the tree overlaps another
	Root      namedLock
	BelowURL  string // of the list of the locks below the root that are held or waited for
	Declaring bool
}

// adviceOn returns what to do about err, or nil if err says it all.
func adviceOn(err error, root string, declaring bool) *treeAdvice {
	switch {
	case errors.Is(err, lock.ErrTreeBusy), errors.Is(err, lock.ErrTreeOverlaps):
		below := location{filter: filter{Prefix: root + ":", Sort: string(paddock.ByAge)}}
		return &treeAdvice{
			Busy: errors.Is(err, lock.ErrTreeBusy), Root: nameOf(root, filter{}), BelowURL: below.URL(), Declaring: declaring,
		}
	}
	return nil
}

func (u *ui) trees(w http.ResponseWriter, r *http.Request) {
	u.showTrees(w, r, treesPage{Removed: r.URL.Query().Get("removed")}, nil)
}

// showTrees shows the list with err, or with the error of reading it.
func (u *ui) showTrees(w http.ResponseWriter, r *http.Request, p treesPage, err error) {
	p.view = u.viewOf(r, "Trees", nil) // a tree has no event
	p.Form = p.Reader.mayChangeTrees()
	status := http.StatusOK
	all, readErr := u.locks.Trees(r.Context())
	for _, t := range all {
		p.Trees = append(p.Trees, tree{t})
	}
	p.Unread = readErr != nil
	if err != nil {
		p.Advice = adviceOn(err, p.Root, true)
	} else {
		err = readErr
	}
	if err != nil {
		status = p.failed(u.problem(r, err))
	}
	// URLs can be forged, so the notice is shown only if it is true.
	if p.Unread || lock.CheckRoot(p.Removed) != nil || !p.Reader.covers(p.Removed) || findTree(all, p.Removed) != nil {
		p.Removed = ""
	}
	u.show(w, r, status, "trees", p)
}

// findTree returns the tree with the root, or nil.
func findTree(all []lock.Tree, root string) *lock.Tree {
	if i := slices.IndexFunc(all, func(t lock.Tree) bool { return t.Root == root }); i >= 0 {
		return &all[i]
	}
	return nil
}

// declareTree declares the tree and redirects to its page. It is idempotent, so after a lost answer the form may be
// sent again.
func (u *ui) declareTree(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.badForm(w, r, err)
		return
	}
	root := strings.TrimSpace(r.PostForm.Get("root"))
	if _, err := u.locks.DeclareTree(r.Context(), root); err != nil {
		u.showTrees(w, r, treesPage{Root: root}, err)
		return
	}
	http.Redirect(w, r, address(treePath(root), url.Values{"declared": {"1"}}), http.StatusSeeOther)
}

// removeTree removes the tree and redirects to the list, which confirms it. It is idempotent, too.
func (u *ui) removeTree(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.badForm(w, r, err)
		return
	}
	root := r.PathValue("root")
	var err error
	if readerOf(r).mayChangeTree(root) && r.PostForm.Get("confirm") == "" {
		err = &lock.Error{Code: lock.ErrInvalid, Detail: "Nothing was removed. Check the box to confirm, then remove the tree."}
	} else {
		err = u.locks.RemoveTree(r.Context(), root)
	}
	if err != nil {
		u.showTree(w, r, treePage{}, err)
		return
	}
	http.Redirect(w, r, address(treesRoot, url.Values{"removed": {root}}), http.StatusSeeOther)
}
