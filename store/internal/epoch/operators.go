package epoch

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

var (
	sqlListEpochs    = database.Statement(files, "list_epochs")
	sqlOpenEpoch     = database.Statement(files, "open_epoch")
	sqlRequireQuorum = database.Statement(files, "require_quorum")
)

// An Info is an epoch as operators see it.
type Info struct {
	Number            int64
	BeganAt           time.Time // on that server's clock
	System            int64     // the server's system identifier
	Timeline          string    // of its log, eight hexadecimal digits
	Reason            string    // why it started
	GrantsPausedUntil time.Time // nothing was granted before; zero: no pause was set
	Quorum            bool      // nothing is decided without a standby
	MaxLease          time.Duration
}

// List returns all epochs, oldest first, and the database's clock.
func List(ctx context.Context, databaseURL string) (all []Info, now time.Time, err error) {
	err = database.WithConn(ctx, databaseURL, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sqlListEpochs)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Info, error) {
			var e Info
			var pausedUntil *time.Time
			var longestMS int64
			err := row.Scan(&e.Number, &e.BeganAt, &e.System, &e.Timeline, &e.Reason, &pausedUntil, &e.Quorum, &longestMS, &now)
			if pausedUntil != nil {
				e.GrantsPausedUntil = *pausedUntil
			}
			e.MaxLease = fromMS(longestMS)
			return e, err
		})
		return err
	})
	return all, now, err
}

// MaxAbove is the greatest token that an epoch can continue above. Beyond it there is no room for a jump below
// lock.MaxToken.
const MaxAbove = int64(lock.MaxToken) - TokenJump

// Begin starts an epoch although no sign shows that the database is another one: an operator has put it back to an
// earlier state while no replica ran. Tokens continue far above the given one, at most MaxAbove, and above all that
// the database knows. Nothing is granted for as long as the longest lease that was granted before, even where a quorum
// is required.
func Begin(ctx context.Context, databaseURL, reason string, above int64) error {
	return change(ctx, databaseURL, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := begin(ctx, conn, reason, Known{token: lock.Token(above)}, true)
		return err
	})
}

// Open ends the pause of the newest epoch. The operator knows that no lease was lost, or that no holder of one is
// alive. It returns false if there is no pause.
func Open(ctx context.Context, databaseURL, reason string) (opened bool, err error) {
	err = change(ctx, databaseURL, func(ctx context.Context, conn *pgx.Conn) error {
		var number int64
		err := conn.QueryRow(ctx, sqlOpenEpoch, reason).Scan(&number)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		opened = err == nil
		return err
	})
	return opened && err == nil, err
}

// RequireQuorum sets whether every replica decides only while the server waits for standbys. With a quorum a fail-over
// to one of them has lost nothing, and grants are not paused. It fails with database.ErrNoStandby if there is none to wait for.
func RequireQuorum(ctx context.Context, databaseURL string, required bool) error {
	return change(ctx, databaseURL, func(ctx context.Context, conn *pgx.Conn) error {
		var replicates bool
		err := conn.QueryRow(ctx, sqlRequireQuorum, required).Scan(&replicates)
		if err == nil && required && !replicates {
			err = database.ErrNoStandby
		}
		return err
	})
}

// change runs f in a transaction of its own connection, alone.
func change(ctx context.Context, databaseURL string, f func(context.Context, *pgx.Conn) error) error {
	return database.WithConn(ctx, databaseURL, func(conn *pgx.Conn) error { return alone(ctx, conn, f) })
}
