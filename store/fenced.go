package store

import (
	"context"
	"embed"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
)

//go:embed sql/*.sql
var files embed.FS

var (
	sqlCreateFenced = database.Statement(files, "create_fenced")
	sqlLockFenced   = database.Statement(files, "lock_fenced")
	sqlSaveFenced   = database.Statement(files, "save_fenced")
	sqlReadFenced   = database.Statement(files, "read_fenced")

	sqlSaveOperation   = database.Statement(files, "save_operation")
	sqlPruneOperations = database.Statement(files, "prune_operations")
)

// WriteFenced writes the resource, see paddock.Service. It locks the lock's row until the write is committed, so no grant
// comes between the check of the token and the write: when a lease has been granted, nothing is written under an older
// token any more.
func (s *Store) WriteFenced(ctx context.Context, w lock.FencedWrite) (f lock.FencedValue, err error) {
	defer func() {
		s.db.Observer.Call(observe.Call{Op: observe.WriteFenced, Stale: errors.Is(err, lock.ErrStaleToken), Err: err})
	}()
	if w, err = w.Resolve(); err != nil {
		return lock.FencedValue{}, err
	}
	f, err = transact(ctx, s, w, transaction[lock.FencedWrite, lock.FencedValue]{
		turns: []chan struct{}{s.fencers, s.writers}, read: s.db.Read, attempt: s.attemptFenced,
	})
	if report, stale := w.Stale(err); stale {
		s.recordRefused(ctx, report)
	}
	return f, err
}

// recordTimeout is how long the answer to a stale write waits for its record.
const recordTimeout = 2 * time.Second

// recordRefused records a write that this replica has refused. The refusal stands if the record fails.
func (s *Store) recordRefused(ctx context.Context, r lock.ReportStale) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if _, err := s.recordStale(ctx, r); err != nil && !lock.NotStale(err) {
		s.db.Log.Warn("cannot record a stale write", "lock", r.Name, "token", r.Token, "error", database.CauseOf(err))
	}
}

// ReportStale records a refused token, see paddock.Service.
func (s *Store) ReportStale(ctx context.Context, r lock.ReportStale) (bool, error) {
	recorded, err := s.recordStale(ctx, r)
	s.db.Observer.Call(observe.Call{Op: observe.ReportStale, Stale: err == nil, Err: err})
	return recorded, err
}

func (s *Store) recordStale(ctx context.Context, r lock.ReportStale) (bool, error) {
	return s.stale.Record(ctx, r, time.Now(), s, func(ctx context.Context, c lock.Command) error {
		_, err := s.engine.Do(ctx, c)
		return err
	})
}

// attemptFenced runs the write in one transaction. The epoch is read last, when both rows are locked.
func (s *Store) attemptFenced(ctx context.Context, w lock.FencedWrite) (after lock.FencedValue, err error) {
	var before lock.FencedValue
	var record lock.Record
	path := s.policy.Newest().Trees.Path(w.Lock)
	w.InTree = path != nil
	err = s.epochs.Transact(ctx, func(b *pgx.Batch) {
		for _, above := range path { // no lock above may be granted before the write is committed, either
			row.QueueFence(b, s.db.Schema, above, new(lock.Token))
		}
		row.QueueFence(b, s.db.Schema, w.Lock, &record.Token)
		if w.Slot > 0 {
			row.QueueSlot(b, s.db.Schema, w.Lock, w.Slot, &record)
		}
		b.Queue(sqlCreateFenced.In(s.db.Schema), w.Key, w.Lock)
		b.Queue(sqlLockFenced.In(s.db.Schema), w.Key).QueryRow(func(row pgx.Row) error { return scanFenced(row, &before) })
		if w.OperationID != "" {
			b.Queue(sqlSaveOperation.In(s.db.Schema), w.Key, w.OperationID).Exec(func(saved pgconn.CommandTag) error {
				w.Done = saved.RowsAffected() == 0
				return nil
			})
			b.Queue(sqlPruneOperations.In(s.db.Schema), lock.OperationTTL)
		}
	}, func(ctx context.Context, conn *pgx.Conn, e epoch.Epoch, write *pgx.Batch) error {
		in, err := s.policy.Of(ctx, conn, e)
		if err != nil {
			return err
		}
		if err := in.Elsewhere(w.Lock, w.Key); err != nil {
			return err
		}
		if now := in.Trees.Path(w.Lock); w.InTree != (now != nil) || !slices.Equal(path, now) {
			return policy.ErrChanged // other rows than these must be locked
		}
		if w.InTree {
			r, err := row.Only(w.Lock).ReadOne(ctx, conn, s.db.Schema, 0)
			if err != nil {
				return err
			}
			record = r.Record
		}
		if err := row.AddSessions(ctx, conn, s.db.Schema, &record, e.Now); err != nil {
			return err
		}
		newest, err := w.RequiredToken(record, e.Now)
		if err != nil {
			return err
		}
		if after, err = w.Apply(before, newest, e.Now); err != nil {
			return err
		}
		// Of an operation that was done, too: the answer waits until standbys have what it confirms.
		write.Queue(sqlSaveFenced.In(s.db.Schema), after.Key, after.Lock, after.Token, after.Version, []byte(after.Value), after.WrittenAt)
		return nil
	})
	return after, err
}

// ReadFenced returns the resource, see paddock.Service.
func (s *Store) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	var f lock.FencedValue
	if err := lock.CheckKey(key); err != nil {
		return f, err
	}
	found := true
	err := s.readHere(ctx, []string{key}, func(ctx context.Context) error {
		err := scanFenced(s.db.Rest.QueryRow(ctx, sqlReadFenced.In(s.db.Schema), key), &f)
		if found = !errors.Is(err, pgx.ErrNoRows); !found {
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
