package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/migrations"
)

const (
	firstPause = 10 * time.Millisecond
	// MaxPause is the longest pause between two attempts.
	MaxPause = 500 * time.Millisecond
	// readAttempts is how often a read is attempted that fails for a passing reason.
	readAttempts = 5
	// assumeAlive is for how long after an outage other replicas count as alive. It is enough for a few heartbeats.
	assumeAlive = 3 * time.Second
)

// A DB is the database of one replica.
type DB struct {
	Rest     *pgxpool.Pool // everything but decisions
	Deciding *pgxpool.Pool
	Pooled   bool // behind a pooler in transaction mode
	Schema   schema.Name
	Log      *slog.Logger
	Observer observe.Observer
	Outage   Outage // when it was last unreachable

	configure func(context.Context, *pgx.ConnConfig) error // of the next connection

	ctx     context.Context // ends with Stop
	stop    context.CancelFunc
	guests  chan struct{} // has a value for each call of Read and First that runs
	reads   chan struct{} // has a value for each call of Read that runs: fewer than guests has room for, where possible
	made    atomic.Int64  // connections in Deciding
	failing sync.Map      // the background tasks whose last report was an error, by name
	turn    sync.Mutex    // held by what runs Unhurried
	bad     sync.Map      // the rows that cannot be read and were logged: their errors

	outdated atomic.Bool // a call failed with ErrOutdated
}

// Admit returns nil if a call may begin: an error of package lock if its caller has left, or after Stop.
func (d *DB) Admit(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return Departed(context.Cause(ctx))
	case d.ctx.Err() != nil:
		return Stopping()
	}
	return nil
}

// Context returns the context that ends with the replica. Background work and decisions run under it.
func (d *DB) Context() context.Context { return d.ctx }

// Connected returns how many connections for decisions were ever made. When it has grown, what was read before may be
// out of date: the server may have lost its newest commits, or be another one.
func (d *DB) Connected() int64 { return d.made.Load() }

// Share returns the number of connections that reads, fenced writes and heartbeats of sessions may use. Late commits
// may use as many, and so may calls on rows that other sessions have locked.
func (d *DB) Share() int { return cap(d.guests) }

// CheckWorkers returns an error unless that many workers always have a connection for decisions.
func (d *DB) CheckWorkers(n int) error {
	most := int(d.Deciding.Config().MaxConns) - 2*d.Share()
	if n <= most {
		return nil
	}
	return fmt.Errorf("batch workers is %d, but the database URL leaves connections for %d; use fewer, or set pool_max_conns to %d",
		n, most, 4*n+taskConns)
}

// Stop ends background work and further decisions.
func (d *DB) Stop() { d.stop() }

// Close closes all connections, once they are released.
func (d *DB) Close() {
	d.Deciding.Close()
	d.Rest.Close()
}

// Reset replaces all connections once they are released, since they lead to a server that has become a standby.
func (d *DB) Reset() {
	d.Rest.Reset()
	d.Deciding.Reset()
}

// NewPause returns the pauses between one attempt and the next.
func NewPause() *backoff.ExponentialBackOff {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstPause, MaxPause
	return pause
}

// Sleep pauses and returns true, or returns false at once when the replica stops.
func (d *DB) Sleep(pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-d.ctx.Done():
		return false
	}
}

// Jittered returns d ± d/2 at random, so that replicas do not act in step.
func Jittered(d time.Duration) time.Duration { return d/2 + rand.N(d+1) }

// Within runs f with the context of the replica and the timeout of one round trip.
func (d *DB) Within(f func(context.Context) error) error { return within(d.ctx, f) }

func within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, TripTimeout)
	defer cancel()
	return f(ctx)
}

// Unhurried is Within for background work that can wait: it runs one such f at a time, so that all of them together
// need one connection. f must not call Unhurried.
func (d *DB) Unhurried(f func(context.Context) error) error {
	d.turn.Lock()
	defer d.turn.Unlock()
	return d.Within(f)
}

// Relaxed runs statements in one transaction whose commit does not wait for the disk.
func (d *DB) Relaxed(queue func(*pgx.Batch)) error {
	return d.Within(func(ctx context.Context) error { return d.SendRelaxed(ctx, queue) })
}

// SendRelaxed is Relaxed with the context of the caller.
func (d *DB) SendRelaxed(ctx context.Context, queue func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	QueueRelax(b)
	queue(b)
	return d.Rest.SendBatch(ctx, b).Close()
}

// Read runs query, which must not change anything unless it succeeds, again if that may help. It first waits for one
// of the connections that reads and fenced writes may use: one less than for First, where possible. The error is one
// of package lock.
func (d *DB) Read(ctx context.Context, query func(context.Context) error) error {
	select {
	case d.reads <- struct{}{}:
		defer func() { <-d.reads }()
	case <-ctx.Done():
		return Unavailable(context.Cause(ctx))
	}
	return d.First(ctx, query)
}

// First is Read for a query that is quick, and urgent: slow reads do not keep it from having a connection.
func (d *DB) First(ctx context.Context, query func(context.Context) error) error {
	select {
	case d.guests <- struct{}{}:
		defer func() { <-d.guests }()
	case <-ctx.Done():
		return Unavailable(context.Cause(ctx))
	}
	pause := NewPause()
	for attempt := 1; ; attempt++ {
		err := within(ctx, query)
		switch failed := EffectOf(err) == Failed; {
		case err == nil:
			return nil
		case failed && !errors.Is(err, context.Canceled):
			return Internal(d.Explain(err), d.Schema)
		case failed, attempt == readAttempts, ctx.Err() != nil,
			errors.Is(err, context.DeadlineExceeded), // the next attempt would take as long
			!d.Sleep(pause.NextBackOff()):
			return Unavailable(err)
		}
	}
}

// An Outage knows when the database was last unreachable. The zero Outage is ready for use.
type Outage struct{ last atomic.Pointer[time.Time] }

// Note records that the database is unreachable now.
func (o *Outage) Note() {
	now := time.Now()
	o.last.Store(&now)
}

// After reports whether the database was unreachable after t.
func (o *Outage) After(t time.Time) bool {
	last := o.last.Load()
	return last != nil && last.After(t)
}

// AssumeAlive returns for how long from now on replicas without a recent heartbeat count as alive, since they could
// not send one. It is zero unless the database was unreachable shortly before.
func (o *Outage) AssumeAlive() time.Duration {
	last := o.last.Load()
	if last == nil {
		return 0
	}
	return max(assumeAlive-time.Since(*last), 0)
}

// Report says what came of a background task. A failure is logged: at debug level if the last report was one, too, and
// not at all when the replica stops.
func (d *DB) Report(task string, err error) {
	if err == nil {
		d.failing.Delete(task)
		d.Observer.Succeeded(task)
		return
	}
	level := slog.LevelDebug
	if _, again := d.failing.LoadOrStore(task, true); !again {
		level, err = slog.LevelWarn, d.Explain(err)
	}
	if d.ctx.Err() == nil {
		d.Log.Log(d.ctx, level, "background task failed; retrying", "task", task, "error", err)
	}
}

// NoteMalformed logs why a row cannot be read, once for each row, and returns what users are told in a list.
func (d *DB) NoteMalformed(err error) paddock.Unreadable {
	row := new(MalformedError)
	if !errors.As(err, &row) {
		return paddock.Unreadable{Detail: sentence(err.Error())}
	}
	if _, logged := d.bad.LoadOrStore(row.row(d.Schema), row); !logged {
		d.Log.Error("row cannot be read; correct or delete it", "row", row.row(d.Schema), "name", row.Name, "error", row.Cause)
	}
	return row.unreadable(d.Schema)
}

// CheckSchema returns an error if the schema is older than this binary or lacks the absent objects, and ErrOutdated
// if it is newer and lacks them, or a statement has failed for that reason.
func (d *DB) CheckSchema(ctx context.Context, absent []string) error {
	version, err := d.schemaVersion(ctx)
	switch latest := migrations.Latest(); {
	case err != nil:
		return fmt.Errorf("the schema's version: %w", err)
	case version < latest:
		return fmt.Errorf("the schema %s is at version %d, this binary needs %d: run paddock migrate up%s", d.Schema, version, latest, d.Schema.Flag())
	case version == latest:
		d.outdated.Store(false)
		if len(absent) > 0 {
			return d.objectsMissing(absent)
		}
	case len(absent) > 0, d.outdated.Load():
		return ErrOutdated
	}
	return nil
}

// schemaVersion returns the version of the schema, 0 if it has none.
func (d *DB) schemaVersion(ctx context.Context) (version uint, err error) {
	err = d.Rest.QueryRow(ctx, sqlSchemaVersion.In(d.Schema)).Scan(&version)
	if pg := (*pgconn.PgError)(nil); errors.Is(err, pgx.ErrNoRows) || errors.As(err, &pg) && pg.Code == undefinedTable {
		return 0, nil
	}
	return version, err
}

// Explain returns err, and with it why a server refused a statement: a *RightsError if the role lacks rights,
// ErrOutdated if the schema is newer than this binary, ErrObjectsMissing with what an operator must do if it is older,
// or lacks a table or a function.
func (d *DB) Explain(err error) error {
	refused := (*pgconn.PgError)(nil)
	if !errors.As(err, &refused) || errors.As(err, new(*RightsError)) {
		return err
	}
	if pgconnect.Denied(err) {
		return d.explainDenied(err)
	}
	var version uint
	if within(context.WithoutCancel(d.ctx), func(ctx context.Context) (err error) {
		version, err = d.schemaVersion(ctx)
		return err
	}) != nil {
		return err
	}
	switch latest := migrations.Latest(); {
	case version > latest:
		d.outdated.Store(true)
		return fmt.Errorf("%w: %w", ErrOutdated, err)
	case version < latest:
		return fmt.Errorf("%w: the schema %s is at version %d: restore it from a backup, or run paddock migrate up%s: %w",
			ErrObjectsMissing, d.Schema, version, d.Schema.Flag(), err)
	case refused.Code == undefinedTable, refused.Code == undefinedFunction:
		return fmt.Errorf("%w: restore the schema %s from a backup: %w", ErrObjectsMissing, d.Schema, err)
	}
	return err
}

// explainDenied returns err with the *RightsError that names the missing rights, if they are still missing.
func (d *DB) explainDenied(err error) error {
	missing := (*RightsError)(nil)
	if errors.As(within(context.WithoutCancel(d.ctx), func(ctx context.Context) error {
		_, err := d.CheckRights(ctx)
		return err
	}), &missing) {
		return fmt.Errorf("%w (%w)", missing, err)
	}
	return err
}
