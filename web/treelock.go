package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// A treeLock is a lock in the drawing of a tree.
type treeLock struct {
	Name        string
	URL         string // of its page; empty if the service hides the name
	Level       int    // zero for the highest lock of the tree
	Here        bool   // the page is about this lock
	Leases      []lease
	More        int // leases that are not shown
	Waiters     []treeWaiter
	MoreWaiters int
}

// A treeWaiter is a waiter for a lock in the drawing of a tree.
type treeWaiter struct {
	lock.WaiterInfo
	For elapsed
}

// State returns the state of the lock's leases, or "" if it has none.
func (l treeLock) State() lock.State {
	for _, state := range []lock.State{lock.Suspect, lock.Held, lock.InGrace} {
		if slices.ContainsFunc(l.Leases, func(h lease) bool { return h.State == state }) {
			return state
		}
	}
	return ""
}

// Lines returns the number of table rows for the lock.
func (l treeLock) Lines() int {
	n := max(len(l.Leases), 1)
	if l.More > 0 {
		n++
	}
	return n
}

// Above returns what the name of the lock has in common with the level above it, and Last its own level.
func (l treeLock) Above() string { return l.Name[:len(l.Name)-len(l.Last())] }

// Last returns the last level of the name, with its colon if it is empty.
func (l treeLock) Last() string {
	if l.Level == 0 {
		return l.Name
	}
	return l.Name[strings.LastIndex(strings.TrimSuffix(l.Name, ":"), ":")+1:]
}

// cut hides leases and waiters beyond the first.
func (l *treeLock) cut() {
	n, w := min(len(l.Leases), maxRowLeases), min(len(l.Waiters), maxRowLeases)
	l.Leases, l.More = l.Leases[:n], l.More+len(l.Leases)-n
	l.Waiters, l.MoreWaiters = l.Waiters[:w], l.MoreWaiters+len(l.Waiters)-w
}

// A drawing are locks of a tree, by name.
type drawing struct {
	root  string
	from  filter // of the list that linked to the page
	locks map[string]*treeLock
}

func newDrawing(root string, from filter) drawing {
	return drawing{root: root, from: from, locks: map[string]*treeLock{}}
}

// at returns the lock in the drawing. It adds the lock if it is missing, and the locks between it and top, which is the
// lock itself or above it.
func (d drawing) at(top, name string) *treeLock {
	for i := len(top); i <= len(name); i++ {
		if i < len(name) && name[i] != ':' {
			continue
		}
		if part := name[:i]; d.locks[part] == nil {
			page := location{filter: d.from.First(), Lock: part}
			d.locks[part] = &treeLock{Name: part, URL: page.URL(), Level: d.levelOf(part)}
		}
	}
	return d.locks[name]
}

// levelOf returns how far the lock is below the root. A free lock may have a name with too many levels.
func (d drawing) levelOf(name string) int {
	return min(max(strings.Count(name, ":")-strings.Count(d.root, ":"), 0), lock.MaxTreeLevels-1)
}

// sorted returns the locks, each before those below it.
func (d drawing) sorted() []treeLock {
	all := make([]treeLock, 0, len(d.locks))
	for _, l := range d.locks {
		l.cut()
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b treeLock) int { return compareInTree(a.Name, b.Name) })
	return all
}

// compareInTree compares two names level by level, so that a lock is next to those below it.
func compareInTree(a, b string) int {
	return slices.Compare(strings.Split(a, ":"), strings.Split(b, ":"))
}

// treeLeaseOf returns a lease of the lock for the drawing.
func (d drawing) treeLeaseOf(name string, info lock.LeaseInfo, l lock.Lock) lease {
	one := leaseOf(name, info, l.AsOf, "")
	one.With = otherLocksOf(info.Set, location{filter: d.from, Lock: name}, "tree "+one.Key())
	return one
}

// hiddenAbove returns the lock whose name the service hides, with those of the leases above l that it hides; nil if
// there are none.
func (d drawing) hiddenAbove(l lock.Lock) *treeLock {
	var hidden *treeLock
	for _, info := range l.Above {
		if lock.CheckName(info.Name) == nil {
			continue
		}
		if hidden == nil {
			hidden = &treeLock{Name: info.Name}
		}
		hidden.Leases = append(hidden.Leases, d.treeLeaseOf(info.Name, info, l))
	}
	return hidden
}

// An obstacle is why a free lock of a tree cannot be acquired.
type obstacle struct {
	By    namedLock // the lock that has the lease
	Above bool      // it is above the free lock, not below
	Mode  lock.Mode // of the lease; Shared: the free lock can be acquired in the mode shared
	More  int       // other locks with leases above and below
}

// obstacleOf returns why the lock, which is free, cannot be acquired in every mode; nil if it can, or is not free. An
// exclusive lease is a reason for both modes.
func obstacleOf(l lock.Lock, from filter) *obstacle {
	var found *obstacle
	if l.State != lock.Free {
		return nil
	}
	names := map[string]bool{}
	for i, info := range slices.Concat(l.Above, l.Below) {
		names[info.Name] = true
		if found == nil || found.Mode == lock.Shared && info.Mode == lock.Exclusive {
			found = &obstacle{By: nameOf(info.Name, from), Above: i < len(l.Above), Mode: info.Mode}
		}
	}
	if found != nil {
		found.More = len(names) - 1
	}
	return found
}

// A namedLock is a name, with the URL of its lock's page; empty if the service hides the name.
type namedLock struct{ Name, URL string }

func nameOf(name string, from filter) namedLock {
	if lock.CheckName(name) != nil {
		return namedLock{Name: name}
	}
	return namedLock{name, location{filter: from.First(), Lock: name}.URL()}
}

// A lockTree is the tree of a lock's page, as far as it concerns the lock.
type lockTree struct {
	Root     string // empty: the lock is in no tree
	URL      string // of the tree's page
	Obstacle *obstacle
	Locks    []treeLock // empty unless leases are above or below
	More     int        // leases below that are not shown
	Revokes  bool       // the page offers to revoke the leases
}

// ShowsWaiters reports whether the drawing has waiters. The page lists those of its lock.
func (lockTree) ShowsWaiters() bool { return false }

// lockTreeOf returns the tree of the lock, if it is one of the trees, with the leases above and below the lock, as shown
// to the reader.
func lockTreeOf(l lock.Lock, trees []lock.Tree, here location, to reader) lockTree {
	t := lockTree{Revokes: to.mayRevoke()}
	for _, declared := range trees {
		if l.Name == declared.Root || strings.HasPrefix(l.Name, declared.Root+":") {
			t.Root, t.URL = declared.Root, treePath(declared.Root)
		}
	}
	if len(l.Above)+len(l.Below) == 0 {
		return t
	}
	t.Obstacle = obstacleOf(l, here.filter)
	d := newDrawing(cmp.Or(t.Root, l.Name), here.filter)
	d.at(l.Name, l.Name).Here = true
	add := func(at *treeLock, info lock.LeaseInfo) {
		one := d.treeLeaseOf(info.Name, info, l)
		one.Back, one.Revocable = here.Encode(), t.Revokes
		at.Leases = append(at.Leases, one)
	}
	for _, info := range l.Above {
		if lock.CheckName(info.Name) == nil {
			add(d.at(info.Name, info.Name), info)
		}
	}
	below := slices.Clone(l.Below)
	slices.SortStableFunc(below, func(a, b lock.LeaseInfo) int { return compareInTree(a.Name, b.Name) })
	if !here.All {
		below = below[:min(len(below), maxShown)]
	}
	t.More = len(l.Below) - len(below)
	for _, info := range below {
		if lock.CheckName(info.Name) == nil {
			add(d.at(l.Name, info.Name), info)
		}
	}
	t.Locks = d.sorted()
	if hidden := d.hiddenAbove(l); hidden != nil {
		t.Locks = slices.Insert(t.Locks, 0, *hidden)
	}
	return t
}

// setTree shows the waiters which lock below the page's they wait for in the tree.
func (q *queue) setTree(from filter) {
	for i := range q.Waiters {
		if w := &q.Waiters[i]; w.Name != "" {
			below := nameOf(w.Name, from)
			w.Below = &below
		}
	}
}
