package epoch

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/store/internal/database"
)

// Transact changes rows outside of the engine's batches, in one transaction of two round trips. The first begins it,
// locks the rows that lock queues, and then reads the epoch. decide gets that, once it is checked; its Now is the time
// of the decision. The second writes what decide has queued, and commits. If decide returns an error, or has queued
// nothing, nothing is written.
//
// If the error is a lock.Error, the call is over. After any other error nothing was done, and it may be tried again.
func (m *Monitor) Transact(ctx context.Context, lock func(*pgx.Batch), decide func(ctx context.Context, conn *pgx.Conn, e Epoch, write *pgx.Batch) error) (err error) {
	pooled, err := m.db.Rest.Acquire(ctx)
	if err != nil {
		return err
	}
	defer pooled.Release()
	conn := pooled.Conn()
	open := true
	defer func() {
		if open {
			database.Rollback(conn)
		}
	}()
	known := m.Known()
	var e Epoch
	b := &pgx.Batch{}
	b.Queue(database.Begin)
	database.QueueSettings(b, database.RowTimeout)
	lock(b)
	Queue(b, m.db.Schema, &e)
	if err = conn.SendBatch(ctx, b).Close(); err == nil {
		err = e.Check(known)
	}
	write := &pgx.Batch{}
	if err == nil {
		err = decide(ctx, conn, e, write)
	}
	if err != nil {
		database.Rollback(conn)
		open = false
		return cmp.Or(m.Recover(err), err)
	}
	if write.Len() == 0 {
		return nil
	}
	write.Queue("commit")
	if err = database.CommitBatch(context.WithoutCancel(ctx), conn, write); err != nil {
		if database.EffectOfCommit(err) == database.Unknown {
			return database.UnknownOutcome(err)
		}
		return err
	}
	open = false
	return nil
}
