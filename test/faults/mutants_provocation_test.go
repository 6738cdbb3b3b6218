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

// A provocation is what happens while clients use the service, so that what is broken
// shows.
type provocation struct {
	*trial
	rec    *verify.Recorder
	prefix string
	lulls  chan time.Time // each value begins a lull of the load
}

// all returns what is done at once, each until its context ends.
func (p *provocation) all() []func(context.Context) error {
	switch p.how {
	case crashed:
		return []func(context.Context) error{p.crash}
	case restored:
		return []func(context.Context) error{p.restore}
	case orderly:
		return nil
	case bereft:
		return []func(context.Context) error{p.bereave}
	}
	return []func(context.Context) error{p.block, p.stare, p.cross}
}

// block locks rows now and then, for less than the service waits for them: whoever
// decides on those locks decides late.
func (p *provocation) block(ctx context.Context) (err error) {
	conn, err := pgx.Connect(ctx, p.databaseURL)
	if err != nil {
		return unlessOver(ctx, err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for passes(ctx, rand.N(150*time.Millisecond)) {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select from paddock.locks where slot = 0 and name = $1 for update", p.anyName())
			passes(ctx, 50*time.Millisecond+rand.N(170*time.Millisecond))
			return err
		})
		if err != nil {
			return unlessOver(ctx, err)
		}
	}
	return nil
}

// stare looks at locks all the time.
func (p *provocation) stare(ctx context.Context) error {
	s := p.services[rand.IntN(len(p.services))]
	locks := p.rec.Client(s.Via, s.Locks)
	for passes(ctx, time.Millisecond) {
		if _, err := locks.Lock(ctx, p.anyName()); err != nil {
			return unlessOver(ctx, err)
		}
	}
	return nil
}

// crash kills PostgreSQL once, in a lull of the load, and brings it back.
func (p *provocation) crash(ctx context.Context) error {
	if !passes(ctx, 500*time.Millisecond+rand.N(500*time.Millisecond)) {
		return nil
	}
	select {
	case p.lulls <- time.Now():
		passes(ctx, intoLull/2+rand.N(intoLull/2))
	case <-ctx.Done():
		return nil
	}
	defer p.rec.MarkFault("kill -9 of PostgreSQL")()
	return errors.Join(p.server.Kill(), p.server.Restart(context.WithoutCancel(ctx)))
}

// restore puts PostgreSQL back once to the snapshot from before the round. Another application
// writes to it before a replica connects.
func (p *provocation) restore(ctx context.Context) error {
	if !passes(ctx, noticing) {
		return nil
	}
	p.rec.MarkFault("PostgreSQL is put back to a snapshot")
	return p.restorable.restore(context.WithoutCancel(ctx), restoring{(*restorable).crash, true})
}

const (
	// fewWaiters is how many may wait for a lock in a trial in which a replica dies.
	fewWaiters = 2
	// bereftAfter is when it dies, and bereftFor is how long clients go on: until places count
	// no more whose replica is dead, and a while longer.
	bereftAfter = 2 * time.Second
	bereftFor   = bereftAfter + lock.ReplicaTTL + lock.PlaceRetention + 8*time.Second
)

// bereave kills the newest replica for good.
func (p *provocation) bereave(ctx context.Context) error {
	if !passes(ctx, bereftAfter) {
		return nil
	}
	p.rec.MarkFault("kill -9 of a replica")
	return p.replicas[len(p.replicas)-1].end(syscall.SIGKILL)
}

func (p *provocation) anyName() string {
	return fmt.Sprintf("%s:%d.0", p.prefix, rand.IntN(locksPerTrial))
}

// passes waits for that time and returns true, or false as soon as ctx ends.
func passes(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// unlessOver returns the error unless ctx has ended, which is then why.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
