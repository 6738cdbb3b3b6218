package guard

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

// A Semaphore is a lock of which several may have a permit at once. Each permit is a
// Lease with a token of its own, that sits in a slot: a resource that permits guard
// is fenced by name and slot.
type Semaphore struct {
	locks lock.Service
	name  string
	opts  Options
}

// NewSemaphore returns the semaphore of that name with so many permits; all who use
// it at the same time must agree on how many, or are refused with
// lock.ErrCapacityMismatch. Mode and Capacity of the Options do not count.
func NewSemaphore(locks lock.Service, name string, capacity int, o Options) *Semaphore {
	o.Mode, o.Capacity = lock.Permit, capacity
	return &Semaphore{locks: locks, name: name, opts: o}
}

// Acquire takes a permit and keeps it, as the function Acquire does a lock.
func (s *Semaphore) Acquire(ctx context.Context) (*Lease, error) {
	return Acquire(ctx, s.locks, s.name, s.opts)
}

// Do works with a permit, as the function Do does under a lock.
func (s *Semaphore) Do(ctx context.Context, work func(context.Context, *Lease) error) error {
	return Do(ctx, s.locks, s.name, s.opts, work)
}

// An RWLock is a lock that either readers share or one writer has. Nobody starves:
// a reader that comes while a writer waits goes behind it. There is no way from
// reading to writing but to release and to acquire again.
type RWLock struct {
	locks lock.Service
	name  string
	opts  Options
}

// NewRWLock returns the lock of that name. Mode and Capacity of the Options do not count.
func NewRWLock(locks lock.Service, name string, o Options) *RWLock {
	return &RWLock{locks: locks, name: name, opts: o}
}

// Read takes the lock together with other readers, and keeps it. All readers of one
// phase have the same token.
func (l *RWLock) Read(ctx context.Context) (*Lease, error) {
	return Acquire(ctx, l.locks, l.name, l.as(lock.Shared))
}

// Write takes the lock alone, and keeps it.
func (l *RWLock) Write(ctx context.Context) (*Lease, error) {
	return Acquire(ctx, l.locks, l.name, l.as(lock.Exclusive))
}

// DoRead works together with other readers, as the function Do does alone.
func (l *RWLock) DoRead(ctx context.Context, work func(context.Context, *Lease) error) error {
	return Do(ctx, l.locks, l.name, l.as(lock.Shared), work)
}

// DoWrite works alone, as the function Do does.
func (l *RWLock) DoWrite(ctx context.Context, work func(context.Context, *Lease) error) error {
	return Do(ctx, l.locks, l.name, l.as(lock.Exclusive), work)
}

func (l *RWLock) as(m lock.Mode) Options {
	o := l.opts
	o.Mode, o.Capacity = m, 0
	return o
}
