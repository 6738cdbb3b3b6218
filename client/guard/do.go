package guard

import (
	"context"
	"errors"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// Do acquires the lock, runs the work, and releases the lock, even if the work fails or panics.
// The work gets a context from Lease.Context.
//
// Do returns the error of Acquire or of the work. If the lease was lost before the work returned,
// the error also matches lock.ErrLeaseLost: the work may have overlapped with another holder's. Do
// does not return the error of a failed release, because the work was done under the lease, which
// ends with its TTL. Options.OnState gets that error. With Options.OncePer the lock would stay open then, so that the
// work is done again, and Do does return it.
func Do(
	ctx context.Context, locks paddock.Service, name string, o Options, work func(context.Context, *Lease) error,
) error {
	l, err := Acquire(ctx, locks, name, o)
	if err != nil {
		return err
	}
	return l.do(ctx, work)
}

// do runs the work and releases the lease, also if the work panics.
func (l *Lease) do(ctx context.Context, work func(context.Context, *Lease) error) (err error) {
	workCtx, cancel := l.Context(ctx)
	returned := false // otherwise the work has panicked
	defer func() {
		lost := l.Err()
		cancel()
		release := l.Release
		if returned && err == nil && lost == nil {
			release = l.ReleaseDone
		}
		releaseErr := release(ctx)
		if lost == nil && errors.Is(releaseErr, lock.ErrLeaseLost) {
			lost = releaseErr
		} else if err == nil && l.opts.isOnce() {
			err = releaseErr
		}
		if errors.Is(lost, lock.ErrLeaseLost) && !errors.Is(err, lock.ErrLeaseLost) {
			err = errors.Join(lost, err)
		}
	}()
	if err := l.Err(); err != nil {
		return err // lost before the work began
	}
	err = work(workCtx, l)
	returned = true
	return err
}

// withToken returns ctx with the lease's token and task.
func (l *Lease) withToken(ctx context.Context) context.Context {
	return lock.WithTask(lock.WithToken(ctx, l.granted.Token), l.opts.Task)
}

// Context returns a context for work under the lease. It ends when parent ends; when the lease is lost, with a cause
// that is lock.ErrLeaseLost; and when the lease is released. It carries the token of Lease.Token for lock.TokenFrom,
// and the task of Lease.Task for lock.TaskFrom. Its Err and Done compare the clock with the deadline, so a process
// that was paused finds the context ended even if timers are late. Call the returned function when the work is done.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(l.withToken(parent))
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return &leaseContext{ctx, l, cancel}, func() {
		stop()
		cancel(context.Canceled)
	}
}

// A leaseContext checks its lease in Err and Done.
type leaseContext struct {
	context.Context
	lease  *Lease
	cancel context.CancelCauseFunc
}

// Err implements context.Context.
func (c *leaseContext) Err() error {
	c.cancelIfEnded()
	return c.Context.Err()
}

// Done implements context.Context.
func (c *leaseContext) Done() <-chan struct{} {
	c.cancelIfEnded()
	return c.Context.Done()
}

func (c *leaseContext) cancelIfEnded() {
	if err := c.lease.Err(); err != nil {
		c.cancel(err)
	}
}
