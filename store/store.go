package store

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/lock"
)

// Limits of a store.
const (
	// maxBatch is the most calls in one transaction.
	maxBatch = 1000
	// maxQueue is the most calls of one group that wait for a batch, and the most acquires with a wait besides.
	maxQueue = 20_000
	// rowTimeout is how long a batch waits for a row that another session has locked.
	rowTimeout = 250 * time.Millisecond
	// tripTimeout is the timeout of a round trip that commits nothing.
	tripTimeout = 5 * time.Second
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
	// BatchWorkers is how many batches may run at once, 1 to 64. A name is always in the same worker's batches. Zero:
	// 1, which was fastest on two cores.
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
	// IdleLockRetention is how long a free lock is kept, at least a minute. Zero: a week.
	IdleLockRetention time.Duration
}

const week = 7 * 24 * time.Hour

// maxGroups is the most batch workers. Each has a connection.
const maxGroups = 64

// Check returns an error if the options are out of bounds or contradict each other.
func (o Options) Check() error {
	_, err := o.resolve()
	return err
}

func (o Options) resolve() (Options, error) {
	var err error
	if o.BatchWorkers < 0 || o.BatchWorkers > maxGroups {
		return o, fmt.Errorf("batch workers is %d; use 1 to %d", o.BatchWorkers, maxGroups)
	}
	if o.Bounds, err = o.Bounds.Resolve(); err != nil {
		return o, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxWaiters < 0 {
		return o, fmt.Errorf("max waiters is %d; use 1 or more", o.MaxWaiters)
	}
	o.BatchWorkers, o.MaxWaiters = max(o.BatchWorkers, 1), cmp.Or(o.MaxWaiters, defaultMaxWaiters)
	if o.EventRetention == 0 {
		o.EventRetention = week
	}
	if o.IdleLockRetention == 0 {
		o.IdleLockRetention = week
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

// call and group are those of package batch, for commands.
type (
	call  = batch.Call[lock.Command, outcome]
	group = batch.Group[lock.Command, outcome]
)

// A Store is a lock.Service on PostgreSQL. Make one with Open.
type Store struct {
	pool     *pgxpool.Pool // for everything but decisions
	deciding *pgxpool.Pool
	pooled   bool // behind a pooler in transaction mode

	bounds lock.Bounds
	log    *slog.Logger
	groups []*dispatcher
	seed   maphash.Seed
	lanes  lanes
	sweep  *sweep
	crowd  crowd
	seen   seen
	outage outage
	epochs epochs

	self        lock.Replica
	seats       *seats
	notices     *notices
	tail        *tail
	told        atomic.Int64 // the event up to which readers have everything
	othersWatch atomic.Bool  // another replica has subscribers of events

	crew *batch.WorkerPool // runs batches

	late   chan struct{} // a slot for each slow commit
	guests chan struct{} // a slot for each connection of reads and fenced writes
	// fencers has a value for each fenced write. It has fewer slots than guests where possible, so that reads
	// continue while every commit waits for a standby.
	fencers chan struct{}

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup // background tasks, slow commits, and cleanup after disconnected callers
}

var _ lock.Service = (*Store)(nil)

// Open connects to the database at the URL and returns a Store that sweeps and prunes until Close. The schema must be
// migrated. It fails if the database does not answer before ctx ends, and with a pgversion.TooOldError if the server is
// older than PostgreSQL 14. Unless Options.TransactionPooling is set, it fails with a poolmode.Error if the URL leads
// through a pooler in transaction mode.
func Open(ctx context.Context, databaseURL string, o Options) (*Store, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	s, err := connect(ctx, databaseURL, o)
	if err != nil {
		return nil, o.explain(err)
	}
	if err := s.lookAtEpoch(); err != nil {
		s.Close()
		return nil, o.explain(fmt.Errorf("reading the epoch: %w", err))
	}
	s.work.Go(s.sweepEnds)
	s.work.Go(func() { s.takeCensus(o.IdleLockRetention) })
	s.work.Go(func() { s.pruneEvents(o.EventRetention) })
	s.work.Go(s.beats)
	s.work.Go(s.sendNotices)
	s.work.Go(s.follow)
	if !o.TransactionPooling {
		s.work.Go(s.listen)
	}
	return s, nil
}

// connect returns a Store without background tasks.
func connect(ctx context.Context, databaseURL string, o Options) (*Store, error) {
	deciding, pool, err := openPools(ctx, databaseURL, o.TransactionPooling, o.Log)
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool, deciding: deciding, pooled: o.TransactionPooling, crew: batch.NewWorkerPool(), bounds: o.Bounds, log: o.Log, seed: maphash.MakeSeed()}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.self = lock.Replica(1 + rand.Int64N(1<<62))
	s.sweep, s.seats, s.notices, s.tail = newSweep(), newSeats(o.MaxWaiters), newNotices(), newTail()
	quarter := pool.Config().MaxConns - choreConns
	s.late, s.lanes.limit, s.guests = make(chan struct{}, quarter), make(chan struct{}, quarter), make(chan struct{}, quarter)
	s.fencers = make(chan struct{}, max(quarter-1, 1))
	for range o.BatchWorkers {
		s.groups = append(s.groups, s.newDispatcher())
	}
	return s, nil
}

// newDispatcher returns the dispatcher of one group.
func (s *Store) newDispatcher() *dispatcher {
	var d *dispatcher
	d = newDispatcher(batch.New(maxBatch, maxQueue, func(calls []*call) {
		d.took(calls)
		s.runAhead(d.group, calls)
	}).UsePool(s.crew))
	return d
}

// Drain prepares a replica for its shutdown: waiting calls are answered with lock.ErrUnavailable and keep their
// places, and no more calls may wait.
func (s *Store) Drain() { s.seats.drain() }

// Close drains, stops the background tasks, waits for running calls for a while, and closes the connections. Later
// calls are refused.
func (s *Store) Close() {
	s.Drain()
	finishes(leaveTimeout, s.seats.taken.Wait)
	s.stop()
	closed := finishes(closeTimeout, func() {
		s.seats.taken.Wait()
		for _, g := range s.groups {
			g.Wait()
		}
		s.lanes.wait()
		s.work.Wait()
		s.crew.Close()
		s.forgetReplicas(s.self)
		s.deciding.Close()
		s.pool.Close()
	})
	if !closed {
		s.log.Error("closing with commits in flight; their outcome is unknown")
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

// do runs the command in a batch.
func (s *Store) do(ctx context.Context, cmd lock.Command) (outcome, error) {
	if ctx.Err() != nil || s.ctx.Err() != nil {
		return outcome{}, unavailable(context.Cause(ctx))
	}
	name := cmd.Names()[0]
	if !isQueueCall(cmd) {
		return answered(s.group(name).do(ctx, cmd))
	}
	_, joins := cmd.(acquireCall)
	crowded, waitedFor := s.crowd.knows(name)
	return answered(s.group(name).queue(ctx, cmd, crowded, joins && waitedFor))
}

// answered converts a group's answer to one of package lock.
func answered(out outcome, err error) (outcome, error) {
	if err != nil {
		return out, leftEarly(err)
	}
	return out, out.Err
}

// group returns the group of the name.
func (s *Store) group(name string) *dispatcher {
	return s.groups[maphash.String(s.seed, name)%uint64(len(s.groups))]
}
