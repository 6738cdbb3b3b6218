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

// carry returns ctx with the lease's token.
func (l *Lease) carry(ctx context.Context) context.Context {
	return lock.WithToken(ctx, l.granted.Token)
}
