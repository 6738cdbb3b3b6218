package server_test

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A fake is a lock.Service that checks bounds as the real ones do. Methods without a func succeed, or panic if no test
// expects them.
type fake struct {
	lock.Service
	sessions fakeSessions
	acquire  func(context.Context, lock.Acquire) (lock.Grant, error)
	renew    func(lock.Renew) (lock.Grant, error)
	release  func(lock.Release) error
	batch    func(context.Context, []lock.Command) []lock.Result
	revoke   func(lock.Revoke) (lock.Lock, error)
	lock     func(name string) (lock.Lock, error)
	watch    func(context.Context, lock.Watch) (lock.Lock, error)
	queue    func(name string) (lock.QueueInfo, error)
	locks    func(lock.LockQuery) (lock.Page[lock.Lock], error)
	events   func(context.Context, lock.EventQuery) (lock.Page[lock.Event], error)
	verify   func(lock.Verify) (lock.Verification, error)
	write    func(lock.FencedWrite) (lock.FencedValue, error)
	read     func(key string) (lock.FencedValue, error)
}

func bounds() lock.Bounds {
	b, err := lock.Bounds{}.Resolve()
	if err != nil {
		panic(err)
	}
	return b
}

func grantOf(a lock.Acquire) lock.Grant {
	return lock.Grant{Until: time.Now().Add(a.TTL), Lease: lock.Lease{
		ID: a.LeaseID, Name: a.Name, Mode: a.Mode, Holder: a.Holder, Token: 41, TTL: a.TTL, Grace: a.Grace, MaxHold: a.MaxHold,
		AcquiredAt: instant, ExpiresAt: instant.Add(a.TTL), Metadata: a.Metadata,
	}}
}

func (f *fake) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	a, err := a.Resolve(bounds())
	if err != nil || f.acquire == nil {
		return grantOf(a), err
	}
	return f.acquire(ctx, a)
}

func (f *fake) Renew(_ context.Context, r lock.Renew) (lock.Grant, error) {
	r, err := r.Resolve(bounds())
	if err != nil || f.renew == nil {
		return grantOf(lock.Acquire{Name: r.Name, LeaseID: r.LeaseID, Mode: lock.Exclusive, Holder: "h", TTL: time.Minute}), err
	}
	return f.renew(r)
}

func (f *fake) Release(_ context.Context, r lock.Release) error {
	r, err := r.Resolve()
	if err != nil || f.release == nil {
		return err
	}
	return f.release(r)
}

func (f *fake) Batch(ctx context.Context, items []lock.Command) []lock.Result {
	if f.batch == nil {
		return lock.BatchSequentially(ctx, f, items)
	}
	return f.batch(ctx, items)
}

func (f *fake) Revoke(_ context.Context, r lock.Revoke) (lock.Lock, error) {
	r, err := r.Resolve()
	if err != nil || f.revoke == nil {
		return lock.Record{Name: r.Name}.Lock(instant), err
	}
	return f.revoke(r)
}

func (f *fake) Lock(_ context.Context, name string) (lock.Lock, error) {
	if f.lock == nil {
		return lock.Record{Name: name}.Lock(instant), nil
	}
	return f.lock(name)
}

func (f *fake) Watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	w, err := w.Resolve()
	if err != nil || f.watch == nil {
		return lock.Record{Name: w.Name}.Lock(instant), err
	}
	return f.watch(ctx, w)
}

func (f *fake) Queue(_ context.Context, name string) (lock.QueueInfo, error) {
	if f.queue == nil {
		return lock.QueueInfo{Name: name, AsOf: instant}, nil
	}
	return f.queue(name)
}

func (f *fake) Locks(_ context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	q, err := q.Resolve()
	if err != nil || f.locks == nil {
		return lock.Page[lock.Lock]{}, err
	}
	return f.locks(q)
}

func (f *fake) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	q, err := q.Resolve()
	if err != nil || f.events == nil {
		return lock.Page[lock.Event]{Next: "0"}, err
	}
	return f.events(ctx, q)
}

func (f *fake) VerifyToken(_ context.Context, v lock.Verify) (lock.Verification, error) {
	v, err := v.Resolve()
	if err != nil || f.verify == nil {
		return lock.Verification{Name: v.Name, Token: v.Token, Status: lock.Unknown, CheckedAt: instant}, err
	}
	return f.verify(v)
}

func (f *fake) WriteFenced(_ context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	w, err := w.Resolve()
	if err != nil || f.write == nil {
		return lock.FencedValue{Key: w.Key, Lock: w.Lock, Token: w.Token, Version: 1, Value: w.Value, WrittenAt: instant}, err
	}
	return f.write(w)
}

func (f *fake) ReadFenced(_ context.Context, key string) (lock.FencedValue, error) {
	return f.read(key)
}
