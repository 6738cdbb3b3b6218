package lock

import "context"

// A Service is a lock service: the store is one on PostgreSQL, the client is one
// over HTTP. Its methods are safe for concurrent use. Errors are *Error, or can
// be compared with a Code.
//
// When a context ends first, the error is ErrUnavailable if the call is known
// not to have been done and ErrUnknownOutcome otherwise; the same call again
// finds out.
type Service interface {
	// Acquire grants the lock, or refuses with ErrHeld once its Wait is over, or
	// later if nothing can be decided then: bound it by the context, too. When
	// the context of one that waits is cancelled, it leaves the queue; when its
	// deadline passes, the place may be kept for the same call again. A grant that
	// came meanwhile is withdrawn in either case. ErrTooManyWaiters says that no
	// more may wait; ErrUnavailable that the service is about to stop: the place is
	// kept, and the same call again finds it.
	Acquire(context.Context, Acquire) (Grant, error)
	// Renew moves the end of a lease, or refuses with ErrLeaseLost.
	Renew(context.Context, Renew) (Grant, error)
	// Release ends a lease, or refuses with ErrLeaseLost.
	Release(context.Context, Release) error
	// Batch does each item as the call of its own would: an Acquire without Wait, a
	// Renew or a Release. Anything else is refused with ErrInvalid, and so is every item
	// of a batch with more than MaxBatch. It returns as many results as there are
	// items, in their order. Items are not atomic with one another: each has its own
	// Result, and others are done beside and between them. Those on one lock are done in
	// the order in which they are given. When the context ends, each item that has
	// no answer yet has ErrUnavailable or ErrUnknownOutcome, as it would alone.
	Batch(ctx context.Context, items []Command) []Result
	// Revoke takes a lease away and returns the lock as it is then, or refuses
	// with ErrTokenMismatch.
	Revoke(context.Context, Revoke) (Lock, error)

	// Lock returns a lock. One that was never used is free.
	Lock(ctx context.Context, name string) (Lock, error)
	// Watch returns a lock as soon as it is another Version than the one seen, or
	// as it is when the Wait is over.
	Watch(context.Context, Watch) (Lock, error)
	// Queue returns who waits for a lock, and for what.
	Queue(ctx context.Context, name string) (QueueInfo, error)
	// Locks returns a page of the locks known, in the order of their names.
	Locks(context.Context, LockQuery) (Page[Lock], error)
	// Events returns a page of what happened, oldest first. It waits, if it is to,
	// while there is nothing to tell.
	Events(context.Context, EventQuery) (Page[Event], error)
	// VerifyToken says how a token stands as of an instant.
	VerifyToken(context.Context, Verify) (Verification, error)

	// WriteFenced writes the resource, or refuses with ErrStaleToken,
	// ErrUnknownToken or ErrVersionMismatch.
	WriteFenced(context.Context, FencedWrite) (FencedValue, error)
	// ReadFenced returns the resource, ErrNotFound if it was never written.
	ReadFenced(ctx context.Context, key string) (FencedValue, error)
}
