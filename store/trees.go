package store

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// DeclareTree declares a tree, see lock.Service.
func (s *Store) DeclareTree(ctx context.Context, root string) (lock.Tree, error) {
	return s.changeTrees(ctx, root, func(ctx context.Context, root string) (c treeChange, err error) {
		c.tree, c.busy, err = s.epochs.DeclareTree(ctx, root)
		return c, err
	})
}

// RemoveTree removes a tree, see lock.Service.
func (s *Store) RemoveTree(ctx context.Context, root string) error {
	_, err := s.changeTrees(ctx, root, func(ctx context.Context, root string) (c treeChange, err error) {
		c.busy, err = s.epochs.RemoveTree(ctx, root)
		return c, err
	})
	return err
}

// A treeChange is what came of the attempt to change a tree.
type treeChange struct {
	tree lock.Tree
	busy []string // locks that have leases or waiters, so that nothing was changed
}

// Trees returns the trees, see lock.Service.
func (s *Store) Trees(ctx context.Context) (all []lock.Tree, err error) {
	err = s.db.Read(ctx, func(ctx context.Context) (err error) {
		all, err = epoch.ListTrees(ctx, s.db.Rest, s.db.Schema)
		return err
	})
	return all, err
}

// changeTrees changes a tree. Leases and waiters in it that are over are swept, and do not prevent the change.
func (s *Store) changeTrees(
	ctx context.Context, root string, change func(context.Context, string) (treeChange, error),
) (lock.Tree, error) {
	if err := lock.CheckRoot(root); err != nil {
		return lock.Tree{}, err
	}
	for swept := false; ; swept = true {
		c, err := transact(ctx, s, root, transaction[string, treeChange]{
			turns: []chan struct{}{s.writers}, read: s.db.Read,
			attempt: change,
		})
		switch {
		case err != nil || len(c.busy) == 0:
			return c.tree, err
		case swept:
			return lock.Tree{}, lock.ErrBusyTree(root, c.busy[len(c.busy)-1]) // the ones above have only intentions, mostly
		}
		if _, err := s.engine.Do(ctx, lock.Sweep{Locks: c.busy}); err != nil {
			return lock.Tree{}, err
		}
	}
}

// readAbove adds the leases above the lock in its tree.
func (s *Store) readAbove(ctx context.Context, l *lock.Lock) error {
	for _, name := range s.epochs.Trees().Path(l.Name) {
		r, err := s.readOne(ctx, row.Only(name))
		if err != nil {
			return err
		}
		l.AddAbove(r.Lock())
	}
	return nil
}
