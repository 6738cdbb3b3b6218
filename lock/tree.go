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

// Decided returns the command as it is decided where these are the trees: with the ancestors of its locks. An Acquire
// must be resolved. The error is ErrInvalid.
func (t Trees) Decided(cmd Command) (Command, error) {
	if len(t) == 0 {
		return cmd, nil
	}
	switch c := cmd.(type) {
	case Acquire:
		return c.In(t)
	case Renew:
		return c.In(t), nil
	case Release:
		return c.In(t), nil
	case Claim:
		c.Name, c.Set, _ = t.expand(c.Name, c.Set)
		return c, nil
	case Leave:
		c.Name, c.Set, _ = t.expand(c.Name, c.Set)
		return c, nil
	}
	return cmd, nil // its locks are those of leases, which know their sets
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

// In returns a as it is decided where these are the trees: with an intention at each ancestor of its locks. a must be
// resolved. The error is ErrInvalid.
func (a Acquire) In(t Trees) (Acquire, error) {
	modes, asked := make(map[string]Mode), a.Names()
	for _, m := range a.members() {
		path := t.path(m.Name)
		if err := a.checkInTree(m, path); err != nil {
			return a, err
		}
		for _, above := range path[:max(len(path)-1, 0)] {
			modes[above] = max(modes[above], intentionFor(m.Mode))
		}
	}
	if len(modes) == 0 {
		return a, nil
	}
	members := slices.Clone(a.members())
	for _, m := range members {
		if intention := modes[m.Name]; intention == IntentionExclusive && m.Mode == Shared {
			return a, Invalid("locks", "include %s, shared, and an exclusive lock below it; acquire %[1]s exclusively instead", m.Name)
		}
		delete(modes, m.Name) // the lease itself conflicts with all that the intention does
	}
	for name, mode := range modes {
		members = append(members, Member{Name: name, Mode: mode})
	}
	if len(members) > MaxTreePaths {
		return a, Invalid("locks", "have %d locks with their ancestors in trees; give fewer, for at most %d", len(members), MaxTreePaths)
	}
	slices.SortFunc(members, func(m, o Member) int { return strings.Compare(m.Name, o.Name) })
	a.Name, a.Mode, a.Set, a.Requested = "", 0, members, asked
	return a, nil
}

// checkInTree returns what is wrong with a member whose path in a tree this is, nil outside of trees.
func (a Acquire) checkInTree(m Member, path []string) error {
	field := func(name string) string {
		if len(a.Set) > 0 {
			return "locks"
		}
		return name
	}
	switch {
	case path != nil && m.Mode == Permit:
		return Invalid(field("mode"), "is permit for %s, which is in the tree %s; there, use exclusive or shared", m.Name, path[0])
	case len(path) > MaxTreeLevels:
		return Invalid(field("name"), "has %d levels in the tree %s; at most %d are allowed", len(path), path[0], MaxTreeLevels)
	}
	return nil
}

// In returns r as it is decided where these are the trees: with the ancestors of its locks.
func (r Renew) In(t Trees) Renew {
	r.Name, r.Set, r.Requested = t.expand(r.Name, r.Set)
	return r
}

// In returns r as it is decided where these are the trees: with the ancestors of its locks.
func (r Release) In(t Trees) Release {
	r.Name, r.Set, r.Requested = t.expand(r.Name, r.Set)
	return r
}

// expand returns the lock or the set of a command with all ancestors, and the names that were asked for, nil if there
// are no others.
func (t Trees) expand(name string, set []string) (_ string, all, asked []string) {
	asked = namesOf(name, set)
	if all = t.paths(asked); len(all) == len(asked) {
		return name, set, nil
	}
	return "", all, asked
}
