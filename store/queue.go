package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// Queue returns who waits for a lock, see lock.Service. The statements see one
// moment of the database.
func (s *Store) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	if err := lock.CheckName(name); err != nil {
		return lock.QueueInfo{}, err
	}
	var q lock.QueueInfo
	err := s.read(ctx, func(ctx context.Context) (err error) {
		q, err = s.queue(ctx, name)
		return err
	})
	return q, err
}

func (s *Store) queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	var now time.Time
	var state lock.Record
	crowd := make(map[string]lock.Record)
	b := &pgx.Batch{}
	b.Queue("begin isolation level repeatable read read only")
	b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	b.Queue(sqlReadLock, name).Query(func(rows pgx.Rows) (err error) {
		_, state, err = lockOf(rows)
		return err
	})
	queueWaiters(b, []string{name}, s.outage.lenience(), crowd)
	b.Queue("commit")
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return lock.QueueInfo{}, err
	}
	defer conn.Release()
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		rollback(conn.Conn())
		return lock.QueueInfo{}, err
	}
	state.Queue = crowd[name].Queue
	return state.QueueInfo(now.UTC(), s.self), nil
}
