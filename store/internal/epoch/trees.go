package epoch

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

var (
	sqlTrees       = database.Statement(files, "trees")
	sqlListTrees   = database.Statement(files, "list_trees")
	sqlLockRecords = database.Statement(files, "lock_records")
	sqlInUse       = database.Statement(files, "in_use")
	sqlAddTree     = database.Statement(files, "add_tree")
	sqlRemoveTree  = database.Statement(files, "remove_tree")
	sqlCountTrees  = database.Statement(files, "count_trees")
)

// treesTimeout bounds how long a change of the trees waits for decisions in flight. Later decisions wait for the change.
const treesTimeout = 2 * time.Second

// Trees are the trees, as they were after some number of changes in an epoch.
//
// A decision is made for the trees that its replica knows, and is written only if they have not changed since: see
// Epoch.Trees and sql/swap.sql. A change excludes all decisions while it is committed, so it sees what each earlier one
// has written, and each later one sees the change. So a tree is declared for all replicas at one instant.
type Trees struct {
	lock.Trees
	epoch, changes int64
}

// Of reports whether these are the trees of the epoch as it was read.
func (t *Trees) Of(e Epoch) bool { return t != nil && t.epoch == e.Number && t.changes == e.Trees }

// Version returns the epoch, and how many changes of trees there had been in it; null for nil.
func (t *Trees) Version() (epoch, changes pgtype.Int8) {
	if t == nil {
		return epoch, changes
	}
	return pgtype.Int8{Int64: t.epoch, Valid: true}, pgtype.Int8{Int64: t.changes, Valid: true}
}

// isNewer reports whether t has a change that o lacks.
func (t *Trees) isNewer(o *Trees) bool {
	return o == nil || t.epoch > o.epoch || t.epoch == o.epoch && t.changes > o.changes
}

// refreshTrees reads the trees, on a connection of its own.
func (g *Guard) refreshTrees() error {
	return g.db.Within(func(ctx context.Context) error {
		_, err := g.readTrees(ctx, g.db.Rest)
		return err
	})
}

// readTrees reads the trees, and notes them unless newer ones are known.
func (g *Guard) readTrees(ctx context.Context, from querier) (*Trees, error) {
	t, err := treesOf(ctx, from)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.isNewer(g.trees.Load()) {
		g.trees.Store(t)
	}
	return t, nil
}

// A querier is a connection or a pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func treesOf(ctx context.Context, from querier) (*Trees, error) {
	t := &Trees{}
	var roots []string
	if err := from.QueryRow(ctx, sqlTrees).Scan(&t.epoch, &t.changes, &roots); err != nil {
		return nil, err
	}
	if len(roots) > 0 {
		t.Trees = make(lock.Trees, len(roots))
	}
	for _, root := range roots {
		t.Trees[root] = struct{}{}
	}
	return t, nil
}

// DeclareTree declares the tree, or finds it declared. busy names locks of the tree that have leases or waiters; then it
// was not declared. These may be over: a Sweep tells.
func (g *Guard) DeclareTree(ctx context.Context, root string) (declared lock.Tree, busy []string, err error) {
	declared.Root = root
	busy, err = g.changeTrees(ctx, root, func(ctx context.Context, conn *pgx.Conn, t *Trees) (bool, error) {
		if _, again := t.Trees[root]; again {
			return false, conn.QueryRow(ctx, sqlListTrees, root).Scan(&declared.Root, &declared.DeclaredAt)
		}
		if err := t.CheckDeclare(root); err != nil {
			return false, err
		}
		return true, conn.QueryRow(ctx, sqlAddTree, root).Scan(&declared.DeclaredAt)
	})
	declared.DeclaredAt = declared.DeclaredAt.UTC()
	return declared, busy, err
}

// RemoveTree removes the tree, or finds that there is none. busy is as in DeclareTree.
func (g *Guard) RemoveTree(ctx context.Context, root string) (busy []string, err error) {
	return g.changeTrees(ctx, root, func(ctx context.Context, conn *pgx.Conn, _ *Trees) (bool, error) {
		tag, err := conn.Exec(ctx, sqlRemoveTree, root)
		return tag.RowsAffected() > 0, err
	})
}

// errBusy ends a transaction that has changed a tree in use.
var errBusy = errors.New("there are leases or waiters in the tree")

// changeTrees runs change in a transaction beside which nothing is decided. change reports whether it has changed the
// tree, which is undone if some of its locks are busy.
func (g *Guard) changeTrees(
	ctx context.Context, root string, change func(context.Context, *pgx.Conn, *Trees) (bool, error),
) (busy []string, err error) {
	conn, err := g.db.Rest.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	err = alone(ctx, conn.Conn(), func(ctx context.Context, conn *pgx.Conn) error {
		t, err := g.lockTrees(ctx, conn)
		if err != nil {
			return err
		}
		changed, err := change(ctx, conn, t)
		if err != nil || !changed {
			return err
		}
		rows, err := conn.Query(ctx, sqlInUse, root)
		if err != nil {
			return err
		}
		if busy, err = pgx.CollectRows(rows, pgx.RowTo[string]); err == nil && len(busy) > 0 {
			return errBusy
		}
		if err == nil {
			_, err = conn.Exec(ctx, sqlCountTrees)
		}
		return err
	})
	if errors.Is(err, errBusy) {
		return busy, nil
	}
	g.Recover(err)
	return nil, err
}

// lockTrees excludes decisions until the transaction ends, and reads the trees.
func (g *Guard) lockTrees(ctx context.Context, conn *pgx.Conn) (*Trees, error) {
	k := g.Known()
	var e Epoch
	b := &pgx.Batch{}
	database.QueueSettings(b, treesTimeout)
	b.Queue(sqlLockRecords)
	Queue(b, &e)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	if err := e.Check(k); err != nil && !errors.Is(err, ErrTrees) {
		return nil, err
	}
	return treesOf(ctx, conn)
}

// ListTrees returns the trees, in the order of their roots.
func ListTrees(ctx context.Context, from interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}) ([]lock.Tree, error) {
	rows, err := from.Query(ctx, sqlListTrees, nil)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t lock.Tree, err error) {
		err = row.Scan(&t.Root, &t.DeclaredAt)
		t.DeclaredAt = t.DeclaredAt.UTC()
		return t, err
	})
}
