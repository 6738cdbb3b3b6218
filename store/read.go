package store

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// readTries is how often a read is tried that meets a connection gone bad, and a
// fenced write that meets a row locked outside.
const readTries = 5

// read runs a function that changes nothing unless it succeeds, again if that may
// help. Reads and fenced writes have a quarter of the connections, so that
// deciding never waits for them.
func (s *Store) read(ctx context.Context, query func(context.Context) error) error {
	select {
	case s.guests <- struct{}{}:
		defer func() { <-s.guests }()
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	}
	pause := newPause()
	err := within(ctx, query)
	for try := 1; mayPass(err) && ctx.Err() == nil && try < readTries; try++ {
		if !s.sleep(pause.NextBackOff()) {
			break
		}
		err = within(ctx, query)
	}
	if err != nil {
		return readFailed(err)
	}
	return nil
}

// within runs the query, which may take no longer than a round trip may.
func within(ctx context.Context, query func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	return query(ctx)
}

// mayPass is whether another try may go well. One that took too long would again.
func mayPass(err error) bool {
	return err != nil && fateOf(err) != failed && !errors.Is(err, context.DeadlineExceeded)
}

// Lock returns a lock, see lock.Service.
func (s *Store) Lock(ctx context.Context, name string) (lock.Lock, error) {
	if err := lock.CheckName(name); err != nil {
		return lock.Lock{}, err
	}
	l, _, err := s.readLock(ctx, name)
	return l, err
}

// VerifyToken says how a token stands, see lock.Service.
//
// A lease that is in the table and past its end may have been renewed in time by a transaction whose commit is not
// visible yet, as one that waits for a standby. So the lock is read again then with its row locked: that waits for the
// transaction, and no renewal can come after that was decided before.
func (s *Store) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	v, err := v.Resolve()
	if err != nil {
		return lock.Verification{}, err
	}
	l, state, err := s.readLock(ctx, v.Name)
	if err == nil && v.NeedsLockedRead(state, l.AsOf) {
		l, state, err = s.readLockedLock(ctx, v.Name)
	}
	if err != nil {
		return lock.Verification{}, err
	}
	return v.Check(state, l.AsOf), nil
}

// readLock reads a lock, but for its queue, without locking it.
func (s *Store) readLock(ctx context.Context, name string) (l lock.Lock, state lock.Record, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sqlReadLock, name)
		if err != nil {
			return err
		}
		l, state, err = lockOf(rows)
		return err
	})
	return l, state, err
}

// readLockedLock reads a lock as readLock does, with its row locked, so that no transaction that changes it is open.
// It waits for one no longer than a batch does, a few times.
func (s *Store) readLockedLock(ctx context.Context, name string) (l lock.Lock, state lock.Record, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		b := &pgx.Batch{}
		b.Queue(sqlBegin)
		queueSettings(b, rowTimeout)
		b.Queue(sqlLockFence, name)
		b.Queue(sqlReadLock, name).Query(func(rows pgx.Rows) (err error) {
			l, state, err = lockOf(rows)
			return err
		})
		err = conn.SendBatch(ctx, b).Close()
		rollback(conn.Conn())
		return err
	})
	return l, state, err
}

// lockOf returns the one lock that the rows of sql/read_lock.sql are about.
func lockOf(rows pgx.Rows) (lock.Lock, lock.Record, error) {
	locks, states, err := lockRows(rows)
	if err != nil {
		return lock.Lock{}, lock.Record{}, err
	}
	return locks[0], states[0], nil
}

// Locks returns a page of locks, see lock.Service.
func (s *Store) Locks(ctx context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	var page lock.Page[lock.Lock]
	q, err := q.Resolve()
	if err != nil {
		return page, err
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || q.Cursor != "" && lock.CheckName(string(after)) != nil {
		return page, badCursor()
	}
	all := q.State == ""
	err = s.read(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sqlListLocks, string(after), q.Prefix, beyond(q.Prefix), q.Holder,
			all || q.State == lock.Free, all || q.State == lock.Held, all || q.State == lock.InGrace, q.Limit+1)
		if err != nil {
			return err
		}
		page.Items, _, err = lockRows(rows)
		return err
	})
	if len(page.Items) > q.Limit {
		page.Items = page.Items[:q.Limit]
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(page.Items[q.Limit-1].Name))
	}
	return page, err
}

// beyond returns what is greater than every name with the prefix. No name has
// the byte 0x7f, which is greater than all that they have.
func beyond(prefix string) string {
	if prefix == "" {
		return ""
	}
	return prefix + "\x7f"
}

func badCursor() error {
	return lock.Invalid("cursor", "is invalid; pass next_cursor unchanged, or omit it to start over")
}
