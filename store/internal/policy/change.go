package policy

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

var (
	sqlLockRecords = database.Statement(files, "lock_records")
	sqlInUse       = database.Statement(files, "in_use")
	sqlChangeTree  = change("change_tree")
)

// change returns a statement that changes the policy.
func change(name string) *schema.Statement {
	return schema.NewStatement(sync.OnceValue(func() string {
		text := strings.Replace(database.Text(files, name), "{{.Counted}}", database.Text(files, "counted"), 1)
		return strings.Replace(text, "{{.InUse}}", strings.ReplaceAll(database.Text(files, "in_use"), "$1", "$4"), 1)
	}))
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

// A plan is a change of the policy.
type plan struct {
	of   string                        // the scope or root that is changed; this database must have its group
	read func(*pgx.Batch, schema.Name) // queues what else the check needs; nil: nothing
	// check says whether nothing is to be changed, or why the change is refused, under the present policy.
	check func(*Snapshot) (nothing bool, err error)
	sql   *schema.Statement
	args  []any // of the statement, from $4 on
	into  []any // the targets of the row that the statement returns if it has changed the policy
}

// apply changes the policy, unless there is nothing to change or the change is refused. Only a change holds up
// decisions, and for maxPatience at most.
func (c *Catalog) apply(ctx context.Context, p plan) error {
	pooled, err := c.db.Rest.Acquire(ctx)
	if err != nil {
		return err
	}
	defer pooled.Release()
	conn, patience := pooled.Conn(), firstPatience
	for attempts := 0; attempts < maxAttempts; {
		now, epoch, err := c.find(ctx, conn, p)
		if err != nil {
			return err
		}
		if err := now.Elsewhere(p.of); err != nil {
			return err
		}
		if nothing, err := p.check(&now); nothing || err != nil {
			return err
		}
		done, err := c.write(ctx, conn, p, now.Version, epoch, patience)
		if done {
			return nil
		}
		if err == nil {
			continue // another call has changed the policy, or a tree has come into use
		}
		if database.EffectOf(err) != database.Blocked {
			return err
		}
		if attempts, patience = attempts+1, min(2*patience, maxPatience); attempts == maxAttempts {
			return c.db.TableLocked(err)
		}
	}
	return nil
}

// find reads the policy, and what else the plan needs. It locks nothing.
func (c *Catalog) find(ctx context.Context, conn *pgx.Conn, p plan) (Snapshot, epoch.Epoch, error) {
	var now Snapshot
	var e epoch.Epoch
	known := c.epochs.Known()
	b := &pgx.Batch{}
	epoch.Queue(b, c.db.Schema, &e)
	b.Queue(sqlPolicy.In(c.db.Schema)).QueryRow(now.scan)
	if p.read != nil {
		p.read(b, c.db.Schema)
	}
	err := conn.SendBatch(ctx, b).Close()
	if err == nil {
		err = e.Check(known)
	}
	return now, e, cmp.Or(c.epochs.Recover(err), err)
}

// write changes the policy, if all is still as it was found. Nothing is decided beside it. It is one round trip, so a
// replica that stops in the middle leaves no lock. After it no attempt is made for restFactor times as long.
func (c *Catalog) write(
	ctx context.Context, conn *pgx.Conn, p plan, version epoch.PolicyVersion, e epoch.Epoch, patience time.Duration,
) (done bool, err error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if !c.db.Sleep(time.Until(c.next)) {
		return false, database.Stopping()
	}
	began := time.Now()
	err = exclude(ctx, conn, c.db.Schema, database.Begin, patience, func(b *pgx.Batch) {
		b.Queue(p.sql.In(c.db.Schema), append([]any{version.Epoch, version.Changes, e.Started}, p.args...)...).
			Query(func(rows pgx.Rows) error {
				_, err := pgx.ForEachRow(rows, p.into, func() error { done = true; return nil })
				return err
			})
	})
	c.next = time.Now().Add(restFactor * time.Since(began))
	if err != nil {
		database.Rollback(conn)
		return false, err
	}
	return done, nil
}

// exclude begins with a statement, runs what change queues while nothing is decided, and commits, in one round trip.
// After an error the transaction, or what follows the savepoint that it began with, must be rolled back.
func exclude(
	ctx context.Context, conn *pgx.Conn, in schema.Name, begin string, patience time.Duration, change func(*pgx.Batch),
) error {
	b := &pgx.Batch{}
	b.Queue(begin)
	database.QueueSettings(b, patience)
	b.Queue(sqlLockRecords.In(in))
	change(b)
	b.Queue("commit")
	err := database.CommitBatch(context.WithoutCancel(ctx), conn, b)
	if err != nil && database.EffectOfCommit(err) == database.Unknown {
		return database.UnknownOutcome(err)
	}
	return err
}
