package epoch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

var (
	sqlRaiseLongest = database.Statement(files, "raise_longest")
	sqlExtendEpoch  = database.Statement(files, "extend_epoch")
)

// A Monitor remembers what this process has seen of the epochs, and recovers from what Check finds. It is safe for
// concurrent use.
type Monitor struct {
	db   *database.DB
	mu   sync.Mutex
	seen Known
	// pausedUntil is when grants may begin again, on this process's clock, as of the last Refresh.
	pausedUntil time.Time
}

// New returns a Monitor that knows nothing yet. Call Refresh first: it reads the present epoch.
func New(db *database.DB) *Monitor { return &Monitor{db: db} }

// Known returns what is known now. Take it before the transaction that reads the epoch to compare it with.
func (m *Monitor) Known() Known {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

// Observe records the epoch of a successful commit, and event, the greatest event id that it wrote, zero for none. Pass
// only ids that were committed: a crash without a fail-over can lose an id that was only drawn.
func (m *Monitor) Observe(e Epoch, event int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.batch, m.seen.longest = max(m.seen.batch, BatchOf(max(e.LastEvent, event))), max(m.seen.longest, e.Longest)
	switch {
	case e.Number > m.seen.number:
		m.seen.number, m.seen.flushed, m.seen.event = e.Number, e.Flushed, max(e.LastEvent, event)
	case e.Number == m.seen.number:
		m.seen.flushed, m.seen.event = max(m.seen.flushed, e.Flushed), max(m.seen.event, e.LastEvent, event)
	}
}

// Recover does what err, an error of Check or CheckLength, asks for: it starts the next epoch, extends the pause, or
// records the length of a lease. It returns nil if the command can be decided again at once. Otherwise it returns why
// that failed, which it logs; what callers are answered, if a standby is missing; or err, if that is any other error. It
// may take minutes where there are many leases.
func (m *Monitor) Recover(err error) error {
	if errors.Is(err, database.ErrNoStandby) {
		return database.NoStandby()
	}
	longer := new(LongerError)
	if !errors.As(err, &longer) && !errors.Is(err, ErrChanged) && !errors.Is(err, ErrLengthLost) {
		return err
	}
	failed := m.reconcile(longer.Length)
	if failed != nil {
		m.db.Log.Error("cannot start or change an epoch; retrying", "because", err, "error", failed)
	}
	return failed
}

// Poll is Refresh for a task that runs twice a second: it detects a fail-over although no command arrives, and learns
// the events of other replicas. It calls then with the epoch. It logs a failure of either, and replaces connections
// that lead to a standby. Only one goroutine may call it.
func (m *Monitor) Poll(then func(Epoch) error) {
	e, err := m.Refresh()
	if err == nil {
		err = then(e)
	}
	m.db.Report("epoch check", err)
	if pgconnect.ReadOnly(err) {
		m.db.Reset() // the next connections find the primary
	}
}

// Refresh reads and observes the newest epoch. If Check asks for it, Refresh starts the next epoch or extends the pause
// instead; then the returned epoch is the one before. It returns an error if one of these failed.
func (m *Monitor) Refresh() (e Epoch, err error) {
	known := m.Known()
	err = m.db.Within(func(ctx context.Context) (err error) {
		e, err = Read(ctx, m.db.Rest, m.db.Schema)
		return err
	})
	if err != nil {
		return e, err
	}
	if err := e.Check(known); errors.Is(err, ErrChanged) || errors.Is(err, ErrLengthLost) {
		return e, m.reconcile(0)
	}
	m.Observe(e, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pausedUntil = time.Now().Add(max(e.ClosedUntil.Sub(e.Now), 0))
	return e, nil
}

// State returns the number of the newest epoch, and for how long grants are still paused, as of the last Refresh.
func (m *Monitor) State() (number int64, paused time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen.number, max(time.Until(m.pausedUntil), 0)
}

// reconcile changes the newest epoch to what is known. It starts the next epoch if the newest one is not about this
// database, or extends the pause if the newest one was started without knowledge of the longest lease. Otherwise
// another process has done so, and reconcile records that leases of the length are granted from now on, zero for none.
// Commands that need more than one of these recover once for each.
func (m *Monitor) reconcile(length time.Duration) error {
	ctx, cancel := context.WithTimeout(m.db.Context(), beginTimeout)
	defer cancel()
	conn, err := m.db.Rest.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	length = (length + time.Second - 1).Truncate(time.Second) // so that it is seldom
	done := func() {}
	err = withEpochLock(ctx, conn.Conn(), m.db.Schema, func(ctx context.Context, conn *pgx.Conn) error {
		k := m.Known()
		e, err := Read(ctx, conn, m.db.Schema)
		if err != nil {
			return err
		}
		switch cause := e.Check(k); {
		case errors.Is(cause, ErrChanged):
			number, pause, err := begin(ctx, conn, m.db.Schema, cause.Error(), k, false)
			done = func() {
				m.db.Log.Warn("new epoch started: the database was failed over, restored or created again",
					"epoch", number, "grants_paused_for", pause)
			}
			return err
		case errors.Is(cause, ErrLengthLost):
			_, err = conn.Exec(ctx, sqlExtendEpoch.In(m.db.Schema), k.longest.Milliseconds())
			done = func() {
				m.db.Log.Warn("grants paused for longer: the database lost the length of the longest lease",
					"longest", k.longest)
			}
		case length > 0:
			_, err = conn.Exec(ctx, sqlRaiseLongest.In(m.db.Schema), length.Milliseconds())
			done = func() { m.Observe(Epoch{Longest: length}, 0) }
		}
		return err
	})
	if err == nil {
		done()
	}
	return err
}

const (
	// BatchJump is how far the ids of event batches continue above the greatest known one when an epoch starts, so that
	// event ids and tokens jump as package lock says.
	BatchJump = lock.EventJump / EventsPerBatch

	// revokedJump is added to the RevokedLeases of sessions when an epoch starts whose database may have lost leases: it
	// is more than the number of revocations that can have been lost with them.
	revokedJump = 1_000_000

	// beginTimeout is the timeout of the start of an epoch, which rewrites every lease, and waits while another
	// process does that.
	beginTimeout = 5 * time.Minute
	// epochTimeout is how long it waits while another process starts or changes an epoch. Decisions do not wait for it.
	epochTimeout = 10 * time.Second
)

// Tokens jump as far as the ids of batches do. It does not compile if that is less than lock.TokenJump.
const _ = uint(BatchJump*TokensPerBatch - int64(lock.TokenJump))

var (
	sqlLockEpochs     = database.Statement(files, "lock_epochs")
	sqlLastInstant    = database.Statement(files, "last_instant")
	sqlBeginEpoch     = database.Statement(files, "begin_epoch")
	sqlJump           = database.Statement(files, "jump")
	sqlRebaseRecords  = database.Statement(files, "rebase_records")
	sqlRebaseParts    = database.Statement(files, "rebase_parts")
	sqlRebaseReplicas = database.Statement(files, "rebase_replicas")
	sqlRebaseSessions = sessionsThat("not s.cleared")
)

// withEpochLock runs f in a transaction beside which no other one starts or changes an epoch. As everywhere, its commit
// is not cancelled.
func withEpochLock(ctx context.Context, conn *pgx.Conn, in schema.Name, f func(context.Context, *pgx.Conn) error) error {
	b := &pgx.Batch{}
	b.Queue(database.Begin)
	database.QueueSettings(b, epochTimeout)
	b.Queue(sqlLockEpochs.In(in))
	database.QueueSettings(b, database.RowTimeout) // decisions wait for the rows that it has written
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
	if err = database.CommitBatch(context.WithoutCancel(ctx), conn, b); err != nil && database.EffectOfCommit(err) == database.Unknown {
		return database.UnknownOutcome(err)
	}
	return err
}

// begin starts an epoch: event ids and tokens continue far above all that are known, and every lease has its whole TTL
// from now on, on this server's clock. doubted pauses grants although a quorum is required. It returns the number of
// the epoch, and for how long nothing is granted.
func begin(
	ctx context.Context, conn *pgx.Conn, in schema.Name, reason string, k Known, doubted bool,
) (number int64, pause time.Duration, err error) {
	var last, at, closedUntil time.Time
	if err := conn.QueryRow(ctx, sqlLastInstant.In(in), BatchJump/2).Scan(&last); err != nil {
		return 0, 0, err
	}
	row := conn.QueryRow(ctx, sqlBeginEpoch.In(in), reason, k.longest.Milliseconds(), k.number, doubted)
	if err := row.Scan(&number, &at, (*zeronull.Timestamptz)(&closedUntil)); err != nil {
		return 0, 0, err
	}
	b := &pgx.Batch{}
	AllNames.QueueRebase(b, in, at, last)
	b.Queue(sqlRebaseReplicas.In(in), at.Add(lock.ReplicaTTL))
	lost := int64(0)
	if !closedUntil.IsZero() {
		lost = revokedJump
	}
	b.Queue(sqlRebaseSessions.In(in), at, int16(lock.Expired), lost, last)
	// A sequence knows no transactions. So it jumps when all is moved: what a replica decides beside this, which is only
	// possible on the same server, has an id above the jump if it is decided on what was moved, and otherwise below.
	b.Queue(sqlJump.In(in), k.batch, BatchJump)
	return number, max(closedUntil.Sub(at), 0), conn.SendBatch(ctx, b).Close()
}
