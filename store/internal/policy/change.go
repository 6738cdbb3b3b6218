package policy

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

var (
	sqlLockRecords = database.Statement(files, "lock_records")
	sqlInUse       = database.Statement(files, "in_use")
	sqlChangeTree  = schema.NewStatement(sync.OnceValue(changeTree))
)

// changeTree returns the statement that changes a tree unless it is in use.
func changeTree() string {
	return strings.Replace(database.Text(files, "change_tree"), "{{.InUse}}", database.Text(files, "in_use"), 1)
}

const (
	// firstPatience is how long a change waits at first for the decisions in flight. Later decisions wait for the
	// change, so each attempt is given up soon. It waits twice as long as the one before it, but no longer than
	// maxPatience.
	firstPatience = 5 * time.Millisecond * database.Slowness
	maxPatience   = 40 * time.Millisecond * database.Slowness
	// maxAttempts is how often one call tries.
	maxAttempts = 8
	// restFactor is how many times as long as an attempt took none is made after it.
	restFactor = 10
)

// A Change is what a call that declares or removes a tree has found or done.
type Change struct {
	Tree lock.Tree // as it is declared, or was before it was removed; without an instant if there was none
	// Busy names locks of the tree that have leases or waiters, so nothing was changed. These may be over: a Sweep
	// tells.
	Busy []string
}

// Declare declares the tree, or finds it declared. Only a change of a tree holds up decisions, and for maxPatience at
// most: what is declared already or refused takes no lock.
func (c *Catalog) Declare(ctx context.Context, root string) (Change, error) {
	return c.change(ctx, root, true)
}

// Remove removes the tree, or finds that there is none.
func (c *Catalog) Remove(ctx context.Context, root string) (Change, error) {
	return c.change(ctx, root, false)
}

// change declares or removes the tree, unless that is done already, is refused, or some of its locks are busy.
func (c *Catalog) change(ctx context.Context, root string, declare bool) (Change, error) {
	pooled, err := c.db.Rest.Acquire(ctx)
	if err != nil {
		return Change{}, err
	}
	defer pooled.Release()
	conn, patience := pooled.Conn(), firstPatience
	for attempts := 0; attempts < maxAttempts; {
		var f found
		if f, err = c.find(ctx, conn, root); err != nil || f.declared == declare {
			return Change{Tree: f.tree}, err
		}
		if declare {
			err = f.trees.Trees.CheckDeclare(root)
		}
		if err != nil || len(f.busy) > 0 {
			return Change{Busy: f.busy}, err
		}
		var done bool
		if f.tree.DeclaredAt, done, err = c.write(ctx, conn, f, declare, patience); done {
			return Change{Tree: f.tree}, nil
		}
		if err == nil {
			continue // another call has changed a tree, or one has come into use
		}
		if database.EffectOf(err) != database.Blocked {
			return Change{}, err
		}
		attempts, patience = attempts+1, min(2*patience, maxPatience)
	}
	return Change{}, c.db.TableLocked(err)
}

// A found is what a change of a tree is decided on.
type found struct {
	epoch    epoch.Epoch
	trees    Snapshot
	tree     lock.Tree
	declared bool
	busy     []string
}

// find reads the tree. It locks nothing.
func (c *Catalog) find(ctx context.Context, conn *pgx.Conn, root string) (found, error) {
	known, f := c.epochs.Known(), found{tree: lock.Tree{Root: root}}
	b := &pgx.Batch{}
	epoch.Queue(b, c.db.Schema, &f.epoch)
	b.Queue(sqlPolicy.In(c.db.Schema)).QueryRow(f.trees.scan)
	b.Queue(sqlListTrees.In(c.db.Schema), root).Query(func(rows pgx.Rows) error {
		one, err := scanTrees(rows)
		if len(one) > 0 {
			f.declared, f.tree = true, one[0]
		}
		return err
	})
	b.Queue(sqlInUse.In(c.db.Schema), root).Query(func(rows pgx.Rows) (err error) {
		f.busy, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	err := conn.SendBatch(ctx, b).Close()
	if err == nil {
		err = f.epoch.Check(known)
	}
	return f, cmp.Or(c.epochs.Recover(err), err)
}

// write changes the tree, if all is still as it was found. Nothing is decided beside it. It is one round trip, so a
// replica that stops in the middle leaves no lock. After it no attempt is made for restFactor times as long. at is when
// the tree was declared.
func (c *Catalog) write(
	ctx context.Context, conn *pgx.Conn, f found, declare bool, patience time.Duration,
) (at time.Time, done bool, err error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if !c.db.Sleep(time.Until(c.next)) {
		return at, false, database.Stopping()
	}
	version := f.trees.Version
	b := &pgx.Batch{}
	b.Queue(database.Begin)
	database.QueueSettings(b, patience)
	b.Queue(sqlLockRecords.In(c.db.Schema))
	b.Queue(sqlChangeTree.In(c.db.Schema), f.tree.Root, declare, version.Epoch, version.Changes, f.epoch.Started).
		Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&at}, func() error { at, done = at.UTC(), true; return nil })
			return err
		})
	b.Queue("commit")
	began := time.Now()
	err = database.CommitBatch(context.WithoutCancel(ctx), conn, b)
	c.next = time.Now().Add(restFactor * time.Since(began))
	if err != nil {
		database.Rollback(conn)
		if database.EffectOfCommit(err) == database.Unknown {
			err = database.UnknownOutcome(err)
		}
		return time.Time{}, false, err
	}
	return at, done, nil
}
