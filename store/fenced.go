package store

import (
	"context"
	"embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/internal/tracing"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/engine"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

//go:embed sql/*.sql
var files embed.FS

var (
	sqlCreateFenced = database.Statement(files, "create_fenced")
	sqlLockFenced   = database.Statement(files, "lock_fenced")
	sqlSaveFenced   = database.Statement(files, "save_fenced")
	sqlReadFenced   = database.Statement(files, "read_fenced")
)

// WriteFenced writes the resource, see lock.Service. It locks the lock's row until the write is committed, so no grant
// comes between the check of the token and the write: when a lease has been granted, nothing is written under an older
// token any more.
func (s *Store) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	w, err := w.Resolve()
	if err != nil {
		return lock.FencedValue{}, err
	}
	if err := s.db.Admit(ctx); err != nil {
		return lock.FencedValue{}, err
	}
	// A call of package batch, so that a caller that leaves cancels no commit and learns whether the write may have been
	// done.
	c := batch.NewCall[lock.FencedWrite, lock.FencedValue](w)
	c.Caller = tracing.Recorded(ctx)
	s.work.Go(func() {
		select {
		case s.fencers <- struct{}{}:
			s.runFenced(c)
			<-s.fencers
		case <-ctx.Done():
		}
	})
	f, err := c.Wait(ctx)
	if report, stale := w.Stale(err); stale {
		s.recordStale(ctx, report)
	}
	return f, engine.Unanswered(err)
}

// recordTimeout is how long the answer to a stale write waits for its record.
const recordTimeout = 2 * time.Second

// recordStale records a write that this replica has refused. The refusal stands if the record fails.
func (s *Store) recordStale(ctx context.Context, r lock.ReportStale) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if _, err := s.ReportStale(ctx, r); err != nil && !lock.NotStale(err) {
		s.db.Log.Warn("cannot record a stale write", "lock", r.Name, "token", r.Token, "err", err)
	}
}

// ReportStale records a refused token, see lock.Service.
func (s *Store) ReportStale(ctx context.Context, r lock.ReportStale) (bool, error) {
	return s.stale.Record(ctx, r, time.Now(), s, func(ctx context.Context, c lock.Command) error {
		_, err := s.engine.Do(ctx, c)
		return err
	})
}

func (s *Store) runFenced(c *batch.Call[lock.FencedWrite, lock.FencedValue]) {
	began := s.db.Context()
	if span, ok := c.Caller.(trace.Span); ok {
		began = trace.ContextWithSpan(began, span)
	}
	err := s.db.Read(began, func(ctx context.Context) error {
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

// attemptFenced runs the write in one transaction of two round trips. If the error is not a lock.Error, nothing was done.
func (s *Store) attemptFenced(ctx context.Context, w lock.FencedWrite) (after lock.FencedValue, err error) {
	pooled, err := s.db.Rest.Acquire(ctx)
	if err != nil {
		return lock.FencedValue{}, err
	}
	defer pooled.Release()
	conn := pooled.Conn()
	defer func() {
		if err != nil {
			database.Rollback(conn)
		}
	}()
	known := s.epochs.Known()
	before, guard, e, err := loadFenced(ctx, conn, w)
	if err == nil {
		err = e.Check(known)
	}
	if errors.Is(err, database.ErrNoStandby) {
		return lock.FencedValue{}, database.NoStandby()
	}
	if err != nil {
		database.Rollback(conn)
		s.epochs.Recover(err)
		return lock.FencedValue{}, err
	}
	newest, err := w.RequiredToken(guard, e.Now)
	if err != nil {
		return lock.FencedValue{}, err
	}
	if after, err = w.Apply(before, newest, e.Now); err != nil {
		return lock.FencedValue{}, err
	}
	b := &pgx.Batch{}
	b.Queue(sqlSaveFenced, after.Key, after.Lock, after.Token, after.Version, []byte(after.Value), after.WrittenAt)
	b.Queue("commit")
	err = database.CommitBatch(context.WithoutCancel(ctx), conn, b)
	if err != nil && database.EffectOfCommit(err) == database.Unknown {
		err = database.UnknownOutcome(err)
	}
	return after, err
}

// loadFenced returns the resource, and of its lock what the write depends on. The epoch is read last, when both rows are
// locked.
func loadFenced(ctx context.Context, conn *pgx.Conn, w lock.FencedWrite) (f lock.FencedValue, guard lock.Record, e epoch.Epoch, err error) {
	b := &pgx.Batch{}
	b.Queue(database.Begin)
	database.QueueSettings(b, database.RowTimeout)
	row.QueueFence(b, w.Lock, &guard.Token)
	if w.Slot > 0 {
		row.QueueSlot(b, w.Lock, w.Slot, &guard)
	}
	b.Queue(sqlCreateFenced, w.Key, w.Lock)
	b.Queue(sqlLockFenced, w.Key).QueryRow(func(row pgx.Row) error { return scanFenced(row, &f) })
	epoch.Queue(b, &e)
	err = conn.SendBatch(ctx, b).Close()
	return f, guard, e, err
}

// ReadFenced returns the resource, see lock.Service.
func (s *Store) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	var f lock.FencedValue
	if err := lock.CheckKey(key); err != nil {
		return f, err
	}
	found := true
	err := s.db.Read(ctx, func(ctx context.Context) error {
		err := scanFenced(s.db.Rest.QueryRow(ctx, sqlReadFenced, key), &f)
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
