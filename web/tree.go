package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxTreeLocks bounds the locks that the drawing of a tree shows, without the free ones between them.
	maxTreeLocks = 200
	// maxTreeParts bounds the parts of a tree that are drawn for a key that does not cover the whole tree.
	maxTreeParts = 10
)

// A treePage draws a tree with the form to remove it, or shows an error, or both.
type treePage struct {
	view
	Tree     *tree // nil: unknown
	Locks    []treeLock
	More     bool        // other locks are held or waited for
	Parts    []namedLock // that the reader's key covers; nil: the whole tree
	Rest     int         // parts that are not shown
	Declared bool        // the reader has just declared the tree
	Advice   *treeAdvice // what to do about the problem; nil: the problem says it all
	Form     bool        // to remove the tree
}

// Limit returns the greatest number of locks on the page.
func (treePage) Limit() int { return maxTreeLocks }

// ShowsWaiters reports whether the drawing has waiters.
func (treePage) ShowsWaiters() bool { return true }

// Revokes reports whether the page offers to revoke the leases. The pages of the locks do.
func (treePage) Revokes() bool { return false }

// Idle reports whether no lock of the drawing is held or waited for.
func (p treePage) Idle() bool {
	return !slices.ContainsFunc(p.Locks, func(l treeLock) bool { return len(l.Leases)+len(l.Waiters) > 0 })
}

// TopLists returns the lists of the locks below the root, or below each part that is shown.
func (p treePage) TopLists() (lists []namedLock) {
	tops := p.Parts
	if tops == nil {
		tops = []namedLock{{Name: p.Tree.Root}}
	}
	for _, top := range tops {
		list := location{filter: filter{Prefix: top.Name + ":"}}
		lists = append(lists, namedLock{Name: top.Name, URL: list.URL()})
	}
	return lists
}

// ListURL returns the URL of the list of trees.
func (treePage) ListURL() string { return treesRoot }

func (u *ui) tree(w http.ResponseWriter, r *http.Request) { u.showTree(w, r, treePage{}, nil) }

// showTree shows the page with err, or with the error of reading the tree.
func (u *ui) showTree(w http.ResponseWriter, r *http.Request, p treePage, err error) {
	root := r.PathValue("root")
	events := readerOf(r).allEvents(root)
	if events == nil { // those of the root itself are missing then
		events = readerOf(r).allEvents(root + ":")
	}
	p.view = u.viewOf(r, "Tree "+root, events)
	readErr := u.readTree(r, &p, root)
	if errors.Is(readErr, lock.ErrInvalid) || errors.Is(readErr, lock.ErrNotFound) {
		p.Title = "No such tree"
	}
	if err != nil {
		p.Advice = adviceOn(err, root, false)
	}
	status := http.StatusOK
	if problem := cmp.Or(err, readErr); problem != nil {
		status = p.failed(u.problem(r, problem))
	}
	p.Form = p.Tree != nil && p.Reader.mayChangeTree(root)
	p.Declared = p.Tree != nil && r.URL.Query().Has("declared")
	u.show(w, r, status, "tree", p)
}

// readTree reads the tree and what is held and waited for in it.
func (u *ui) readTree(r *http.Request, p *treePage, root string) error {
	if err := lock.CheckRoot(root); err != nil {
		return err
	}
	all, err := u.locks.Trees(r.Context())
	if err != nil {
		return err
	}
	found := findTree(all, root)
	if found == nil {
		return &lock.Error{Code: lock.ErrNotFound, Detail: root + " is not the root of a tree. Choose one from the list of trees."}
	}
	p.Tree = &tree{*found}
	tops := p.Reader.partsOf(root)
	if !slices.Equal(tops, []string{root}) {
		tops, p.Rest = tops[:min(len(tops), maxTreeParts)], max(len(tops)-maxTreeParts, 0)
		for _, top := range tops {
			p.Parts = append(p.Parts, nameOf(top, filter{}))
		}
	}
	d := treeReading{drawing: newDrawing(root, filter{}), locks: u.locks, room: maxTreeLocks}
	for _, top := range tops {
		if err := d.read(r.Context(), top); err != nil {
			return err
		}
	}
	p.Locks, p.More, p.AsOf = d.sorted(), d.more, d.asOf
	if d.above != nil {
		d.above.cut()
		p.Locks = slices.Insert(p.Locks, 0, *d.above)
	}
	return nil
}

// A treeReading is the drawing of a tree while it is being read. Queues and locks are read one after the other, so a
// waiter may be in both.
type treeReading struct {
	drawing
	locks paddock.Service
	room  int       // how many more locks with leases or waiters it takes
	more  bool      // there were more
	above *treeLock // the leases above that the service hides; nil: none
	asOf  time.Time
}

// read adds the lock at the top of a part of the tree, and the locks below it that are held or waited for.
func (d *treeReading) read(ctx context.Context, top string) error {
	q, err := d.locks.Queue(ctx, top)
	if err != nil {
		return err
	}
	l, err := d.locks.Lock(ctx, top)
	if err != nil {
		return err
	}
	if d.asOf.IsZero() {
		d.asOf = earlier(q.AsOf, l.AsOf)
	}
	d.at(top, top)
	d.addLeases(top, l)
	d.addAbove(l)
	if len(top) < lock.MaxNameLength { // otherwise, no name is below it
		query := paddock.LockQuery{Prefix: top + ":", Sort: paddock.ByAge, Limit: maxTreeLocks + 1}
		page, err := d.locks.Locks(ctx, query)
		if err != nil {
			return err
		}
		for _, below := range page.Items {
			d.addLeases(top, below)
		}
	}
	for _, w := range q.Waiters {
		d.addWaiter(top, w)
	}
	return nil
}

// reserve returns the lock in the drawing, or nil if the drawing has no room for it.
func (d *treeReading) reserve(top, name string) *treeLock {
	if at := d.drawing.locks[name]; at != nil && len(at.Leases)+len(at.Waiters) > 0 {
		return at
	}
	if d.room == 0 {
		d.more = true
		return nil
	}
	d.room--
	return d.at(top, name)
}

func (d *treeReading) addLeases(top string, l lock.Lock) {
	if len(l.Leases) == 0 {
		return
	}
	at := d.reserve(top, l.Name)
	if at == nil {
		return
	}
	for _, info := range l.Leases {
		at.Leases = append(at.Leases, d.treeLeaseOf(l.Name, info, l))
	}
}

func (d *treeReading) addWaiter(top string, w lock.WaiterInfo) {
	name := cmp.Or(w.Name, top)
	if lock.CheckName(name) != nil {
		return
	}
	if at := d.reserve(top, name); at != nil {
		at.Waiters = append(at.Waiters, treeWaiter{WaiterInfo: w, For: elapsed(w.Waited)})
	}
}

// addAbove adds the leases above the lock that the service hides. Each covers several parts of the tree.
func (d *treeReading) addAbove(l lock.Lock) {
	hidden := d.hiddenAbove(l)
	switch {
	case hidden == nil:
	case d.above == nil:
		d.above = hidden
	default:
		for _, one := range hidden.Leases {
			if !slices.ContainsFunc(d.above.Leases, func(other lease) bool { return other.Key() == one.Key() }) {
				d.above.Leases = append(d.above.Leases, one)
			}
		}
	}
}
