package store

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// DeclareTree declares a tree, see paddock.Service.
func (s *Store) DeclareTree(ctx context.Context, root string) (lock.Tree, error) {
	return s.changeTree(ctx, root, s.policy.Declare)
}

// RemoveTree removes a tree, see paddock.Service.
func (s *Store) RemoveTree(ctx context.Context, root string) error {
	_, err := s.changeTree(ctx, root, s.policy.Remove)
	return err
}

// Trees returns the trees, see paddock.Service.
func (s *Store) Trees(ctx context.Context) (all []lock.Tree, err error) {
	err = s.db.Read(ctx, func(ctx context.Context) (err error) {
		all, err = policy.List(ctx, s.db.Rest, s.db.Schema)
		return err
	})
	return all, err
}

// changeTree changes a tree. Leases and waiters in it that are over are swept, and do not prevent the change.
func (s *Store) changeTree(
	ctx context.Context, root string, change func(context.Context, string) (policy.Change, error),
) (lock.Tree, error) {
	if err := lock.CheckRoot(root); err != nil {
		return lock.Tree{}, err
	}
	for swept := false; ; swept = true {
		c, err := transact(ctx, s, root, transaction[string, policy.Change]{
			turns: []chan struct{}{s.writers}, read: s.db.Read,
			attempt: change,
		})
		switch {
		case err != nil || len(c.Busy) == 0:
			return c.Tree, err
		case swept:
			return lock.Tree{}, lock.ErrBusyTree(root, c.Busy[len(c.Busy)-1]) // the ones above have only intentions, mostly
		}
		if _, err := s.engine.Do(ctx, lock.Sweep{Locks: c.Busy}); err != nil {
			return lock.Tree{}, err
		}
	}
}

// readAbove adds the leases above the lock in its tree.
func (s *Store) readAbove(ctx context.Context, l *lock.Lock) error {
	for _, name := range s.policy.Newest().Trees.Path(l.Name) {
		r, err := s.readOne(ctx, row.Only(name))
		if err != nil {
			return err
		}
		l.AddAbove(r.Lock())
	}
	return nil
}
