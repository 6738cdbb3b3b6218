package lock

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// MaxTreeLevels is the maximum number of levels of a name in a tree, its root included.
	MaxTreeLevels = 8
	// MaxTreePaths is the maximum number of locks that one acquire changes in trees, ancestors included.
	MaxTreePaths = 64
	// MaxTrees is the maximum number of trees.
	MaxTrees = 1000
)

// Trees are the roots of the declared trees. A tree consists of its root and of all names that begin with the root and
// a colon. In a tree, a lock covers all locks below it. So an exclusive lease conflicts with every lease above and
// below it, and a shared one with every exclusive lease above and below it. Locks outside of trees are independent of
// each other, whatever their names.
//
// The rule is that of Gray, Lorie, Putzolu and Traiger, "Granularity of Locks in a Large Shared Data Base" (1975). An
// acquire in a tree also gets an intention at each ancestor of its lock: a lease of mode IntentionShared or
// IntentionExclusive, which conflicts with each lease that would cover the lock, but not with other intentions. The
// lease and its intentions are a set: they begin and end together, and wait in all queues at once. So a waiter for a
// lock is not overtaken by requests for locks below it that join later.
type Trees map[string]struct{}

// A Tree is a declared tree.
type Tree struct {
	Root       string
	DeclaredAt time.Time // on the database's clock
}

// CheckRoot returns an ErrInvalid error unless root can be the root of a tree: a lock name that does not end with a
// colon.
func CheckRoot(root string) error {
	if err := CheckNameOf("root", root); err != nil {
		return err
	}
	if strings.HasSuffix(root, ":") {
		return Invalid("root", "ends with a colon; leave it out: the tree of %s has all names that begin with it",
			strings.TrimRight(root, ":"))
	}
	return nil
}

// CheckDeclare returns the refusal of a new tree: ErrTreeOverlaps if its root is inside another tree or above its root,
// and ErrInvalid beyond MaxTrees.
func (t Trees) CheckDeclare(root string) error {
	for other := range t {
		how := ""
		switch {
		case strings.HasPrefix(root, other+":"):
			how = "inside"
		case strings.HasPrefix(other, root+":"):
			how = "above"
		default:
			continue
		}
		return &Error{Code: ErrTreeOverlaps, Detail: fmt.Sprintf(
			"%s is %s the tree %s. Trees cannot overlap: use names in one tree, or remove that one first.", root, how, other)}
	}
	if _, again := t[root]; !again && len(t) >= MaxTrees {
		return Invalid("root", "exceeds the limit of %d trees; remove one first", MaxTrees)
	}
	return nil
}

// ErrBusyTree returns the refusal to declare or remove a tree while a lock in it is held or waited for.
func ErrBusyTree(root, name string) error {
	return &Error{Code: ErrTreeBusy, Detail: fmt.Sprintf("%s, in the tree %s, is held or waited for. A tree is declared and removed "+
		"only while all of its locks are free: release them, and try again.", name, root)}
}

// Path returns the ancestors of the lock in its tree, from the root on, without the lock itself; nil outside of trees.
func (t Trees) Path(name string) []string {
	path := t.path(name)
	return path[:max(len(path)-1, 0)]
}

// path returns the ancestors of the lock in its tree, from the root on, and the lock itself; nil outside of trees.
func (t Trees) path(name string) []string {
	if len(t) == 0 {
		return nil
	}
	var path []string
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != ':' {
			continue
		}
		if _, root := t[name[:i]]; root || path != nil {
			path = append(path, name[:i])
		}
	}
	return path
}

// Contains reports whether the lock is in a tree.
func (t Trees) Contains(name string) bool { return t.path(name) != nil }

// paths returns the locks, which are in order, and their ancestors, in order.
func (t Trees) paths(names []string) []string {
	var all []string
	for _, name := range names {
		if path := t.path(name); path != nil {
			all = append(all, path...)
		} else {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// expand returns the locks of a command, which are in order, with all ancestors; and the names that were asked for, nil if
// there are no others.
func (t Trees) expand(names []string) (all, asked []string) {
	if len(t) == 0 {
		return names, nil
	}
	if all = t.paths(names); len(all) == len(names) {
		return names, nil
	}
	return all, names
}
