package memlock

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

func (r replica) DeclareTree(ctx context.Context, root string) (lock.Tree, error) {
	at, declared, err := r.changeTrees(ctx, root, func(t lock.Trees) error {
		if err := t.CheckDeclare(root); err != nil {
			return err
		}
		t[root] = struct{}{}
		return nil
	})
	if err != nil {
		return lock.Tree{}, err
	}
	return declared[at], nil
}

func (r replica) RemoveTree(ctx context.Context, root string) error {
	_, _, err := r.changeTrees(ctx, root, func(t lock.Trees) error {
		delete(t, root)
		return nil
	})
	return err
}

func (r replica) Trees(ctx context.Context) ([]lock.Tree, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.roots), contextError(ctx)
}

// changeTrees changes the trees, unless that is refused. It returns them, and where the root is or would be.
func (r replica) changeTrees(ctx context.Context, root string, change func(lock.Trees) error) (at int, _ []lock.Tree, err error) {
	if err := cmp.Or(lock.CheckRoot(root), contextError(ctx)); err != nil {
		return 0, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at, declared := slices.BinarySearchFunc(r.roots, root, func(t lock.Tree, root string) int { return strings.Compare(t.Root, root) })
	after := maps.Clone(r.trees)
	if err := change(after); err != nil {
		return 0, nil, err
	}
	if _, found := after[root]; found == declared {
		return at, r.roots, nil
	}
	r.expireSessions()
	busy := ""
	for _, name := range slices.Sorted(maps.Keys(r.locks)) {
		if name == root || strings.HasPrefix(name, root+":") {
			r.apply(lock.Caller{}, lock.Sweep{Locks: []string{name}})
			if s := r.locks[name]; len(s.Leases)+len(s.Queue) > 0 {
				busy = name
			}
		}
	}
	if busy != "" {
		return 0, nil, lock.ErrBusyTree(root, busy)
	}
	r.roots = slices.Clone(r.roots)
	if declared {
		r.roots = slices.Delete(r.roots, at, at+1)
	} else {
		r.roots = slices.Insert(r.roots, at, lock.Tree{Root: root, DeclaredAt: r.clock.now()})
	}
	r.trees = after
	return at, r.roots, nil
}
