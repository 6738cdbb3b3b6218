package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// An Epoch is a stretch of the history of the locks on one database server, as
// operators see it.
type Epoch struct {
	Number            int64
	BeganAt           time.Time // on that server's clock
	System            int64     // the server's system identifier
	Timeline          string    // of its log, eight hexadecimal digits
	Reason            string    // why it began
	GrantsPausedUntil time.Time // nothing was granted before; zero: no such time
	Quorum            bool      // nothing is decided without a standby
	MaxLease          time.Duration
}

// Epochs returns all epochs, oldest first, and the database's clock.
func Epochs(ctx context.Context, databaseURL string) (all []Epoch, now time.Time, err error) {
	err = withConn(ctx, databaseURL, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sqlListEpochs)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Epoch, error) {
			var e Epoch
			var closed *time.Time
			var longestMS int64
			err := row.Scan(&e.Number, &e.BeganAt, &e.System, &e.Timeline, &e.Reason, &closed, &e.Quorum, &longestMS, &now)
			if closed != nil {
				e.GrantsPausedUntil = *closed
			}
			e.MaxLease = fromMS(longestMS)
			return e, err
		})
		return err
	})
	return all, now, err
}

// MaxAbove is the greatest token that an epoch can go on above: beyond it there is no
// room for a jump below lock.MaxToken.
const MaxAbove = int64(lock.MaxToken) - jump

// BeginEpoch begins an epoch though nothing shows that the database is another: an
// operator has put it back to an earlier state while no replica ran. Tokens go on far
// above the one given, at most MaxAbove, and above all that the database knows. Nothing is granted
// for as long as the longest lease that was granted before, even where a quorum is needed.
func BeginEpoch(ctx context.Context, databaseURL, reason string, above int64) error {
	return withConn(ctx, databaseURL, func(conn *pgx.Conn) error {
		_, err := alone(ctx, conn, func(ctx context.Context, conn *pgx.Conn) (begun, error) {
			return beginEpoch(ctx, conn, reason, known{token: above}, true)
		})
		return err
	})
}

// OpenEpoch has locks be granted again although the newest epoch is closed, since an
// operator knows that no lease is unknown: no holder lives, or nothing was lost. It
// returns false if the epoch is open already.
func OpenEpoch(ctx context.Context, databaseURL, reason string) (opened bool, err error) {
	err = withConn(ctx, databaseURL, func(conn *pgx.Conn) error {
		_, err := alone(ctx, conn, func(ctx context.Context, conn *pgx.Conn) (begun, error) {
			var number int64
			err := conn.QueryRow(ctx, sqlOpenEpoch, reason).Scan(&number)
			opened = err == nil
			if errors.Is(err, pgx.ErrNoRows) {
				err = nil
			}
			return begun{}, err
		})
		return err
	})
	return opened, err
}

// ErrNoStandby says that a quorum cannot be asked of a server that waits for no
// standby.
var ErrNoStandby = errors.New("synchronous_standby_names is empty: this server waits for no standby")

// RequireQuorum says whether every replica is to decide only while the server waits
// for standbys. From then on a fail-over to one of them has lost nothing, and needs no
// time in which nothing is granted. It fails with ErrNoStandby if there is none to wait for.
func RequireQuorum(ctx context.Context, databaseURL string, required bool) error {
	return withConn(ctx, databaseURL, func(conn *pgx.Conn) error {
		_, err := alone(ctx, conn, func(ctx context.Context, conn *pgx.Conn) (begun, error) {
			var replicates bool
			err := conn.QueryRow(ctx, sqlRequireQuorum, required).Scan(&replicates)
			if err == nil && required && !replicates {
				err = ErrNoStandby
			}
			return begun{}, err
		})
		return err
	})
}

// withConn runs f on a connection of its own, which hears what a store's connections do.
func withConn(ctx context.Context, databaseURL string, f func(*pgx.Conn) error) error {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return err
	}
	config.OnNotice, config.DefaultQueryExecMode = noteUnconfirmed, pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close(context.WithoutCancel(ctx)))
}
