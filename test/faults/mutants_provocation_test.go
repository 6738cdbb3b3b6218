package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// locksPerTrial is how many locks there are.
const locksPerTrial = 8

// A disturbance is what happens while clients use the service, so that what is broken
// shows.
type disturbance struct {
	*trial
	rec    *verify.Recorder
	prefix string
	lulls  chan time.Time // each value begins a lull of the load
}

// actions returns what is done at once, each until its context ends.
func (p *disturbance) actions() []func(context.Context) error {
	switch p.mode {
	case crashed:
		return []func(context.Context) error{p.crash}
	case restored:
		return []func(context.Context) error{p.restore}
	case neverCancelled:
		return nil
	case replicaLost:
		return []func(context.Context) error{p.killReplica}
	}
	return []func(context.Context) error{p.lockRows, p.readLocks, p.crossCalls}
}

// lockRows locks rows now and then, for less than the service waits for them: whoever
// decides on those locks decides late.
func (p *disturbance) lockRows(ctx context.Context) (err error) {
	conn, err := pgx.Connect(ctx, p.databaseURL)
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for sleepFor(ctx, rand.N(150*time.Millisecond)) {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select from paddock.locks where slot = 0 and name = $1 for update", p.anyName())
			sleepFor(ctx, 50*time.Millisecond+rand.N(170*time.Millisecond))
			return err
		})
		if err != nil {
			return unlessDone(ctx, err)
		}
	}
	return nil
}

// readLocks looks at locks all the time.
func (p *disturbance) readLocks(ctx context.Context) error {
	s := p.services[rand.IntN(len(p.services))]
	locks := p.rec.Client(s.Via, s.Locks)
	for sleepFor(ctx, time.Millisecond) {
		if _, err := locks.Lock(ctx, p.anyName()); err != nil {
			return unlessDone(ctx, err)
		}
	}
	return nil
}

// crash kills PostgreSQL once, in a lull of the load, and brings it back.
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

// restore puts PostgreSQL back once to the snapshot from before the round. Another application
// writes to it before a replica connects.
func (p *disturbance) restore(ctx context.Context) error {
	if !sleepFor(ctx, noticeDelay) {
		return nil
	}
	p.rec.MarkFault("PostgreSQL is put back to a snapshot")
	return p.restorable.restore(context.WithoutCancel(ctx), restoreOptions{(*restorable).crash, true})
}

const (
	// waiterLimit is how many may wait for a lock in a trial in which a replica dies.
	waiterLimit = 2
	// killAfter is when it dies, and bereftFor is how long clients go on: until places count
	// no more whose replica is dead, and a while longer.
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

func (p *disturbance) anyName() string {
	return fmt.Sprintf("%s:%d.0", p.prefix, rand.IntN(locksPerTrial))
}

// sleepFor waits for that time and returns true, or false as soon as ctx ends.
func sleepFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// unlessDone returns the error unless ctx has ended, which is then why.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
