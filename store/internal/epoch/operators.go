package epoch

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/schema"
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
func List(ctx context.Context, databaseURL string, in schema.Name) (all []Info, now time.Time, err error) {
	err = database.WithConn(ctx, databaseURL, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sqlListEpochs.In(in))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Info, error) {
			var e Info
			var longestMS int64
			err := row.Scan(&e.Number, &e.BeganAt, &e.System, &e.Timeline, &e.Reason,
				(*zeronull.Timestamptz)(&e.GrantsPausedUntil), &e.Quorum, &longestMS, &now)
			e.MaxLease = fromMS(longestMS)
			return e, malformed(e.Number, err)
		})
		return err
	})
	return all, now, err
}

// MaxAbove is the greatest token that an epoch can continue above. Beyond it there is no room for a jump below
// lock.MaxToken.
const MaxAbove = int64(lock.MaxToken-lock.TokenJump) - placement.Step*TokensPerBatch

// Begin starts an epoch, see store.BeginEpoch.
func Begin(ctx context.Context, databaseURL string, in schema.Name, reason string, above int64) error {
	return change(ctx, databaseURL, in, func(ctx context.Context, conn *pgx.Conn) error {
		_, _, err := begin(ctx, conn, in, reason, Known{batch: above / TokensPerBatch}, true)
		return err
	})
}

// Open ends the pause of the newest epoch, see store.OpenEpoch.
func Open(ctx context.Context, databaseURL string, in schema.Name, reason string) (opened bool, err error) {
	err = change(ctx, databaseURL, in, func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, sqlOpenEpoch.In(in), reason)
		opened = tag.RowsAffected() > 0
		return err
	})
	return opened && err == nil, err
}

// RequireQuorum sets whether a quorum is required, see store.RequireQuorum.
func RequireQuorum(ctx context.Context, databaseURL string, in schema.Name, required bool) error {
	return change(ctx, databaseURL, in, func(ctx context.Context, conn *pgx.Conn) error {
		var replicates bool
		err := conn.QueryRow(ctx, sqlRequireQuorum.In(in), required).Scan(&replicates)
		if err == nil && required && !replicates {
			err = database.ErrNoStandby
		}
		return err
	})
}

// change is withEpochLock on a connection of its own.
func change(ctx context.Context, databaseURL string, in schema.Name, f func(context.Context, *pgx.Conn) error) error {
	return database.WithConn(ctx, databaseURL, func(conn *pgx.Conn) error { return withEpochLock(ctx, conn, in, f) })
}
