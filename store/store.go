package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/engine"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/eventlog"
	"github.com/paddock-lock/paddock/store/internal/expiry"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
	"github.com/paddock-lock/paddock/store/internal/sessions"
	"github.com/paddock-lock/paddock/store/internal/status"
	"github.com/paddock-lock/paddock/store/internal/waiters"
)

// Limits of a store.
const (
	// defaultMaxWaiters is the default of Options.MaxWaiters.
	defaultMaxWaiters = 10_000
	// closeTimeout is how long Close waits for running work, after leaveTimeout for waiting calls to leave their
	// queues.
	closeTimeout = 10 * time.Second
	leaveTimeout = 2500 * time.Millisecond
)

// Options configure a Store. The zero value is valid.
type Options struct {
	Bounds lock.Bounds
	Log    *slog.Logger // nil: nothing is logged
	// BatchWorkers is how many batches may run at once, 1 to 64; the database URL must allow for connections for all
	// of them. Commands on one lock are always in the same worker's batches. Zero: 1, which is fastest on two cores; on sixteen, 4 decide 1.6 times as many.
	BatchWorkers int
	// MaxWaiters limits the calls that wait in queues, on all replicas together as far as their heartbeats tell.
	// Places kept without a call do not count. Zero: 10,000.
	MaxWaiters int
	// TransactionPooling is for a database behind a pooler in transaction mode, through which replicas cannot notify
	// each other. Waiters are then found by polling, up to a second late. No statement is prepared, unless the URL
	// sets default_query_exec_mode.
	TransactionPooling bool
	// EventRetention is how long events are kept, at least a minute. It is also how long a call can be repeated after
	// its lease has ended. Zero: a week.
	EventRetention time.Duration
	// AllowHold grants leases that stay, see lock.Acquire, also where a fail-over may forget them: on a database whose
	// epoch requires no quorum.
	AllowHold bool
	// Tracer sees each statement. It may be nil.
	Tracer pgx.QueryTracer
	// Observer sees what the Store does. It may be nil.
	Observer observe.Observer
	// DatabaseURL returns the URL for each new connection, so that a password can be changed while the Store is open. It
	// must lead to the same database. Nil: the URL that Open was given.
	DatabaseURL func() (string, error)
	// Schema is the name of the schema with Paddock's tables: at most 40 of a-z, 0-9 and _. Deployments with different
	// ones share nothing of a database. Empty: paddock.
	Schema string
	// Cell is the name of the cell that the database is registered as, see RegisterCells. Empty: the database has all
	// locks of the deployment.
	Cell string
	// IdleLockRetention is how long a free lock is kept, at least a minute. Zero: a week.
	IdleLockRetention time.Duration
	// Describe returns what other replicas and operators are told of this process: its host, its version, when it started
	// (on its own clock), its connections and its streams. It is called with each heartbeat, and must not block. Nil:
	// nothing but the start of the Store.
	Describe func() paddock.ReplicaInfo
}

const week = 7 * 24 * time.Hour

// Check returns an error if the options are out of bounds or contradict each other.
func (o Options) Check() error {
	_, err := o.resolve()
	return err
}

func (o Options) resolve() (Options, error) {
	if o.BatchWorkers < 0 || o.BatchWorkers > engine.MaxWorkers {
		return o, fmt.Errorf("batch workers is %d; use 1 to %d", o.BatchWorkers, engine.MaxWorkers)
	}
	in, err := schema.Parse(o.Schema)
	if err != nil {
		return o, err
	}
	o.Schema = in.String()
	if o.Bounds, err = o.Bounds.Resolve(); err != nil {
		return o, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxWaiters < 0 {
		return o, fmt.Errorf("max waiters is %d; use 1 or more", o.MaxWaiters)
	}
	o.Observer = cmp.Or(o.Observer, observe.Nothing())
	o.BatchWorkers, o.MaxWaiters = max(o.BatchWorkers, 1), cmp.Or(o.MaxWaiters, defaultMaxWaiters)
	if o.EventRetention == 0 {
		o.EventRetention = week
	}
	if o.IdleLockRetention == 0 {
		o.IdleLockRetention = week
	}
	if opened := time.Now(); o.Describe == nil {
		o.Describe = func() paddock.ReplicaInfo { return paddock.ReplicaInfo{StartedAt: opened} }
	}
	if o.EventRetention < time.Minute || o.IdleLockRetention < time.Minute {
		return o, fmt.Errorf("event retention is %v and idle lock retention %v; use one minute or more", o.EventRetention, o.IdleLockRetention)
	}
	return o, nil
}

// explain returns err, or an error that names TransactionPooling if err shows that it should be set.
func (o Options) explain(err error) error {
	if o.TransactionPooling {
		return err
	}
	return poolmode.Explain(err, poolmode.ToServe)
}

// A Store is a paddock.Service on PostgreSQL. Make one with Open.
type Store struct {
	db      *database.DB
	epochs  *epoch.Monitor
	policy  *policy.Catalog
	engine  *engine.Engine
	waiters *waiters.Registry
	events  *eventlog.Log
	timers  *expiry.Timers

	sessions *sessions.Keeper
	status   *status.Reader

	bounds lock.Bounds
	self   lock.Replica
	// writers has a value for each fenced write, and for each change of a session. There are fewer of them than
	// connections for reads, where possible, so that reads continue while every commit waits for a standby.
	writers chan struct{}
	fencers chan struct{} // has a value for each fenced write: fewer than writers, where possible
	aside   chan struct{} // has a value for the change of a session whose row another connection keeps locked
	stale   paddock.StaleReports
	work    sync.WaitGroup // background tasks and writers
}

var _ paddock.Service = (*Store)(nil)

// A RightsError is returned by Open and Ready if the service's role lacks rights on the tables. It has the statements
// that grant them.
type RightsError = database.RightsError

// ErrReadOnly is returned by Open and Ready for a database in which no transaction may write at present.
var ErrReadOnly = database.ErrReadOnly

// Open connects to the database at the URL and returns a Store that sweeps and prunes until Close. The schema must be
// migrated. It fails if the database does not answer before ctx ends, and with a pgversion.TooOldError if the server
// is older than PostgreSQL 14. The error is a *RightsError if its role lacks a right. Unless Options.TransactionPooling
// is set, it fails with a poolmode.Error if the URL leads through a pooler in transaction mode.
func Open(ctx context.Context, databaseURL string, o Options) (*Store, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	db, err := connect(ctx, databaseURL, o)
	if err != nil {
		return nil, err
	}
	db.Observer = o.Observer
	s := assemble(db, o)
	e, err := s.epochs.Refresh()
	if err == nil {
		err = s.policy.RefreshIfChanged(e)
	}
	if err != nil {
		err = o.explain(fmt.Errorf("reading the epoch: %w", db.Explain(err)))
		s.Close()
		return nil, err
	}
	s.work.Go(s.timers.Run)
	s.work.Go(func() { s.sessions.Run(o.EventRetention) })
	s.work.Go(s.sessions.RunWatches)
	s.work.Go(func() { s.timers.Scan(o.IdleLockRetention) })
	s.work.Go(s.events.Run)
	s.work.Go(func() { s.events.Prune(o.EventRetention) })
	s.work.Go(s.status.Run)
	s.work.Go(func() {
		s.waiters.Run(waiters.Hooks{
			Watching: s.events.Watched, Events: s.events.Poke, Heartbeat: func() { s.epochs.Poll(s.policy.RefreshIfChanged) },
			Orphans: s.timers.ScanSoon, Describe: o.Describe,
		})
	})
	return s, nil
}

// Check returns the error with which Open would fail, as far as that can be told without changing anything.
func Check(ctx context.Context, databaseURL string, o Options) error {
	o, err := o.resolve()
	if err != nil {
		return err
	}
	db, err := connect(ctx, databaseURL, o)
	if err != nil {
		return err
	}
	db.Stop()
	db.Close()
	return nil
}

// connect opens the database for resolved options, and checks what a Store needs of it.
func connect(ctx context.Context, databaseURL string, o Options) (*database.DB, error) {
	if o.DatabaseURL == nil {
		o.DatabaseURL = database.At(databaseURL)
	}
	db, err := database.Open(ctx, o.DatabaseURL, schema.Name(o.Schema), o.TransactionPooling, o.Tracer, o.Log)
	if err != nil {
		return nil, o.explain(err)
	}
	if err := cmp.Or(db.CheckWorkers(o.BatchWorkers), o.explain(complete(ctx, db)), o.checkCell(ctx, db)); err != nil {
		db.Stop()
		db.Close()
		return nil, err
	}
	return db, nil
}

// complete returns an error that names the objects that a schema of this binary's version lacks. An older schema is
// refused before, and a newer one may go without them.
func complete(ctx context.Context, db *database.DB) error {
	absent, err := db.CheckRights(ctx)
	if err == nil && len(absent) > 0 {
		err = db.CheckSchema(ctx, absent)
	}
	if errors.Is(err, database.ErrOutdated) {
		return nil
	}
	return err
}

// assemble connects the parts of a Store. The engine decides; the others are told what it decided, and give it
// commands like any caller.
func assemble(db *database.DB, o Options) *Store {
	s := &Store{db: db, epochs: epoch.New(db), bounds: o.Bounds, self: lock.Replica(1 + rand.Int64N(1<<62))}
	s.policy = policy.New(db, s.epochs, s.policyChanged)
	s.writers, s.fencers = make(chan struct{}, max(db.Share()-1, 1)), make(chan struct{}, max(db.Share()-2, 1))
	s.aside = make(chan struct{}, 1)
	s.engine = engine.New(engine.Options{
		DB: db, Epochs: s.epochs, Policy: s.policy, Self: s.self, Workers: o.BatchWorkers, AllowHold: o.AllowHold, Publish: s.publish,
	})
	s.waiters = waiters.New(db, s.self, o.MaxWaiters, s.engine.Do)
	s.events = eventlog.New(db, s.waiters.Draining(), func(name string) error { return s.policy.Newest().Elsewhere(name) })
	s.sessions = sessions.New(db, s.epochs, s.engine.DoAll)
	s.status = status.New(db, s.self, o.EventRetention)
	s.timers = expiry.New(db, func(ctx context.Context, names []string) error {
		_, err := s.engine.Do(ctx, lock.Sweep{Locks: names})
		if errors.As(err, new(*placement.ElsewhereError)) {
			return nil // their cell sweeps them
		}
		return err
	})
	return s
}

// publish tells the other parts what was decided and committed.
func (s *Store) publish(outcomes []*row.Outcome) {
	s.timers.Update(outcomes)
	s.waiters.Notify(outcomes)
	s.events.Poke()
	for _, o := range outcomes {
		s.db.Observer.Decided(&o.Decision)
	}
}

// Ready returns nil if the database answers and grants the rights that the service needs, commits do not hang, and the
// schema is the one of this binary, with all its tables and functions. Of a *lock.Error callers may be told the detail.
func (s *Store) Ready(ctx context.Context) error {
	if n := s.engine.Late(); n > 0 {
		return fmt.Errorf("%d commits unanswered for more than %v", n, engine.LateAfter)
	}
	absent, err := s.db.CheckRights(ctx)
	if missing := (*RightsError)(nil); errors.As(err, &missing) {
		return missing.Refusal()
	}
	if err != nil {
		return err
	}
	if err := s.db.CheckSchema(ctx, absent); err != nil {
		return err
	}
	e, err := epoch.Read(ctx, s.db.Rest, s.db.Schema)
	if err == nil && e.Quorum && !e.Replicates {
		err = database.NoStandby()
	}
	return s.db.Explain(err)
}

// Drain prepares a replica for its shutdown: waiting calls are answered with lock.ErrUnavailable and keep their
// places, and no more calls may wait.
func (s *Store) Drain() { s.waiters.Drain() }

// Close drains, stops the background tasks, waits for running calls for a while, and closes the connections. Later
// calls are refused.
func (s *Store) Close() {
	s.Drain()
	finishes(leaveTimeout, s.waiters.Wait)
	s.db.Stop()
	closed := finishes(closeTimeout, func() {
		s.waiters.Wait()
		s.work.Wait()
		s.engine.Wait()
		s.waiters.Close()
		s.db.Close()
	})
	if !closed {
		s.db.Log.Error("closing with commits in flight; their outcome is unknown")
	}
}

// finishes runs f and reports whether it returned within d.
func finishes(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}
