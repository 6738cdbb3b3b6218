package policy

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
)

// A Change is what a call that declares or removes a tree has found or done.
type Change struct {
	Tree lock.Tree // as it is declared, or was before it was removed; without an instant if there was none
	// Busy names locks of the tree that have leases or waiters, so nothing was changed. These may be over: a Sweep
	// tells.
	Busy []string
}

// Declare declares the tree, or finds it declared. What is declared already or refused takes no lock.
func (c *Catalog) Declare(ctx context.Context, root string) (Change, error) {
	return c.changeTree(ctx, root, true)
}

// Remove removes the tree, or finds that there is none.
func (c *Catalog) Remove(ctx context.Context, root string) (Change, error) {
	return c.changeTree(ctx, root, false)
}

// changeTree declares or removes the tree, unless that is done already, is refused, or some of its locks are busy.
func (c *Catalog) changeTree(ctx context.Context, root string, declare bool) (Change, error) {
	out := Change{Tree: lock.Tree{Root: root}}
	declared := false
	err := c.apply(ctx, plan{
		of: root,
		read: func(b *pgx.Batch, in schema.Name) {
			b.Queue(sqlListTrees.In(in), root).Query(func(rows pgx.Rows) error {
				one, err := scanTrees(rows)
				if declared = len(one) > 0; declared {
					out.Tree = one[0]
				}
				return err
			})
			b.Queue(sqlInUse.In(in), root).Query(func(rows pgx.Rows) (err error) {
				out.Busy, err = pgx.CollectRows(rows, pgx.RowTo[string])
				return err
			})
		},
		check: func(s *Snapshot) (bool, error) {
			if declared == declare {
				out.Busy = nil
				return true, nil
			}
			if declare {
				if err := s.Trees.CheckDeclare(root); err != nil {
					return true, err
				}
			}
			return len(out.Busy) > 0, nil
		},
		sql: sqlChangeTree, args: []any{root, declare}, into: []any{&out.Tree.DeclaredAt},
	})
	out.Tree.DeclaredAt = out.Tree.DeclaredAt.UTC()
	return out, err
}
