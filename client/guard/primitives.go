package guard

import (
	"context"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A Semaphore is a lock with several permits. Each is a Lease with its own token and a slot; with
// Permits in the Options, each Lease has so many permits, with one token and a slot for each of them.
// A resource that is guarded by permits must be fenced by name and slot.
type Semaphore struct {
	locks paddock.Service
	name  string
	opts  Options
}

// NewSemaphore returns the semaphore with the name and number of permits. A client with a different
// capacity than the current leases is refused with lock.ErrCapacityMismatch. NewSemaphore ignores
// Mode and Capacity of the Options.
func NewSemaphore(locks paddock.Service, name string, capacity int, o Options) *Semaphore {
	o.Mode, o.Capacity = lock.Permit, capacity
	return &Semaphore{locks: locks, name: name, opts: o}
}

// Acquire acquires a permit, or as many as the Options say, like the function Acquire.
func (s *Semaphore) Acquire(ctx context.Context) (*Lease, error) {
	return Acquire(ctx, s.locks, s.name, s.opts)
}

// Do runs the work with a permit like the function Do.
func (s *Semaphore) Do(ctx context.Context, work func(context.Context, *Lease) error) error {
	return Do(ctx, s.locks, s.name, s.opts, work)
}

// An RWLock is a readers-writer lock. Neither side starves: a reader that arrives while a writer
// waits is queued behind it. A read lease cannot be upgraded; release it and acquire a write lease.
type RWLock struct {
	locks paddock.Service
	name  string
	opts  Options
}

// NewRWLock returns the lock with the name. It ignores Mode, Capacity and Permits of the Options.
func NewRWLock(locks paddock.Service, name string, o Options) *RWLock {
	return &RWLock{locks: locks, name: name, opts: o}
}

// Read acquires a shared lease like the function Acquire. Readers that overlap have the same token.
func (l *RWLock) Read(ctx context.Context) (*Lease, error) {
	return Acquire(ctx, l.locks, l.name, l.optionsFor(lock.Shared))
}

// Write acquires an exclusive lease like the function Acquire.
func (l *RWLock) Write(ctx context.Context) (*Lease, error) {
	return Acquire(ctx, l.locks, l.name, l.optionsFor(lock.Exclusive))
}

// DoRead runs the work under a shared lease like the function Do.
func (l *RWLock) DoRead(ctx context.Context, work func(context.Context, *Lease) error) error {
	return Do(ctx, l.locks, l.name, l.optionsFor(lock.Shared), work)
}

// DoWrite runs the work under an exclusive lease like the function Do.
func (l *RWLock) DoWrite(ctx context.Context, work func(context.Context, *Lease) error) error {
	return Do(ctx, l.locks, l.name, l.optionsFor(lock.Exclusive), work)
}

func (l *RWLock) optionsFor(m lock.Mode) Options {
	o := l.opts
	o.Mode, o.Capacity, o.Permits = m, 0, 0
	return o
}
