package epoch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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

// A Guard remembers what this process has seen of the epochs, and recovers from what Check finds. It is safe for
// concurrent use.
type Guard struct {
	db   *database.DB
	mu   sync.Mutex
	seen Known // but for the trees
	// trees are the newest that were read; nil: none. Every call reads them, and few change them.
	trees atomic.Pointer[Trees]
	// treesTurn is held by the call that changes the trees, which no other one does before nextTrees.
	treesTurn sync.Mutex
	nextTrees time.Time
	// pausedUntil is when grants may begin again, on this process's clock, as of the last Look.
	pausedUntil time.Time
	look        database.Trouble // of Watch
}

// New returns a Guard that knows nothing yet. Look, before anything else, tells it of the present epoch.
func New(db *database.DB) *Guard { return &Guard{db: db} }

// Known returns what is known now. Take it before the transaction that reads the epoch to compare it with.
func (g *Guard) Known() Known {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.seen
	k.trees = g.trees.Load()
	return k
}

// Trees returns the trees, as they were when they were last read.
func (g *Guard) Trees() *Trees { return g.trees.Load() }

// Note tells the Guard of the epoch of a commit that succeeded: event is the greatest event id that was written, zero
// for none. Do not tell it of what may not be durable: an id that was only drawn can be lost in a crash that is no
// fail-over.
func (g *Guard) Note(e Epoch, event int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen.batch, g.seen.longest = max(g.seen.batch, BatchOf(max(e.LastEvent, event))), max(g.seen.longest, e.Longest)
	switch {
	case e.Number > g.seen.number:
		g.seen.number, g.seen.flushed, g.seen.event = e.Number, e.Flushed, max(e.LastEvent, event)
	case e.Number == g.seen.number:
		g.seen.flushed, g.seen.event = max(g.seen.flushed, e.Flushed), max(g.seen.event, e.LastEvent, event)
	}
}

// Recover does what err, an error of Check or Covers, asks for: it starts the next epoch, extends the pause, records
// the length of a lease, or reads the trees. It returns nil if the command can be decided again at once. Otherwise it
// returns why that failed, which it logs, or err, if that is any other error. It may take minutes where there are many
// leases.
func (g *Guard) Recover(err error) error {
	longer := new(LongerError)
	if errors.Is(err, ErrTrees) {
		failed := g.refreshTrees()
		if failed != nil {
			g.db.Log.Error("cannot read the trees; retrying", "error", failed)
		}
		return failed
	}
	if !errors.As(err, &longer) && !errors.Is(err, ErrChanged) && !errors.Is(err, ErrShort) {
		return err
	}
	failed := g.settle(longer.Length)
	if failed != nil {
		g.db.Log.Error("cannot start or change an epoch; retrying", "because", err, "error", failed)
	}
	return failed
}

// Watch is Look for a task that runs twice a second: it detects a fail-over although no command arrives, and learns
// the events of other replicas. It logs a failure, and replaces connections that lead to a standby. Only
// one goroutine may call it.
func (g *Guard) Watch() {
	err := g.Look()
	g.db.Report(&g.look, "epoch check", err)
	if pgconnect.ReadOnly(err) {
		g.db.Reset() // the next connections find the primary
	}
}

// Look reads the newest epoch, and starts the next one, or extends the pause, if Check asks for it. It returns an
// error if it could not find out or do that.
func (g *Guard) Look() error {
	k := g.Known()
	var e Epoch
	err := g.db.Within(func(ctx context.Context) (err error) {
		e, err = Read(ctx, g.db.Rest, g.db.Schema)
		return err
	})
	if err != nil {
		return err
	}
	switch err := e.Check(k); {
	case errors.Is(err, ErrChanged), errors.Is(err, ErrShort):
		if err := g.settle(0); err != nil {
			return err
		}
		return g.refreshTrees()
	case errors.Is(err, ErrTrees):
		if err := g.refreshTrees(); err != nil {
			return err
		}
	}
	g.Note(e, 0)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pausedUntil = time.Now().Add(max(e.ClosedUntil.Sub(e.Now), 0))
	return nil
}

// State returns the number of the newest epoch, and for how long grants are still paused, as of the last Look.
func (g *Guard) State() (number int64, paused time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen.number, max(time.Until(g.pausedUntil), 0)
}

// settle starts the next epoch if the newest one is not about this database, or extends its pause if it was started
// without knowledge of the longest lease. Otherwise another process has done so, and settle records that leases of the
// length are granted from now on, zero for none. Commands that need more than one of these recover once for each.
func (g *Guard) settle(length time.Duration) error {
	ctx, cancel := context.WithTimeout(g.db.Context(), beginTimeout)
	defer cancel()
	conn, err := g.db.Rest.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	length = (length + time.Second - 1).Truncate(time.Second) // so that it is seldom
	done := func() {}
	err = alone(ctx, conn.Conn(), g.db.Schema, func(ctx context.Context, conn *pgx.Conn) error {
		k := g.Known()
		e, err := Read(ctx, conn, g.db.Schema)
		if err != nil {
			return err
		}
		switch cause := e.Check(k); {
		case errors.Is(cause, ErrChanged):
			number, pause, err := begin(ctx, conn, g.db.Schema, cause.Error(), k, false)
			done = func() {
				g.db.Log.Warn("new epoch started: the database was failed over or restored",
					"epoch", number, "grants_paused_for", pause)
			}
			return err
		case errors.Is(cause, ErrShort):
			_, err = conn.Exec(ctx, sqlExtendEpoch.In(g.db.Schema), k.longest.Milliseconds())
			done = func() {
				g.db.Log.Warn("grants paused for longer: the database lost the length of the longest lease",
					"longest", k.longest)
			}
		case length > 0:
			_, err = conn.Exec(ctx, sqlRaiseLongest.In(g.db.Schema), length.Milliseconds())
			done = func() { g.Note(Epoch{Longest: length}, 0) }
		}
		return err
	})
	if err == nil {
		done()
	}
	return err
}

const (
	// BatchJump is how far the ids of event batches continue above the greatest known one when an epoch starts: more
	// than can have been lost. Tokens jump TokensPerBatch times as far: there is room for half a million jumps up to
	// lock.MaxToken. Event ids jump EventsPerBatch times as far: they reach 2⁵³, above which JavaScript does not represent
	// each of them, after 32 thousand jumps.
	BatchJump = 1 << 26
	// TokenJump is the least by which tokens continue above the greatest known one.
	TokenJump = BatchJump * TokensPerBatch

	// beginTimeout is the timeout of the start of an epoch, which rewrites every lease, and waits while another
	// process does that.
	beginTimeout = 5 * time.Minute
	// epochTimeout is how long it waits while another process starts or changes an epoch. Decisions do not wait for it.
	epochTimeout = 10 * time.Second
)

var (
	sqlLockEpochs     = database.Statement(files, "lock_epochs")
	sqlBeginEpoch     = database.Statement(files, "begin_epoch")
	sqlJump           = database.Statement(files, "jump")
	sqlRebaseRecords  = database.Statement(files, "rebase_records")
	sqlRebaseParts    = database.Statement(files, "rebase_parts")
	sqlRebaseReplicas = database.Statement(files, "rebase_replicas")
	sqlRebaseSessions = database.Statement(files, "rebase_sessions")
)

// alone runs f in a transaction beside which no other one starts or changes an epoch. As everywhere, its commit is not
// cancelled.
func alone(ctx context.Context, conn *pgx.Conn, in schema.Name, f func(context.Context, *pgx.Conn) error) error {
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
	var at, closedUntil time.Time
	row := conn.QueryRow(ctx, sqlBeginEpoch.In(in), reason, k.longest.Milliseconds(), k.number, doubted)
	if err := row.Scan(&number, &at, (*zeronull.Timestamptz)(&closedUntil)); err != nil {
		return 0, 0, err
	}
	waitUntil, aliveUntil := at.Add(lock.MaxWait), at.Add(lock.ReplicaTTL)
	b := &pgx.Batch{}
	b.Queue(sqlJump.In(in), k.batch, int64(BatchJump))
	b.Queue(sqlRebaseRecords.In(in), at, at.UnixMicro(), OfSession)
	b.Queue(sqlRebaseParts.In(in), at, at.UnixMicro(), waitUntil, aliveUntil.UnixMicro(),
		waitUntil.Add(lock.PlaceRetention).UnixMicro(), OfSession)
	b.Queue(sqlRebaseReplicas.In(in), aliveUntil)
	b.Queue(sqlRebaseSessions.In(in), at, int16(lock.Expired))
	return number, max(closedUntil.Sub(at), 0), conn.SendBatch(ctx, b).Close()
}
