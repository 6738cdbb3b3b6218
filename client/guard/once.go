package guard

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A Turn is what Once has come to.
type Turn struct {
	Ran bool // whether this call has run the work; otherwise it was done before
	// If it was done before: who has done it, when, on the database's clock, and how long it counts as done.
	DoneBy string
	DoneAt time.Time
	Left   time.Duration
}

// Once runs the work if it was not done yet in this period, by any process, and then closes the lock for the rest of the
// period. All processes that may do the work call it, such as the same cron job on several machines:
//
//	nightly := lock.Closing{Period: lock.Day, Zone: "Europe/Berlin", For: time.Minute}
//	turn, err := guard.Once(ctx, locks, "jobs:nightly", nightly, guard.Options{Wait: time.Hour}, work)
//
// A Period is one of the calendar, in its time zone, on the database's clock; work is that of the period in which its
// lease was granted. Without a Period, the work is done for the time For since the grant. With both, For is the least
// time: choose more than the clocks of the machines differ, so that a call that comes a little early, just before the end
// of a period, and one that comes a little late, just after it, are not two turns.
//
// If the work fails, or the process dies, the lock stays open, and the next call runs the work. While another process
// runs it, Once fails with lock.ErrHeld, or waits for Options.Wait: until the work is done, or to run it after a failure.
// The error is that of Do otherwise: work that was done just once has none.
func Once(
	ctx context.Context, locks paddock.Service, name string, per lock.Closing, o Options, work func(context.Context, *Lease) error,
) (Turn, error) {
	o.OncePer = per
	if !o.isOnce() {
		return Turn{}, lock.Invalid("per", "has neither For nor Period; give one of them, or both")
	}
	l, err := Acquire(ctx, locks, name, o)
	if done := (*lock.Error)(nil); errors.As(err, &done) && done.Code == lock.ErrAlreadyDone {
		return Turn{DoneBy: done.Holder, DoneAt: done.DoneAt, Left: done.RetryAfter}, nil
	}
	if err != nil {
		return Turn{}, err
	}
	return Turn{Ran: true}, l.do(ctx, work)
}
