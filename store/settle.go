package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// jump is how far tokens, and the ids of events, go on above those that are
	// known: more than can have been lost, and 2^53 has room for two million jumps.
	jump = 1 << 32
	// settleTimeout is how long the beginning of an epoch may take, which rewrites
	// every lease, and waits for whoever else does it.
	settleTimeout = 5 * time.Minute
	// settleRowTimeout is how long it waits for a row that is locked.
	settleRowTimeout = 10 * time.Second
)

// mended sees to what kept a batch from being decided, and says whether it has.
func (s *Store) mended(err error) bool {
	longer := new(longerError)
	var mending error
	switch {
	case errors.Is(err, errVanished):
		s.seen.forget()
	case errors.Is(err, errAnother):
		mending = s.settle()
	case errors.Is(err, errShort):
		mending = s.extend()
	case errors.As(err, &longer):
		if mending = s.raise(longer.length); errors.Is(mending, errAnother) {
			mending = s.settle() // which goes by the leases that were granted before
		}
	default:
		return false
	}
	if mending != nil {
		s.log.Error("cannot start a new epoch; retrying", "because", err, "error", mending)
	}
	return mending == nil
}

// mendedFenced is mended for a fenced write, which is tried again after any error
// that may pass.
func (s *Store) mendedFenced(err error) error {
	if errors.Is(err, errNoStandby) {
		return noStandby()
	}
	s.mended(err)
	return err
}

// settle begins a new epoch if the database is another than that of the newest. Who
// comes second finds it begun.
func (s *Store) settle() error {
	began, err := s.alone(func(ctx context.Context, conn *pgx.Conn) (begun, error) {
		k := s.epochs.known()
		e, err := scanEpoch(conn.QueryRow(ctx, sqlEpoch))
		if err != nil {
			return begun{}, err
		}
		if cause := e.check(k); errors.Is(cause, errAnother) {
			return beginEpoch(ctx, conn, cause.Error(), k, false)
		}
		return begun{}, nil
	})
	if err == nil && began.number != 0 {
		s.log.Warn("new epoch started: the database was failed over or restored",
			"epoch", began.number, "grants_paused_for", began.closedFor())
	}
	return err
}

// alone runs f in a transaction that nobody else begins an epoch beside. Its commit
// is not cancelled, as in a batch.
func (s *Store) alone(f func(context.Context, *pgx.Conn) (begun, error)) (begun, error) {
	ctx, cancel := context.WithTimeout(s.ctx, settleTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return begun{}, err
	}
	defer conn.Release()
	return alone(ctx, conn.Conn(), f)
}

func alone(ctx context.Context, conn *pgx.Conn, f func(context.Context, *pgx.Conn) (begun, error)) (begun, error) {
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	queueSettings(b, settleRowTimeout)
	b.Queue(sqlLockEpochs)
	err := conn.SendBatch(ctx, b).Close()
	var out begun
	if err == nil {
		out, err = f(ctx, conn)
	}
	if err != nil {
		rollback(conn)
		return out, err
	}
	forget(conn)
	if _, err := conn.Exec(context.WithoutCancel(ctx), "commit"); err != nil {
		return out, err
	}
	return out, confirmed(conn)
}

// begun is an epoch that has just begun.
type begun struct {
	number      int64
	at          time.Time
	closedUntil *time.Time
}

func (b begun) closedFor() time.Duration {
	if b.closedUntil == nil {
		return 0
	}
	return b.closedUntil.Sub(b.at)
}

// beginEpoch writes the new epoch, in which tokens go on far above all that are
// known, and every lease has its whole TTL from now on, on the clock that there is
// now. Doubted is whether leases may be unknown although a quorum was asked for.
func beginEpoch(ctx context.Context, conn *pgx.Conn, reason string, k known, doubted bool) (begun, error) {
	var b begun
	row := conn.QueryRow(ctx, sqlBeginEpoch, reason, k.longest.Milliseconds(), k.number, doubted)
	if err := row.Scan(&b.number, &b.at, &b.closedUntil); err != nil {
		return b, err
	}
	batch := &pgx.Batch{}
	batch.Queue(sqlJump, k.token, int64(jump), k.event)
	batch.Queue(sqlRebaseLeases, b.at)
	batch.Queue(sqlRebaseLocks, b.at)
	batch.Queue(sqlRebaseWaiters, b.at, lock.MaxWait, lock.ReplicaTTL, lock.PlaceRetention)
	batch.Queue(sqlRebaseReplicas, b.at, lock.ReplicaTTL)
	return b, conn.SendBatch(ctx, batch).Close()
}

// raise notes that leases of that length are granted from now on. It is a
// transaction of its own, so that it is there before the first of them.
func (s *Store) raise(length time.Duration) error {
	whole := (length + time.Second - 1).Truncate(time.Second) // so that it is seldom
	_, err := s.alone(func(ctx context.Context, conn *pgx.Conn) (begun, error) {
		k := s.epochs.known()
		e, err := scanEpoch(conn.QueryRow(ctx, sqlEpoch))
		if cause := e.check(k); err == nil && errors.Is(cause, errAnother) {
			err = cause
		}
		if err == nil {
			_, err = conn.Exec(ctx, sqlRaiseLongest, whole.Milliseconds())
		}
		return begun{}, err
	})
	if err != nil {
		return fmt.Errorf("recording the longest lease, %v: %w", whole, err)
	}
	s.epochs.granted(whole)
	return nil
}

// extend has the newest epoch be closed for as long as leases were granted for before
// it, as this process remembers and whoever began it did not.
func (s *Store) extend() error {
	longest := s.epochs.known().longest
	_, err := s.alone(func(ctx context.Context, conn *pgx.Conn) (begun, error) {
		_, err := conn.Exec(ctx, sqlExtendEpoch, longest.Milliseconds())
		return begun{}, err
	})
	if err == nil {
		s.log.Warn("grants paused for longer: the database lost the length of the longest lease", "longest", longest)
	}
	return err
}

// watchEpoch settles a database that is another, though nobody asks for anything.
func (s *Store) watchEpoch(t *trouble) {
	err := s.lookAtEpoch()
	s.troubled(t, "epoch check", err)
	if readOnly(err) {
		s.pool.Reset() // and find the primary
	}
}

func (s *Store) lookAtEpoch() error {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	k := s.epochs.known()
	var e epoch
	var token int64
	b := &pgx.Batch{}
	b.Queue(sqlEpoch).QueryRow(func(row pgx.Row) (err error) {
		e, err = scanEpoch(row)
		return err
	})
	b.Queue(sqlNewest).QueryRow(func(row pgx.Row) error { return row.Scan(&token) })
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	switch err := e.check(k); {
	case errors.Is(err, errAnother):
		return s.settle()
	case errors.Is(err, errShort):
		return s.extend()
	}
	s.epochs.note(e, token, 0)
	return nil
}
