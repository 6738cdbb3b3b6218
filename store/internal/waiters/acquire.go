package waiters

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// leaveTimeout bounds the attempts to leave a queue in the background. By then the place has lapsed by itself.
const leaveTimeout = lock.MaxWait + lock.PlaceRetention

// Acquire acquires the lock, and waits for it up to a.Wait. command returns the command to submit for a, of which
// Acquire has set Attachment and Replica; limitReached tells it that the limit on waiting calls is reached, so that
// the call may be granted the lock but not join a queue. The error is the decision's, or one of package lock if
// there is no decision. When ctx ends, Acquire returns lock.ErrUnavailable and gives back what the call has or gets.
func (r *Registry) Acquire(
	ctx context.Context, a lock.Acquire, command func(a lock.Acquire, limitReached bool) lock.Command,
) (out row.Outcome, err error) {
	over := time.NewTimer(a.Wait)
	defer over.Stop()
	c, limitReached, err := r.register(a)
	if err != nil {
		return row.Outcome{}, err
	}
	defer func() { r.unregister(c, err == nil) }()
	a.Attachment, a.Replica = c.attachment, r.self
	out, err = r.submit(ctx, command(a, limitReached))
	begun := !errors.Is(err, lock.ErrUnavailable)
	for err == nil && out.Queued {
		c.place.Store(out.Place)
		out, err = r.await(ctx, c, over.C, a.KeepPlace)
	}
	if err == nil && ctx.Err() != nil {
		err = database.Departed(context.Cause(ctx)) // the grant came while the client left
	}
	if begun && undecided(out, err) {
		// A client that has left gives up its place. Otherwise the answer asks it to return.
		r.leaveInBackground(c.leave(!errors.Is(context.Cause(ctx), context.Canceled), true))
	}
	return out, err
}

// undecided reports whether a submitted command failed without a decision.
func undecided(out row.Outcome, err error) bool { return err != nil && out.Err == nil }

// await sleeps until something is to be done for the call, and does it. It repeats a Claim whose answer was lost,
// since the second one finds what the first has done. If it returned the error instead, the waiter would be skipped
// until its client returns.
func (r *Registry) await(ctx context.Context, c *call, over <-chan time.Time, keepPlace bool) (row.Outcome, error) {
	pause := database.NewPause()
	for retry := (<-chan time.Time)(nil); ; {
		select {
		case grant := <-c.granted:
			return grant, nil
		case <-c.woken:
		case <-retry:
		case <-over:
			return r.submit(ctx, c.leave(keepPlace, false))
		case <-r.drained.Done():
			out, err := r.submit(ctx, c.leave(true, false))
			if errors.Is(out.Err, lock.ErrHeld) || errors.Is(out.Err, lock.ErrUnavailable) {
				err = database.Stopping()
			}
			return out, err
		case <-ctx.Done():
			return row.Outcome{}, database.Departed(context.Cause(ctx))
		}
		out, err := r.submit(ctx, lock.Claim{Name: c.name, LeaseID: c.lease, Attachment: c.attachment})
		if !errors.Is(err, lock.ErrUnknownOutcome) || ctx.Err() != nil {
			return out, err
		}
		retry = time.After(pause.NextBackOff())
	}
}

// leave returns the command that ends the wait of the call.
func (c *call) leave(keepPlace, disconnected bool) lock.Leave {
	return lock.Leave{
		Name: c.name, LeaseID: c.lease, Attachment: c.attachment, KeepPlace: keepPlace, Disconnected: disconnected,
	}
}

// leaveInBackground submits the Leave until it is decided, for leaveTimeout at most. What is left then ends by itself:
// the place after lock.PlaceRetention, the lease with its TTL.
func (r *Registry) leaveInBackground(l lock.Leave) {
	r.settle(l.Attachment)
	r.cleanup.Go(func() {
		ctx, cancel := context.WithTimeout(r.db.Context(), leaveTimeout)
		defer cancel()
		out, err := r.submit(ctx, l)
		for undecided(out, err) && ctx.Err() == nil && r.db.Sleep(database.Jittered(database.MaxPause)) {
			out, err = r.submit(ctx, l)
		}
		if undecided(out, err) && r.db.Context().Err() == nil {
			r.db.Log.Warn("cannot remove an ended call from its queue", "lock", l.Name, "error", err)
		}
	})
}
