package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/internal/pgserver"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// A trialPool is the PostgreSQL that trials share.
type trialPool struct{ server *pgserver.Server }

func newTrialPool(t *testing.T) *trialPool {
	t.Helper()
	return &trialPool{server: newServer(t)}
}

// newServer starts a PostgreSQL with a database paddock. It ends with the test.
func newServer(t *testing.T) *pgserver.Server {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Options{Database: "paddock", Settings: map[string]string{
		"max_connections": "500",
		// Write the log only when a commit waits for it.
		"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB",
	}})
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, func() error { return server.Stop(context.Background()) })
	if err := migrations.Up(t.Context(), server.URL("paddock"), "", nil); err != nil {
		t.Fatal(err)
	}
	return server
}

// A mode is how a program is used in a trial.
type mode int

const (
	disturbed      mode = iota // rows are locked from outside, locks are read in a loop, and calls cross
	crashed                    // PostgreSQL crashes
	neverCancelled             // clients wait until they are served, so no waiter may be overtaken
	restored                   // PostgreSQL is restored from a snapshot, and another application writes to it
	replicaLost                // the limit on waiters is low, and a replica is killed while calls wait there
	inCircles                  // tasks acquire locks in opposite orders
	inTrees                    // some of the locks are in a tree
	ruled                      // an operator freezes locks, and changes a rule
	cutOff                     // all connections of clients are cut again and again
	inEpochs                   // epochs begin, some while a replica is suspended
	moving                     // the locks move between two cells
)

// A trial runs one program: two replicas on their own database.
type trial struct {
	*testing.T
	program     string
	mode        mode
	server      *pgserver.Server // to crash, in mode crashed
	restorable  *restorable      // to restore, in mode restored
	databaseURL string
	otherURL    string // of the second cell, in mode moving
	services    []workload.Replica
	replicas    []*child
	relays      []*relay // from clients to the replicas, in mode cutOff
	perRound    int      // calls in the next round, unless its length is that of its fault
	calls       int      // so far
	unexpected  error    // the last unexpected answer
	missing     error    // set by round: locks or events cannot be read, or a lock has changed more often than there are events
}

func (a *trialPool) trial(t *testing.T, program string, how mode) *trial {
	t.Helper()
	x := &trial{T: t, program: program, mode: how, perRound: callsPerTrial}
	switch how {
	case crashed:
		x.server = newServer(t)
		x.databaseURL = x.server.URL("paddock")
	case restored:
		x.restorable = newRestorable(t)
		x.databaseURL = x.restorable.replicaURL()
		x.must(migrations.Up(t.Context(), x.databaseURL, "", nil))
	case moving:
		x.databaseURL, x.otherURL = a.database(t), a.database(t)
		x.must(x.runPaddock("migrate", "up"))
	default:
		x.databaseURL = a.database(t)
	}
	for range 2 {
		x.start()
	}
	return x
}

// start starts another replica.
func (x *trial) start() {
	x.Helper()
	args := []string{"--allow-hold"}
	if x.mode == replicaLost {
		args = append(args, fmt.Sprintf("--max-waiters-per-lock=%d", waiterLimit))
	}
	c, address := serve(x.T, x.program, []string{x.at()}, args...)
	if x.mode == cutOff {
		address = x.relay(address)
	}
	x.replicas, x.services = append(x.replicas, c), append(x.services, replicaAt(x.T, address))
}

// at names the databases to a program.
func (x *trial) at() string {
	if x.mode == moving {
		return "PADDOCK_CELL=" + trialCells[0] + "=" + x.databaseURL + "," + trialCells[1] + "=" + x.otherURL
	}
	return "PADDOCK_DATABASE_URL=" + x.databaseURL
}

// relay starts a relay to the address, and returns its own.
func (x *trial) relay(address string) string {
	x.Helper()
	r, err := newRelay()
	x.must(err)
	cleanup(x.T, r.close)
	r.setTarget("tcp", address)
	x.relays = append(x.relays, r)
	return r.address
}

func (x *trial) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// database returns the URL of a new database with Paddock's tables.
func (a *trialPool) database(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("trial_%d", rand.Uint64())
	conn, err := pgx.Connect(t.Context(), a.server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "create database "+name+" template paddock")
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return a.server.URL(name)
}

// restoredRound is the length of a round with a restore: load, the restore, the pause of grants, and load.
const restoredRound = 7 * time.Second

// circlesRound is how long tasks begin to wait in circles. A circle is broken after one or two seconds.
const circlesRound = 4 * time.Second

// movesRound is the length of a round in which the locks move.
const movesRound = 5 * time.Second

// epochsRound is the length of a round in which epochs begin.
const epochsRound = 8 * time.Second

// callsPerTrial is the approximate number of calls in a round, callsPerCrash the same where PostgreSQL crashes:
// most of those only try a lock in the lull before the crash.
const callsPerTrial, callsPerCrash = 1000, 2500

// callsOfFirstRound and callsPerSearch are the same in the first and the further rounds of a mutant. Most are found in
// the first one, and what is found ends the search only with its round.
const callsOfFirstRound, callsPerSearch = 200, 500

// round lets clients use the service while it is disturbed, and checks the history.
func (x *trial) round(number int) verify.Report {
	x.Helper()
	if x.mode == restored {
		x.must(x.restorable.snapshot(x.Context()))
	}
	prefix, rec := fmt.Sprintf("%s:%d", trialGroup, number), verify.NewRecorder()
	if x.mode == replicaLost && number > 0 {
		x.replicas, x.services = x.replicas[:1], x.services[:1] // the other one is dead
		x.start()
	}
	p := disturbance{trial: x, rec: rec, prefix: prefix, lulls: make(chan time.Time)}
	ctx, cancel := context.WithCancel(x.Context())
	defer cancel()
	all, during := errgroup.WithContext(ctx)
	for _, action := range p.actions() {
		all.Go(func() error { return action(during) })
	}
	all.Go(func() error {
		defer cancel()
		o := x.options(prefix, uint64(number))
		o.Lulls = p.lulls
		stats, err := workload.Run(during, rec, o)
		x.calls += stats.Total()
		if err != nil {
			x.Log(err)
			x.unexpected = err
		}
		return nil
	})
	err := all.Wait()
	if errors.Is(err, lock.ErrInternal) {
		x.missing = err
		return verify.Report{}
	}
	x.must(err)
	h := rec.History()
	if x.mode == restored {
		return h.Check(verify.CheckOptions{Restored: true})
	}
	collecting, stop := context.WithTimeout(x.Context(), stepTimeout)
	defer stop()
	if h.Events, x.missing = verify.Collect(collecting, x.services[0].Locks, prefix+":"); x.missing != nil {
		return verify.Report{}
	}
	check := verify.CheckOptions{AllowOvertaking: x.mode != neverCancelled && x.mode != cutOff, AllowWaiters: true, Cells: x.mode == moving}
	if x.mode == replicaLost {
		check.WaitersPerLock = waiterLimit
	}
	return h.Check(check)
}

// options returns the options of the workload. With neverCancelled and cutOff all clients use one replica, since a
// replica that is silent for a while may have its waiters skipped by another one.
func (x *trial) options(prefix string, seed uint64) workload.Options {
	o := workload.Options{
		Services: x.services, Prefix: prefix, Clients: 24, Locks: locksPerTrial, Operations: x.perRound,
		For: stepTimeout,
		TTL: 200 * time.Millisecond, Seed: seed, Subscribers: true,
	}
	switch x.mode {
	case disturbed:
		o.Hold = true
	case crashed:
		o.Operations, o.Policy, o.Hold = callsPerCrash, true, true
	case neverCancelled:
		o.Services, o.NeverCancel, o.Tree = x.services[:1], true, true
	case cutOff:
		o.Services, o.NeverCancel, o.Subscribers = x.services[:1], true, false
	case inTrees:
		o.Tree = true
	case ruled:
		o.Policy, o.Hold, o.Tree = true, true, true
	case inCircles: // leases outlive the waits of a circle, which go on at the end of the run
		o.TTL, o.Opposite, o.Operations, o.For = 2*time.Second, 2, 0, circlesRound
	case moving:
		o.TTL, o.Operations, o.For, o.Tree = time.Second, 0, movesRound, true
	case inEpochs:
		o.TTL, o.Operations, o.For, o.Tree, o.Policy = workload.DefaultTTL, 0, epochsRound, true, true
	case restored:
		// Leases outlive the restore, and the load goes on after the pause of grants.
		o.TTL, o.Operations, o.For = workload.DefaultTTL, 0, restoredRound
	case replicaLost: // long leases, so that clients wait; names outlive the places of the dead replica
		o.AbandonLostWaits, o.Clients, o.Locks, o.Operations, o.TurnsPerName = true, 12, 3, 0, 1_000_000
		o.TTL, o.For, o.Subscribers = 2*time.Second, runAfterKill, false
	}
	return o
}

// locksPerTrial is the number of locks in use, which are of the group trialGroup.
const (
	locksPerTrial = 8
	trialGroup    = "trial"
)

// trialCells are the cells in mode moving.
var trialCells = [2]string{"main", "spare"}

// A disturbance provokes the mutants while clients use the service.
type disturbance struct {
	*trial
	rec    *verify.Recorder
	prefix string
	lulls  chan time.Time // each value starts a lull of the workload
}

// actions returns what runs concurrently until its context ends.
func (p *disturbance) actions() []func(context.Context) error {
	switch p.mode {
	case crashed:
		return []func(context.Context) error{p.crash}
	case restored:
		return []func(context.Context) error{p.restore}
	case neverCancelled, inCircles:
		return nil
	case replicaLost:
		return []func(context.Context) error{p.killReplica}
	case cutOff:
		return []func(context.Context) error{p.cutConnections}
	case inEpochs:
		return []func(context.Context) error{p.beginEpochs}
	case moving:
		return []func(context.Context) error{p.moveLocks, p.readLocks}
	}
	return []func(context.Context) error{p.lockRows, p.readLocks}
}

// lockRows locks rows now and then, for less than the service waits for a row, so that decisions about
// those locks are delayed.
func (p *disturbance) lockRows(ctx context.Context) (err error) {
	conn, err := pgx.Connect(ctx, p.databaseURL)
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for sleepFor(ctx, rand.N(150*time.Millisecond)) {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select from paddock.records where name = $1 for update", p.anyName())
			sleepFor(ctx, 50*time.Millisecond+rand.N(170*time.Millisecond))
			return err
		})
		if err != nil {
			return unlessDone(ctx, err)
		}
	}
	return nil
}

// readLocks reads locks in a loop.
func (p *disturbance) readLocks(ctx context.Context) error {
	s := p.services[rand.IntN(len(p.services))]
	locks := p.rec.Client(s.Via, s.Locks)
	for sleepFor(ctx, 5*time.Millisecond) {
		if _, err := locks.Lock(ctx, p.anyName()); err != nil {
			return unlessDone(ctx, err)
		}
	}
	return nil
}

// crash kills PostgreSQL once, in a lull of the workload, and restarts it.
func (p *disturbance) crash(ctx context.Context) error {
	if !sleepFor(ctx, 500*time.Millisecond+rand.N(500*time.Millisecond)) {
		return nil
	}
	select {
	case p.lulls <- time.Now():
		sleepFor(ctx, lullBeforeCrash/2+rand.N(lullBeforeCrash/2))
	case <-ctx.Done():
		return nil
	}
	defer p.rec.MarkFault("kill -9 of PostgreSQL")()
	return errors.Join(p.server.Kill(), p.server.Restart(context.WithoutCancel(ctx)))
}

// restore restores PostgreSQL once to the snapshot from before the round. Another application writes to it
// before a replica connects.
func (p *disturbance) restore(ctx context.Context) error {
	if !sleepFor(ctx, noticeDelay) {
		return nil
	}
	p.rec.MarkFault("PostgreSQL is restored from a snapshot")
	return p.restorable.restore(context.WithoutCancel(ctx), restoreOptions{(*restorable).crash, true})
}

const (
	// waiterLimit is the limit on waiters of a lock in a trial in which a replica dies.
	waiterLimit = 2
	// killAfter is when it dies, and runAfterKill is how long clients go on: until the places of the dead
	// replica no longer count, and a while longer.
	killAfter    = 2 * time.Second
	runAfterKill = killAfter + lock.ReplicaTTL + lock.PlaceRetention + 8*time.Second
)

// killReplica kills the newest replica for good.
func (p *disturbance) killReplica(ctx context.Context) error {
	if !sleepFor(ctx, killAfter) {
		return nil
	}
	p.rec.MarkFault("kill -9 of a replica")
	return p.replicas[len(p.replicas)-1].stop(syscall.SIGKILL)
}

// beginEpochs begins an epoch again and again, as for a database that has lost something, and ends the pause of
// grants. Before that it suspends a replica, mostly, which then neither records the ends of its leases nor claims
// grants.
func (p *disturbance) beginEpochs(ctx context.Context) error {
	for sleepFor(ctx, 500*time.Millisecond+rand.N(time.Second)) {
		suspended := p.replicas[rand.IntN(len(p.replicas))]
		if rand.IntN(3) > 0 {
			if err := suspended.signal(syscall.SIGSTOP); err != nil {
				return err
			}
			sleepFor(ctx, rand.N(2*time.Second))
		}
		over := p.rec.MarkFault("an epoch begins")
		begun := p.runPaddock("epoch", "new", "--reason", "a trial") // it may wait in vain for a row that the replica has locked
		if err := suspended.signal(syscall.SIGCONT); err != nil {
			return err
		}
		if begun == nil {
			sleepFor(ctx, rand.N(300*time.Millisecond))
			if err := p.runPaddock("epoch", "open", "--reason", "nothing was lost"); err != nil {
				return err
			}
		}
		over()
	}
	return nil
}

// moveLocks moves the locks to the other cell, and back, again and again.
func (p *disturbance) moveLocks(ctx context.Context) error {
	locks := p.rec.Client("mover", p.services[0].Locks)
	for n := 1; sleepFor(ctx, rand.N(500*time.Millisecond)); n++ {
		if err := p.runPaddock("cell", "pin", trialCells[n%2], trialGroup); err != nil {
			return err
		}
		if err := showPlace(ctx, locks, p.prefix); err != nil {
			return unlessDone(ctx, err)
		}
	}
	return nil
}

// runPaddock runs a command of the program to its end, although the load has ended.
func (x *trial) runPaddock(args ...string) error {
	return runPaddockAt(x.Context(), x.program, x.at(), args...)
}

// cutConnections closes all connections of clients, again and again.
func (p *disturbance) cutConnections(ctx context.Context) error {
	for sleepFor(ctx, 100*time.Millisecond+rand.N(300*time.Millisecond)) {
		for _, r := range p.relays {
			r.cut()
		}
	}
	return nil
}

func (p *disturbance) anyName() string {
	return fmt.Sprintf("%s:%d.0", p.prefix, rand.IntN(locksPerTrial))
}

// sleepFor sleeps for d and returns true, or returns false as soon as ctx ends.
func sleepFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// unlessDone returns err, or nil if ctx has ended, which then explains err.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
