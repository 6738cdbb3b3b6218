package guard

import "context"

// Context returns a context for the work under the lease: it ends when parent does,
// when the lease is lost, with a cause that is lock.ErrLeaseLost, and when it is
// released. It carries the token for lock.TokenFrom. Its Err and Done compare the
// clock: a process that was paused finds it ended, however late the timers are. Call
// the function when the work is done.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(l.carry(parent))
	stop := context.AfterFunc(l.over, func() { cancel(context.Cause(l.over)) })
	return &guarded{ctx, l, cancel}, func() {
		stop()
		cancel(context.Canceled)
	}
}

// guarded is a context that looks at its lease before it says that it goes on.
type guarded struct {
	context.Context
	lease  *Lease
	cancel context.CancelCauseFunc
}

// Err returns why the context has ended, nil if it has not.
func (g *guarded) Err() error {
	g.look()
	return g.Context.Err()
}

// Done returns a channel that is closed when the context ends.
func (g *guarded) Done() <-chan struct{} {
	g.look()
	return g.Context.Done()
}

func (g *guarded) look() {
	if err := g.lease.Err(); err != nil {
		g.cancel(err)
	}
}
