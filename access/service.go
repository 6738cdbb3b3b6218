package access

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

func singleName(field, name string) []scope { return []scope{{field: field, text: name}} }

func namePrefix(prefix string) []scope { return []scope{{field: "prefix", text: prefix, all: true}} }

func (g *guard) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return checkedCall(ctx, g, requirement{role: Lock, scopes: singleName("name", a.Name), wait: a.Wait},
		func(ctx context.Context) (lock.Grant, error) { return g.inner.Acquire(ctx, a) })
}

func (g *guard) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return checkedCall(ctx, g, requirement{role: Lock, scopes: singleName("name", r.Name), keepsLease: true},
		func(ctx context.Context) (lock.Grant, error) { return g.inner.Renew(ctx, r) })
}

func (g *guard) Release(ctx context.Context, r lock.Release) error {
	_, err := checkedCall(ctx, g, requirement{role: Lock, scopes: singleName("name", r.Name), keepsLease: true},
		func(ctx context.Context) (struct{}, error) { return struct{}{}, g.inner.Release(ctx, r) })
	return err
}

func (g *guard) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	return checkedCall(ctx, g, requirement{role: Admin, scopes: singleName("name", r.Name)},
		func(ctx context.Context) (lock.Lock, error) { return g.inner.Revoke(ctx, r) })
}

func (g *guard) Lock(ctx context.Context, name string) (lock.Lock, error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: singleName("name", name)},
		func(ctx context.Context) (lock.Lock, error) { return g.inner.Lock(ctx, name) })
}

func (g *guard) Watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: singleName("name", w.Name), wait: w.Wait},
		func(ctx context.Context) (lock.Lock, error) { return g.inner.Watch(ctx, w) })
}

func (g *guard) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: singleName("name", name)},
		func(ctx context.Context) (lock.QueueInfo, error) { return g.inner.Queue(ctx, name) })
}

func (g *guard) Locks(ctx context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: namePrefix(q.Prefix)},
		func(ctx context.Context) (lock.Page[lock.Lock], error) { return g.inner.Locks(ctx, q) })
}

func (g *guard) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	names := namePrefix(q.Prefix)
	if q.Name != "" && q.Prefix == "" {
		names = singleName("lock", q.Name)
	}
	return checkedCall(ctx, g, requirement{role: Read, scopes: names, wait: q.Wait},
		func(ctx context.Context) (lock.Page[lock.Event], error) { return g.inner.Events(ctx, q) })
}

func (g *guard) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: singleName("name", v.Name)},
		func(ctx context.Context) (lock.Verification, error) { return g.inner.VerifyToken(ctx, v) })
}

func (g *guard) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	return checkedCall(ctx, g, requirement{role: Lock, scopes: append(singleName("key", w.Key), singleName("lock", w.Lock)...)},
		func(ctx context.Context) (lock.FencedValue, error) { return g.inner.WriteFenced(ctx, w) })
}

// ReadFenced does not return what stands under the token of a lock that the key does
// not cover, since it would name it.
func (g *guard) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: singleName("key", key)},
		func(ctx context.Context) (lock.FencedValue, error) {
			f, err := g.inner.ReadFenced(ctx, key)
			if k, ok := KeyFrom(ctx); err == nil && (!ok || !k.Covers(f.Lock)) {
				return lock.FencedValue{}, k.errName("covers the resource %s, and not the lock that guards it. Use a key for both", key)
			}
			return f, err
		})
}
