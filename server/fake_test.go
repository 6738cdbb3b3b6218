package server_test

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

const (
	sessionID   = "7c1b7e5a-3d0f-4a55-9d27-6d0a2b1c9e44"
	sessionName = "7bb9f2a32ab6969f" // of sessionID
	oneSession  = `{"session_id": "` + sessionID + `"}`
	sessionPath = "/v1/sessions/" + sessionName
)

// inMemory returns a Service without locks.
func inMemory() paddock.Service { return memlock.New().Replica(1) }

// A fake is a paddock.Service, some of whose methods a test replaces. Without acquire and
// release, it grants every lock to everybody and releases it.
type fake struct {
	paddock.Service // the other methods; nil if the test calls none
	acquire         func(context.Context, lock.Acquire) (lock.Grant, error)
	release         func(lock.Release) error
	batch           func(context.Context, []lock.Command) []paddock.Result
	lock            func(name string) (lock.Lock, error)
	watch           func(context.Context, paddock.Watch) (lock.Lock, error)
	locks           func(paddock.LockQuery) (paddock.Page[lock.Lock], error)
	events          func(context.Context, paddock.EventQuery) (paddock.Page[lock.Event], error)
}

func grantOf(a lock.Acquire) lock.Grant {
	return lock.Grant{Until: time.Now().Add(a.TTL), Lease: lock.Lease{
		ID: a.LeaseID, Name: a.Locks[0].Name, Mode: a.Locks[0].Mode, Holder: a.Holder, Token: 41, TTL: a.TTL, Grace: a.Grace, MaxHold: a.MaxHold,
		AcquiredAt: instant, ExpiresAt: instant.Add(a.TTL), Metadata: a.Metadata,
	}}
}

func (f *fake) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	bounds, err := lock.Bounds{}.Resolve()
	if err != nil {
		return lock.Grant{}, err
	}
	if a, err = a.Resolve(bounds); err != nil || f.acquire == nil {
		return grantOf(a), err
	}
	return f.acquire(ctx, a)
}

func (f *fake) Release(_ context.Context, r lock.Release) error {
	r, err := r.Resolve()
	if err != nil || f.release == nil {
		return err
	}
	return f.release(r)
}

func (f *fake) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	if f.batch == nil {
		return paddock.BatchSequentially(ctx, f, items)
	}
	return f.batch(ctx, items)
}

func (f *fake) Lock(ctx context.Context, name string) (lock.Lock, error) {
	if f.lock == nil {
		return f.Service.Lock(ctx, name)
	}
	return f.lock(name)
}

func (f *fake) Watch(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
	if f.watch == nil {
		return f.Service.Watch(ctx, w)
	}
	return f.watch(ctx, w)
}

func (f *fake) Locks(ctx context.Context, q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	if f.locks == nil {
		return f.Service.Locks(ctx, q)
	}
	return f.locks(q)
}

func (f *fake) Events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	q, err := q.Resolve()
	if err != nil {
		return paddock.Page[lock.Event]{}, err
	}
	if f.events == nil {
		return f.Service.Events(ctx, q)
	}
	return f.events(ctx, q)
}
