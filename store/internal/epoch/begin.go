package epoch

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

const (
	// TokenJump is how far tokens continue above the greatest known one when an epoch starts: more than can have been
	// lost. There is room for two million jumps up to lock.MaxToken.
	TokenJump = 1 << 32
	// BatchJump is the same for the ids of event batches. Event ids jump eventsPerBatch times as far, so there is room
	// for 32 thousand jumps up to 2⁵³.
	BatchJump = 1 << 26

	// beginTimeout is the timeout of the start of an epoch, which rewrites every lease, and waits while another
	// process does that.
	beginTimeout = 5 * time.Minute
	// rowTimeout is how long it waits for a row that another session has locked.
	rowTimeout = 10 * time.Second
)

var (
	sqlLockEpochs     = database.Statement(files, "lock_epochs")
	sqlBeginEpoch     = database.Statement(files, "begin_epoch")
	sqlJump           = database.Statement(files, "jump")
	sqlRebaseRecords  = database.Statement(files, "rebase_records")
	sqlRebaseParts    = database.Statement(files, "rebase_parts")
	sqlRebaseReplicas = database.Statement(files, "rebase_replicas")
)

// alone runs f in a transaction beside which no other one starts or changes an epoch. As everywhere, its commit is not
// cancelled.
func alone(ctx context.Context, conn *pgx.Conn, f func(context.Context, *pgx.Conn) error) error {
	b := &pgx.Batch{}
	b.Queue(database.Begin)
	database.QueueSettings(b, rowTimeout)
	b.Queue(sqlLockEpochs)
	err := conn.SendBatch(ctx, b).Close()
	if err == nil {
		err = f(ctx, conn)
	}
	if err != nil {
		database.Rollback(conn)
		return err
	}
	b = &pgx.Batch{}
	b.Queue("commit")
	return database.CommitBatch(context.WithoutCancel(ctx), conn, b)
}

// begin starts an epoch: tokens and events continue far above all that are known, and every lease has its whole TTL
// from now on, on this server's clock. doubted pauses grants although a quorum is required. It returns the number of the
// epoch, and for how long nothing is granted.
func begin(
	ctx context.Context, conn *pgx.Conn, reason string, k Known, doubted bool,
) (number int64, pause time.Duration, err error) {
	var at, closedUntil time.Time
	row := conn.QueryRow(ctx, sqlBeginEpoch, reason, k.longest.Milliseconds(), k.number, doubted)
	if err := row.Scan(&number, &at, (*zeronull.Timestamptz)(&closedUntil)); err != nil {
		return 0, 0, err
	}
	waitUntil, aliveUntil := at.Add(lock.MaxWait), at.Add(lock.ReplicaTTL)
	b := &pgx.Batch{}
	b.Queue(sqlJump, int64(k.token), int64(TokenJump), batchOf(k.event), int64(BatchJump))
	b.Queue(sqlRebaseRecords, at, at.UnixMicro())
	b.Queue(sqlRebaseParts, at, at.UnixMicro(), waitUntil, aliveUntil.UnixMicro(),
		waitUntil.Add(lock.PlaceRetention).UnixMicro())
	b.Queue(sqlRebaseReplicas, aliveUntil)
	return number, max(closedUntil.Sub(at), 0), conn.SendBatch(ctx, b).Close()
}
