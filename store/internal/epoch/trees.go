package epoch

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

var (
	sqlTrees       = database.Statement(files, "trees")
	sqlListTrees   = database.Statement(files, "list_trees")
	sqlLockRecords = database.Statement(files, "lock_records")
	sqlInUse       = database.Statement(files, "in_use")
	sqlChangeTree  = schema.NewStatement(sync.OnceValue(changeTree))
)

// changeTree returns the statement that changes a tree unless it is in use.
func changeTree() string {
	return strings.Replace(database.Text(files, "change_tree"), "{{.InUse}}", database.Text(files, "in_use"), 1)
}

const (
	// firstTreesPatience is how long a change of the trees waits at first for the decisions in flight. Later decisions
	// wait for the change, so each attempt is given up soon. It waits twice as long as the one before it, but no
	// longer than maxTreesPatience.
	firstTreesPatience = 5 * time.Millisecond * database.Slowness
	maxTreesPatience   = 40 * time.Millisecond * database.Slowness
	// treesAttempts is how often one call tries.
	treesAttempts = 8
	// treesRest is how many times as long as an attempt took none is made after it.
	treesRest = 10
)

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
func (m *Monitor) refreshTrees() error {
	return m.db.Within(func(ctx context.Context) error {
		_, err := m.readTrees(ctx, m.db.Rest)
		return err
	})
}

// readTrees reads the trees, and notes them unless newer ones are known.
func (m *Monitor) readTrees(ctx context.Context, from querier) (*Trees, error) {
	t, err := treesOf(ctx, from, m.db.Schema)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.isNewer(m.trees.Load()) {
		m.trees.Store(t)
	}
	return t, nil
}

// A querier is a connection or a pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func treesOf(ctx context.Context, from querier, in schema.Name) (*Trees, error) {
	t := &Trees{}
	return t, t.scan(from.QueryRow(ctx, sqlTrees.In(in)))
}

// scan reads the columns of sql/trees.sql.
func (t *Trees) scan(row pgx.Row) error {
	var roots []string
	if err := row.Scan(&t.epoch, &t.changes, &roots); err != nil {
		return err
	}
	if len(roots) > 0 {
		t.Trees = make(lock.Trees, len(roots))
	}
	for _, root := range roots {
		t.Trees[root] = struct{}{}
	}
	return nil
}

// DeclareTree declares the tree, or finds it declared. busy names locks of the tree that have leases or waiters; then
// it was not declared. These may be over: a Sweep tells. Only a change of the trees holds up decisions, and for
// maxTreesPatience at most: what is declared already or refused takes no lock.
func (m *Monitor) DeclareTree(ctx context.Context, root string) (declared lock.Tree, busy []string, err error) {
	at, busy, err := m.changeTrees(ctx, root, true, func(t *Trees) error { return t.CheckDeclare(root) })
	return lock.Tree{Root: root, DeclaredAt: at}, busy, err
}

// RemoveTree removes the tree, or finds that there is none. busy is as in DeclareTree.
func (m *Monitor) RemoveTree(ctx context.Context, root string) (busy []string, err error) {
	_, busy, err = m.changeTrees(ctx, root, false, func(*Trees) error { return nil })
	return busy, err
}

// changeTrees declares or removes the tree, unless that is done already, check refuses it, or some of its locks are
// busy. at is when the tree was declared.
func (m *Monitor) changeTrees(
	ctx context.Context, root string, declare bool, check func(*Trees) error,
) (at time.Time, busy []string, err error) {
	pooled, err := m.db.Rest.Acquire(ctx)
	if err != nil {
		return at, nil, err
	}
	defer pooled.Release()
	conn, patience := pooled.Conn(), firstTreesPatience
	for attempts := 0; attempts < treesAttempts; {
		var found readTree
		if found, err = m.readTree(ctx, conn, root); err != nil {
			return at, nil, err
		}
		if found.declared == declare {
			return found.at, nil, nil
		}
		if err := check(found.trees); err != nil || len(found.busy) > 0 {
			return at, found.busy, err
		}
		var done bool
		if at, done, err = m.changeTree(ctx, conn, root, declare, found, patience); done {
			return at, nil, nil
		}
		if err == nil {
			continue // another call has changed a tree, or one has come into use
		}
		if database.EffectOf(err) != database.Blocked {
			return at, nil, err
		}
		attempts, patience = attempts+1, min(2*patience, maxTreesPatience)
	}
	return at, nil, m.db.TableLocked(err)
}

// A readTree is what a change of a tree is decided on.
type readTree struct {
	epoch    Epoch
	trees    *Trees
	declared bool
	at       time.Time // when it was declared
	busy     []string  // its locks that have leases or waiters, which may be over
}

// readTree reads the tree. It locks nothing.
func (m *Monitor) readTree(ctx context.Context, conn *pgx.Conn, root string) (readTree, error) {
	k, r := m.Known(), readTree{trees: &Trees{}}
	b := &pgx.Batch{}
	Queue(b, m.db.Schema, &r.epoch)
	b.Queue(sqlTrees.In(m.db.Schema)).QueryRow(r.trees.scan)
	b.Queue(sqlListTrees.In(m.db.Schema), root).Query(func(rows pgx.Rows) error {
		tree, err := scanTrees(rows)
		if len(tree) > 0 {
			r.declared, r.at = true, tree[0].DeclaredAt
		}
		return err
	})
	b.Queue(sqlInUse.In(m.db.Schema), root).Query(func(rows pgx.Rows) (err error) {
		r.busy, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	err := conn.SendBatch(ctx, b).Close()
	if err == nil {
		err = r.epoch.Check(k)
	}
	if errors.Is(err, ErrTrees) { // what is read here is newer
		err = nil
	}
	return r, cmp.Or(m.Recover(err), err)
}

// changeTree changes the tree, if all is still as it was found. Nothing is decided beside it. It is one round trip, so
// a replica that stops in the middle leaves no lock. After it no attempt is made for treesRest times as long.
func (m *Monitor) changeTree(
	ctx context.Context, conn *pgx.Conn, root string, declare bool, found readTree, patience time.Duration,
) (at time.Time, done bool, err error) {
	m.treesTurn.Lock()
	defer m.treesTurn.Unlock()
	if !m.db.Sleep(time.Until(m.nextTrees)) {
		return at, false, database.Stopping()
	}
	b := &pgx.Batch{}
	b.Queue(database.Begin)
	database.QueueSettings(b, patience)
	b.Queue(sqlLockRecords.In(m.db.Schema))
	b.Queue(sqlChangeTree.In(m.db.Schema), root, declare, found.trees.epoch, found.trees.changes, found.epoch.Started).
		Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&at}, func() error { at, done = at.UTC(), true; return nil })
			return err
		})
	b.Queue("commit")
	began := time.Now()
	err = database.CommitBatch(context.WithoutCancel(ctx), conn, b)
	m.nextTrees = time.Now().Add(treesRest * time.Since(began))
	if err != nil {
		database.Rollback(conn)
		if database.EffectOfCommit(err) == database.Unknown {
			err = database.UnknownOutcome(err)
		}
		return time.Time{}, false, err
	}
	return at, done, nil
}

// ListTrees returns the trees, in the order of their roots.
func ListTrees(ctx context.Context, from interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, in schema.Name) ([]lock.Tree, error) {
	rows, err := from.Query(ctx, sqlListTrees.In(in), nil)
	if err != nil {
		return nil, err
	}
	return scanTrees(rows)
}

func scanTrees(rows pgx.Rows) ([]lock.Tree, error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t lock.Tree, err error) {
		err = row.Scan(&t.Root, &t.DeclaredAt)
		t.DeclaredAt = t.DeclaredAt.UTC()
		return t, err
	})
}
