package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// locksPerTrial is the number of locks in use.
const locksPerTrial = 8

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
	}
	return []func(context.Context) error{p.lockRows, p.readLocks, p.crossCalls}
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

// The names of the locks of a crossing, in the order in which their rows are locked,
// before all others.
const firstName, heldUpName, crossedName = "-1", "-2", "-3"

// arrivalDelay is how long a call takes to reach a locked row. A call that takes longer only makes one
// crossing ineffective.
const arrivalDelay = 20 * time.Millisecond

// crossCalls makes a revocation and a renewal of one lease cross each other. The revocation is in a
// transaction that is blocked at another lock; while it is blocked, the lease is renewed. By the timestamps,
// the revocation comes after the renewal, unless its clock was read before the row was locked.
func (p *disturbance) crossCalls(ctx context.Context) (err error) {
	first, err := pgx.Connect(ctx, p.databaseURL)
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer func() { err = errors.Join(err, first.Close(context.WithoutCancel(ctx))) }()
	heldUp, err := pgx.Connect(ctx, p.databaseURL)
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer func() { err = errors.Join(err, heldUp.Close(context.WithoutCancel(ctx))) }()
	for sleepFor(ctx, arrivalDelay) {
		c := crossing{disturbance: p}
		if err := c.run(ctx, first, heldUp); err != nil {
			return unlessDone(ctx, err)
		}
	}
	return nil
}

// A crossing is one renewal and one revocation that cross.
type crossing struct {
	*disturbance
	calls sync.WaitGroup
}

func (c *crossing) run(ctx context.Context, first, heldUp *pgx.Conn) error {
	defer c.calls.Wait()
	victim := c.acquire(crossedName)
	g, err := c.via(1).Acquire(ctx, victim)
	if err != nil {
		return nil
	}
	for _, name := range []string{firstName, heldUpName} { // create the rows
		if a := c.acquire(name); c.tryAcquire(ctx, a) == nil {
			c.release(ctx, a)
		}
	}
	unlockFirst, err := c.lockRow(ctx, first, firstName)
	if err != nil {
		return err
	}
	unlockHeldUp, err := c.lockRow(ctx, heldUp, heldUpName)
	if err != nil {
		return errors.Join(err, unlockFirst())
	}
	c.calls.Go(func() { _ = c.tryAcquire(ctx, c.acquire(firstName)) })
	sleepFor(ctx, arrivalDelay)
	c.calls.Go(func() { _ = c.tryAcquire(ctx, c.acquire(heldUpName)) })
	c.calls.Go(func() { c.revoke(ctx, g.Token) })
	sleepFor(ctx, arrivalDelay)
	err = unlockFirst()
	sleepFor(ctx, arrivalDelay)
	_, renewed := c.via(1).Renew(ctx, lock.Renew{Name: victim.Name, LeaseID: victim.LeaseID})
	err = errors.Join(err, unlockHeldUp())
	if c.calls.Wait(); renewed == nil {
		c.release(ctx, victim)
	}
	return err
}

// via returns a replica as used by a new recorded client.
func (c *crossing) via(replica int) lock.Service {
	s := c.services[replica]
	return c.rec.Client(s.Via, s.Locks)
}

func (c *crossing) acquire(name string) lock.Acquire {
	id := uuid.New()
	return lock.Acquire{
		Name: c.prefix + ":" + name, LeaseID: lock.LeaseID(id), Holder: fmt.Sprint("crossing ", id.String()[:8]),
		TTL: 2 * time.Second,
	}
}

// tryAcquire acquires at the first replica without waiting.
func (c *crossing) tryAcquire(ctx context.Context, a lock.Acquire) error {
	_, err := c.via(0).Acquire(ctx, a)
	return err
}

func (c *crossing) release(ctx context.Context, a lock.Acquire) {
	_ = c.via(0).Release(ctx, lock.Release{Name: a.Name, LeaseID: a.LeaseID}) // only the record matters
}

func (c *crossing) revoke(ctx context.Context, token lock.Token) {
	_, _ = c.via(0).Revoke(ctx,
		lock.Revoke{Name: c.prefix + ":" + crossedName, Token: token, Reason: "to cross a renewal"})
}

// lockRow locks the row of a lock until the returned function is called.
func (c *crossing) lockRow(ctx context.Context, conn *pgx.Conn, name string) (func() error, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, "select from paddock.records where name = $1 for update", c.prefix+":"+name)
	if err != nil {
		return nil, errors.Join(err, tx.Rollback(context.WithoutCancel(ctx)))
	}
	return func() error { return tx.Rollback(context.WithoutCancel(ctx)) }, nil
}
