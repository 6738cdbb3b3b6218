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
	// maxBatch is how many calls one transaction decides on at most.
	maxBatch = 1000
	// maxQueue is how many calls wait for their batch at most, in each group; and how many acquires that may wait besides.
	maxQueue = 20_000
	// rowTimeout is how long a batch waits for a row that somebody outside has locked.
	rowTimeout = 250 * time.Millisecond
	// tripTimeout is how long a round trip may take that commits nothing.
	tripTimeout = 5 * time.Second
	// usualMaxWaiters is how many calls may wait unless Options say otherwise.
	usualMaxWaiters = 10_000
	// closeTimeout is how long Close waits for what still runs, after leaveTimeout
	// for the calls that wait to leave their places in good order.
	closeTimeout = 10 * time.Second
	leaveTimeout = 2500 * time.Millisecond
)

// Options of a store. The zero value is good.
type Options struct {
	Bounds lock.Bounds
	Log    *slog.Logger // nil: nothing is logged
	// BatchWorkers is how many batches may run at once; a name is always in the same
	// group. Zero: 1, which made the most of two cores.
	BatchWorkers int
	// MaxWaiters is how many calls may wait in queues at once, with all replicas
	// together as far as they have heard of each other; places that are kept without
	// a call do not count. Zero: 10,000.
	MaxWaiters int
	// TransactionPooling is for a database that is behind a pooler in transaction mode,
	// through which nothing can be heard of other replicas. Those who wait are then
	// served by asking again and again, up to a second late. Nothing is prepared then,
	// unless the URL has a default_query_exec_mode of its own.
	TransactionPooling bool
	// EventRetention is for how long events are kept, at least. It is also how long a
	// call may be repeated after its lease has ended. Zero: a week.
	EventRetention time.Duration
	// IdleLockRetention is for how long a lock that is free is remembered, at least. Zero: a week.
	IdleLockRetention time.Duration
}

const week = 7 * 24 * time.Hour

// maxGroups is more than any machine has a use for: each has a connection.
const maxGroups = 64

// Check returns an error that says which options do not go together.
func (o Options) Check() error {
	_, err := o.resolve()
	return err
}

func (o Options) resolve() (Options, error) {
	var err error
	if o.BatchWorkers < 0 || o.BatchWorkers > maxGroups {
		return o, fmt.Errorf("%d batch workers; give 1 to %d, or none", o.BatchWorkers, maxGroups)
	}
	if o.Bounds, err = o.Bounds.Resolve(); err != nil {
		return o, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxWaiters < 0 {
		return o, fmt.Errorf("at most %d waiters; give 1 or more, or none", o.MaxWaiters)
	}
	o.BatchWorkers, o.MaxWaiters = max(o.BatchWorkers, 1), cmp.Or(o.MaxWaiters, usualMaxWaiters)
	if o.EventRetention == 0 {
		o.EventRetention = week
	}
	if o.IdleLockRetention == 0 {
		o.IdleLockRetention = week
	}
	if o.EventRetention < time.Minute || o.IdleLockRetention < time.Minute {
		return o, fmt.Errorf("events are kept %v and idle locks %v; keep both for a minute or more", o.EventRetention, o.IdleLockRetention)
	}
	return o, nil
}

// explain returns err, or an error that names NoListen if err shows that it is missing.
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
	pool     *pgxpool.Pool // for all but deciding
	deciding *pgxpool.Pool
	pooled   bool // whether a pooler stands between

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
	told        atomic.Int64 // up to which event readers were told of all
	othersWatch atomic.Bool  // whether anybody follows events at another replica

	crew *batch.Crew // runs batches

	late   chan struct{} // has a value for each commit that takes long
	guests chan struct{} // has a value for each connection that reads or fenced writes have
	// fencers has a value for each fenced write. There are fewer than guests, where that
	// can be, so that reads go on while every commit waits for a standby.
	fencers chan struct{}

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup // what runs unasked, late commits, and leaving for those who are gone
}

var _ lock.Service = (*Store)(nil)

// Open connects to the database at the URL, whose schema must have been migrated,
// and returns a Store that sweeps and prunes there until Close. It fails if the
// database does not answer before ctx ends. Unless Options.NoListen is set, it fails with a
// poolmode.Error if the URL leads through a pooler in transaction mode.
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
		return nil, o.explain(fmt.Errorf("which database this is: %w", err))
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

// connect returns a Store that decides, and does nothing unasked.
func connect(ctx context.Context, databaseURL string, o Options) (*Store, error) {
	deciding, pool, err := openPools(ctx, databaseURL, o.TransactionPooling)
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool, deciding: deciding, pooled: o.TransactionPooling, crew: batch.NewCrew(), bounds: o.Bounds, log: o.Log, seed: maphash.MakeSeed()}
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

// newDispatcher returns a dispatcher to a group whose batches run ahead of all that is locked outside.
func (s *Store) newDispatcher() *dispatcher {
	var d *dispatcher
	d = newDispatcher(batch.New(maxBatch, maxQueue, func(calls []*call) {
		d.took(calls)
		s.runAhead(d.group, calls)
	}).On(s.crew))
	return d
}

// Drain is for a replica that is about to stop: calls that wait are answered with
// lock.ErrUnavailable, their places are kept, and no more may wait.
func (s *Store) Drain() { s.seats.drain() }

// Close drains, ends the sweeping, waits a while for the calls that still run, and
// closes the connections. Calls that come later are refused.
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
		s.crew.Dismiss()
		s.forgetReplicas(s.self)
		s.deciding.Close()
		s.pool.Close()
	})
	if !closed {
		s.log.Error("closing without having heard from the database; what was being committed may or may not be done")
	}
}

// finishes runs f, returning after the time though f may not have, and says whether
// it has.
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

// do runs the command in its turn.
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

// answered returns what a group answered in the words of package lock.
func answered(out outcome, err error) (outcome, error) {
	if err != nil {
		return out, leftEarly(err)
	}
	return out, out.Err
}

// group returns the group in which all commands on the name run.
func (s *Store) group(name string) *dispatcher {
	return s.groups[maphash.String(s.seed, name)%uint64(len(s.groups))]
}
