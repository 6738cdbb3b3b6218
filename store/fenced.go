package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

// fencedCall is a fenced write on its way.
type fencedCall = batch.Call[lock.FencedWrite, lock.FencedValue]

// WriteFenced writes the resource, see lock.Service. It holds the lock's row, so
// that no grant comes between the check of the token and the write: when a lease
// has been granted, nothing lands any more under an older token.
func (s *Store) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	w, err := w.Resolve()
	if err != nil {
		return lock.FencedValue{}, err
	}
	if ctx.Err() != nil || s.ctx.Err() != nil {
		return lock.FencedValue{}, unavailable(context.Cause(ctx))
	}
	select {
	case s.fencers <- struct{}{}:
	case <-ctx.Done():
		return lock.FencedValue{}, unavailable(context.Cause(ctx))
	}
	// A group of one, so that a caller who leaves cancels no commit and is told
	// whether the write may have been done.
	g := batch.New(1, 1, func(calls []*fencedCall) {
		defer func() { <-s.fencers }()
		s.runFenced(calls[0])
	})
	f, err := g.Do(ctx, w)
	return f, leftEarly(err)
}

func (s *Store) runFenced(c *fencedCall) {
	err := s.read(s.ctx, func(ctx context.Context) error {
		if !c.Begin() {
			return nil
		}
		f, err := s.attemptFenced(ctx, c.Req)
		if err == nil || errors.As(err, new(*lock.Error)) {
			c.Answer(f, err)
			return nil
		}
		c.Rewind()
		return err
	})
	if err != nil && c.Begin() {
		c.Answer(lock.FencedValue{}, err)
	}
}

// attemptFenced runs the write in one transaction of two round trips. An error
// that is no lock.Error says that nothing was done.
func (s *Store) attemptFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return lock.FencedValue{}, err
	}
	defer conn.Release()
	known := s.epochs.known()
	before, guard, now, e, err := loadFenced(ctx, conn.Conn(), w)
	if err == nil {
		err = e.check(known)
	}
	if err != nil {
		rollback(conn.Conn())
		return lock.FencedValue{}, s.mendedFenced(err)
	}
	after, err := applyFenced(w, before, guard, now)
	if err != nil {
		rollback(conn.Conn())
		return lock.FencedValue{}, err
	}
	if err := saveFenced(context.WithoutCancel(ctx), conn.Conn(), after); err != nil {
		if fateOfCommit(err) == unknown {
			return lock.FencedValue{}, unknownOutcome(err)
		}
		rollback(conn.Conn())
		return lock.FencedValue{}, err
	}
	return after, nil
}

func applyFenced(w lock.FencedWrite, before lock.FencedValue, guard lock.Record, now time.Time) (lock.FencedValue, error) {
	newest, err := w.RequiredToken(guard, now)
	if err != nil {
		return before, err
	}
	return w.Apply(before, newest, now)
}

// loadFenced returns the resource, and of the lock what the write rests on.
func loadFenced(ctx context.Context, conn *pgx.Conn, w lock.FencedWrite) (f lock.FencedValue, guard lock.Record, now time.Time, e epoch, err error) {
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	queueSettings(b, rowTimeout)
	b.Queue(sqlLockFence, w.Lock).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&guard.Token); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil // a lock never used has granted no token
	})
	b.Queue(sqlEpoch).QueryRow(func(row pgx.Row) (err error) {
		e, err = scanEpoch(row)
		return err
	})
	if w.Slot > 0 {
		b.Queue(sqlReadSlot, w.Lock, w.Slot).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var r row
				if err := rows.Scan(r.targets()...); err != nil {
					return err
				}
				guard.Leases = append(guard.Leases, r.lease())
			}
			return rows.Err()
		})
	}
	b.Queue(sqlCreateFenced, w.Key, w.Lock)
	b.Queue(sqlLockFenced, w.Key).QueryRow(func(row pgx.Row) error { return scanFenced(row, &f) })
	b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	err = conn.SendBatch(ctx, b).Close()
	return f, guard, now.UTC(), e, err
}

func saveFenced(ctx context.Context, conn *pgx.Conn, f lock.FencedValue) error {
	forget(conn)
	b := &pgx.Batch{}
	b.Queue(sqlSaveFenced, f.Key, f.Lock, f.Token, f.Version, []byte(f.Value), f.WrittenAt)
	b.Queue("commit")
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	return confirmed(conn)
}

// ReadFenced returns the resource, see lock.Service.
func (s *Store) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	var f lock.FencedValue
	if err := lock.CheckKey(key); err != nil {
		return f, err
	}
	found := true
	err := s.read(ctx, func(ctx context.Context) error {
		err := scanFenced(s.pool.QueryRow(ctx, sqlReadFenced, key), &f)
		found = !errors.Is(err, pgx.ErrNoRows)
		if !found {
			return nil
		}
		return err
	})
	if err == nil && !found {
		return f, &lock.Error{Code: lock.ErrNotFound, Detail: "No value was ever written under this key."}
	}
	return f, err
}

func scanFenced(row pgx.Row, f *lock.FencedValue) error {
	var value []byte
	err := row.Scan(&f.Key, &f.Lock, &f.Token, &f.Version, &value, &f.WrittenAt)
	f.Value, f.WrittenAt = value, f.WrittenAt.UTC()
	return err
}
