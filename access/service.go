package access

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

func one(field, name string) []cover { return []cover{{field: field, text: name}} }

func begins(prefix string) []cover { return []cover{{field: "prefix", text: prefix, all: true}} }

func (g *guard) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return through(ctx, g, need{role: Lock, names: one("name", a.Name), wait: a.Wait},
		func(ctx context.Context) (lock.Grant, error) { return g.inner.Acquire(ctx, a) })
}

func (g *guard) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return through(ctx, g, need{role: Lock, names: one("name", r.Name), keeps: true},
		func(ctx context.Context) (lock.Grant, error) { return g.inner.Renew(ctx, r) })
}

func (g *guard) Release(ctx context.Context, r lock.Release) error {
	_, err := through(ctx, g, need{role: Lock, names: one("name", r.Name), keeps: true},
		func(ctx context.Context) (struct{}, error) { return struct{}{}, g.inner.Release(ctx, r) })
	return err
}

func (g *guard) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	return through(ctx, g, need{role: Admin, names: one("name", r.Name)},
		func(ctx context.Context) (lock.Lock, error) { return g.inner.Revoke(ctx, r) })
}

func (g *guard) Lock(ctx context.Context, name string) (lock.Lock, error) {
	return through(ctx, g, need{role: Read, names: one("name", name)},
		func(ctx context.Context) (lock.Lock, error) { return g.inner.Lock(ctx, name) })
}

func (g *guard) Watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	return through(ctx, g, need{role: Read, names: one("name", w.Name), wait: w.Wait},
		func(ctx context.Context) (lock.Lock, error) { return g.inner.Watch(ctx, w) })
}

func (g *guard) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	return through(ctx, g, need{role: Read, names: one("name", name)},
		func(ctx context.Context) (lock.QueueInfo, error) { return g.inner.Queue(ctx, name) })
}

func (g *guard) Locks(ctx context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	return through(ctx, g, need{role: Read, names: begins(q.Prefix)},
		func(ctx context.Context) (lock.Page[lock.Lock], error) { return g.inner.Locks(ctx, q) })
}

func (g *guard) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	names := begins(q.Prefix)
	if q.Name != "" && q.Prefix == "" {
		names = one("lock", q.Name)
	}
	return through(ctx, g, need{role: Read, names: names, wait: q.Wait},
		func(ctx context.Context) (lock.Page[lock.Event], error) { return g.inner.Events(ctx, q) })
}

func (g *guard) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	return through(ctx, g, need{role: Read, names: one("name", v.Name)},
		func(ctx context.Context) (lock.Verification, error) { return g.inner.VerifyToken(ctx, v) })
}

func (g *guard) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	return through(ctx, g, need{role: Lock, names: append(one("key", w.Key), one("lock", w.Lock)...)},
		func(ctx context.Context) (lock.FencedValue, error) { return g.inner.WriteFenced(ctx, w) })
}

// ReadFenced does not return what stands under the token of a lock that the key does
// not cover, since it would name it.
func (g *guard) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	return through(ctx, g, need{role: Read, names: one("key", key)},
		func(ctx context.Context) (lock.FencedValue, error) {
			f, err := g.inner.ReadFenced(ctx, key)
			if k, ok := KeyFrom(ctx); err == nil && (!ok || !k.Covers(f.Lock)) {
				return lock.FencedValue{}, k.errName("covers the resource %s, and not the lock that guards it. Use a key for both", key)
			}
			return f, err
		})
}
