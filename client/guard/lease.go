package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// ErrReleased is the Err of a Lease that was given up, and the cause with which its
// contexts end.
const ErrReleased lock.Code = "lease_released"

// A Lease is kept alive until it is released or lost. Its methods are safe for
// concurrent use.
type Lease struct {
	locks lock.Service
	opts  Options
	clock clock
	herald

	granted lock.Lease // as it was first granted
	over    context.Context
	end     context.CancelCauseFunc // of over
	due     chan struct{}           // a renewal is due
	phase   int64                   // of this process's renewals, in ns

	mu       sync.Mutex
	state    State
	deadline time.Time // on the clock: lost from then on
	renewAt  time.Time // on the clock
	watch    *time.Timer
	trouble  error // why the last renewal failed, if it did
	failures int   // of renewals in a row
}

// hold returns a Lease that keeps what was granted. The machine had been suspended
// for that long when the grant was asked for. Values of ctx go along with the
// renewals, its end does not.
func hold(ctx context.Context, locks lock.Service, o Options, c clock, g lock.Grant, suspended time.Duration) *Lease {
	l := &Lease{
		locks: locks, opts: o, clock: c, herald: herald{tell: o.OnState},
		granted: g.Lease, due: make(chan struct{}, 1), phase: phase(), state: Held,
	}
	l.over, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	l.deadline = g.Until.Add(suspended - o.Margin)
	l.mu.Lock()
	l.watch = time.AfterFunc(tick, l.look) // which waits for mu
	l.mu.Unlock()
	l.renewed(g, suspended)
	go l.keep()
	return l
}

// Name returns the lock's name.
func (l *Lease) Name() string { return l.granted.Name }

// Token returns the fencing token, which goes along with every write that the
// lock guards. It stays the same over renewals.
func (l *Lease) Token() lock.Token { return l.granted.Token }

// Slot returns where a permit or a shared lease sits, from 1 on; 0 for an exclusive lease.
func (l *Lease) Slot() int { return l.granted.Slot }

// Deadline returns the instant, on the clock of package time, from which the lease counts as
// lost unless it is renewed before. It moves with each renewal.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline.Add(-l.clock.suspended())
}

// Done returns a channel that is closed when the lease is lost or released.
func (l *Lease) Done() <-chan struct{} { return l.over.Done() }

// Err returns nil while the lease is held, also when that is at risk. After that it
// returns an error that is lock.ErrLeaseLost, or ErrReleased. It compares the clock
// with the deadline: it is exact, whatever the timers are up to.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	return context.Cause(l.over)
}

// State returns how sure the holder may be of the lease.
func (l *Lease) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
	return l.state
}

// ended is whether the lease is lost or released. The caller holds mu.
func (l *Lease) ended() bool { return l.state == Lost || l.state == Released }

// check notices that the deadline has come. The caller holds mu.
func (l *Lease) check() {
	if !l.ended() && !l.clock.now().Before(l.deadline) {
		l.finish(Lost, l.late())
	}
}

// finish ends the lease for those who work under it. The caller holds mu.
func (l *Lease) finish(s State, err error) {
	l.state = s
	l.watch.Stop()
	l.end(err)
	if s == Lost {
		l.tellOf(s, err)
	}
}

// tellOf has OnState be told.
func (l *Lease) tellOf(s State, err error) {
	l.note(change{s, err})
	go l.announce()
}

// words returns an error that says the same and is nothing else: a loss is no outage,
// though one led to it.
func words(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// late returns the loss of a lease whose deadline has come. The caller holds mu.
func (l *Lease) late() error {
	why := "this process was paused, or the machine suspended, for too long"
	switch {
	case l.trouble != nil:
		why = "its renewals failed until it was too late"
	case l.opts.MaxHold > 0:
		why = "it has reached its MaxHold"
	}
	return &lock.Error{Code: lock.ErrLeaseLost, Token: l.granted.Token, Cause: words(l.trouble), Detail: fmt.Sprintf(
		"The lease of %s ends in %v or has ended: %s. Stop the work; to go on, acquire again and use the new token.",
		l.granted.Name, l.opts.Margin, why)}
}
