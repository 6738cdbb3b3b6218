package epoch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

var (
	sqlNewest       = database.Statement(files, "newest")
	sqlRaiseLongest = database.Statement(files, "raise_longest")
	sqlExtendEpoch  = database.Statement(files, "extend_epoch")
)

// A Guard remembers what this process has seen of the epochs, and mends what Check finds. It is safe for concurrent
// use.
type Guard struct {
	db   *database.DB
	mu   sync.Mutex
	seen Known
	look database.Trouble // of Watch
}

// New returns a Guard that knows nothing yet. Look, before anything else, tells it of the present epoch.
func New(db *database.DB) *Guard { return &Guard{db: db} }

// Known returns what is known now. Take it before the transaction that reads the epoch to compare it with.
func (g *Guard) Known() Known {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}

// Note tells the Guard of the epoch of a commit that succeeded: token is the greatest one that was granted and event
// the greatest event id that was written, zero for none. Do not tell it of what may not be durable: a token that was
// only drawn can be lost in a crash that is no fail-over.
func (g *Guard) Note(e Epoch, token lock.Token, event int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen.note(e, token, event)
}

// Mend does what err, an error of Check or Covers, asks for: it starts the next epoch, extends the pause, or records
// the length of a lease. It returns true if the command can be decided again at once. It returns false if it failed,
// which it logs, and for every other error. It may take minutes where there are many leases.
func (g *Guard) Mend(err error) bool {
	longer := new(LongerError)
	var failed error
	switch {
	case errors.Is(err, ErrChanged):
		failed = g.settle()
	case errors.Is(err, ErrShort):
		failed = g.extend()
	case errors.As(err, &longer):
		if failed = g.raise(longer.Length); errors.Is(failed, ErrChanged) {
			failed = g.settle() // with the length of the leases granted before
		}
	default:
		return false
	}
	if failed != nil {
		g.db.Log.Error("cannot start a new epoch; retrying", "because", err, "error", failed)
	}
	return failed == nil
}

// Watch is Look for a task that runs twice a second: it detects a fail-over although no command arrives, and learns
// the tokens and events of other replicas. It logs a failure, and replaces connections that lead to a standby. Only
// one goroutine may call it.
func (g *Guard) Watch() {
	err := g.Look()
	g.db.Report(&g.look, "epoch check", err)
	if database.ReadOnly(err) {
		g.db.Reset() // the next connections find the primary
	}
}

// Look reads the newest epoch, and starts the next one, or extends the pause, if Check asks for it. It returns an
// error if it could not find out or do that.
func (g *Guard) Look() error {
	k := g.Known()
	var e Epoch
	var token lock.Token
	b := &pgx.Batch{}
	Queue(b, &e)
	b.Queue(sqlNewest).QueryRow(func(row pgx.Row) error { return row.Scan(&token) })
	if err := g.db.Within(func(ctx context.Context) error { return g.db.Rest.SendBatch(ctx, b).Close() }); err != nil {
		return err
	}
	switch err := e.Check(k); {
	case errors.Is(err, ErrChanged):
		return g.settle()
	case errors.Is(err, ErrShort):
		return g.extend()
	}
	g.Note(e, token, 0)
	return nil
}

// settle starts the next epoch if the newest one is not about this database. The process that comes second finds it
// started, and does nothing.
func (g *Guard) settle() error {
	var began begun
	err := g.alone(func(ctx context.Context, conn *pgx.Conn) error {
		k := g.Known()
		e, err := Read(ctx, conn)
		if err != nil {
			return err
		}
		if cause := e.Check(k); errors.Is(cause, ErrChanged) {
			began, err = begin(ctx, conn, cause.Error(), k, false)
		}
		return err
	})
	if err == nil && began.number != 0 {
		g.db.Log.Warn("new epoch started: the database was failed over or restored",
			"epoch", began.number, "grants_paused_for", began.pause())
	}
	return err
}

// raise records that leases of that length are granted from now on. It is a transaction of its own, so that the record
// is there before the first of them.
func (g *Guard) raise(length time.Duration) error {
	whole := (length + time.Second - 1).Truncate(time.Second) // so that it is seldom
	err := g.alone(func(ctx context.Context, conn *pgx.Conn) error {
		k := g.Known()
		e, err := Read(ctx, conn)
		if err != nil {
			return err
		}
		if cause := e.Check(k); errors.Is(cause, ErrChanged) {
			return cause
		}
		_, err = conn.Exec(ctx, sqlRaiseLongest, whole.Milliseconds())
		return err
	})
	if err != nil {
		return fmt.Errorf("recording the longest lease, %v: %w", whole, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen.longest = max(g.seen.longest, whole)
	return nil
}

// extend extends the pause of the newest epoch to the length of the longest lease before it, which this process
// remembers and the process that started the epoch did not.
func (g *Guard) extend() error {
	longest := g.Known().longest
	err := g.alone(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sqlExtendEpoch, longest.Milliseconds())
		return err
	})
	if err == nil {
		g.db.Log.Warn("grants paused for longer: the database lost the length of the longest lease", "longest", longest)
	}
	return err
}

// alone runs f in a transaction beside which no other process starts or changes an epoch.
func (g *Guard) alone(f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(g.db.Context(), beginTimeout)
	defer cancel()
	conn, err := g.db.Rest.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return alone(ctx, conn.Conn(), f)
}
