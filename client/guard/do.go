package guard

import (
	"context"
	"errors"

	"github.com/paddock-lock/paddock/lock"
)

// Do acquires the lock, works under it, and releases it, whatever becomes of the
// work. The work's context is that of Lease.Context.
//
// The error is that of Acquire, or of the work. When the lease was lost before the
// work returned, it is lock.ErrLeaseLost as well: the work may have overlapped with
// another's. That the release could not be sent is no error, only Options.OnState is
// told: the work was done under the lease, which ends with its TTL.
func Do(ctx context.Context, locks lock.Service, name string, o Options, work func(context.Context, *Lease) error) error {
	l, err := Acquire(ctx, locks, name, o)
	if err != nil {
		return err
	}
	return l.do(ctx, work)
}

// do works under the lease and releases it. It does so also when the work panics.
func (l *Lease) do(ctx context.Context, work func(context.Context, *Lease) error) (err error) {
	workCtx, cancel := l.Context(ctx)
	defer func() {
		lost := l.Err()
		cancel()
		if left := l.Release(ctx); lost == nil && errors.Is(left, lock.ErrLeaseLost) {
			lost = left
		}
		if errors.Is(lost, lock.ErrLeaseLost) && !errors.Is(err, lock.ErrLeaseLost) {
			err = errors.Join(lost, err)
		}
	}()
	if err := l.Err(); err != nil {
		return err // it is over before the work has begun
	}
	return work(workCtx, l)
}

// withToken returns ctx with the lease's token.
func (l *Lease) withToken(ctx context.Context) context.Context {
	return lock.WithToken(ctx, l.granted.Token)
}

// Context returns a context for the work under the lease: it ends when parent does,
// when the lease is lost, with a cause that is lock.ErrLeaseLost, and when it is
// released. It carries the token for lock.TokenFrom. Its Err and Done compare the
// clock: a process that was paused finds it ended, however late the timers are. Call
// the function when the work is done.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(l.withToken(parent))
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return &leaseContext{ctx, l, cancel}, func() {
		stop()
		cancel(context.Canceled)
	}
}

// leaseContext is a context that looks at its lease before it says that it goes on.
type leaseContext struct {
	context.Context
	lease  *Lease
	cancel context.CancelCauseFunc
}

// Err returns why the context has ended, nil if it has not.
func (g *leaseContext) Err() error {
	g.check()
	return g.Context.Err()
}

// Done returns a channel that is closed when the context ends.
func (g *leaseContext) Done() <-chan struct{} {
	g.check()
	return g.Context.Done()
}

func (g *leaseContext) check() {
	if err := g.lease.Err(); err != nil {
		g.cancel(err)
	}
}
