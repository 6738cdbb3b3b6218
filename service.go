package paddock

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

// A Service is a lock service. The store implements it on PostgreSQL, the client over HTTP. Its methods are safe for
// concurrent use. Each error matches a Code with errors.Is, and most are an *Error.
//
// If the context ends first, the error is ErrUnavailable if the call has certainly not taken effect, and
// ErrUnknownOutcome otherwise; repeat the call to find out.
type Service interface {
	// Acquire acquires the locks, all or none, or refuses with ErrHeld when its Wait has ended. The call may take longer
	// than Wait if the service cannot decide at that time, so give the context a deadline, too. If the context ends
	// during the wait, the service withdraws a grant that it made before it noticed, and keeps the place until the wait
	// would have ended, and for PlaceRetention at least: a repeated call finds it, and a Release gives it up. The error
	// is ErrTooManyWaiters if a limit on waiters is reached, and ErrUnavailable if the service is stopping: then the
	// place is kept likewise.
	Acquire(context.Context, lock.Acquire) (lock.Grant, error)
	// Renew extends the leases of its locks, or refuses with ErrLeaseLost.
	Renew(context.Context, lock.Renew) (lock.Grant, error)
	// Release ends the leases of its locks, or refuses with ErrLeaseLost.
	Release(context.Context, lock.Release) error
	// Batch runs each item like a separate call: an Acquire without Wait and KeepPlace, a Renew or a Release. Other
	// commands are refused with ErrInvalid, and so are all items of a batch of more than MaxBatch. It returns one
	// result for each item, in order. The batch is not atomic: each item has its own Result, and other calls run
	// between them. Items on the same lock run in order. If the context ends, each unanswered item has the error that
	// a separate call would have.
	Batch(ctx context.Context, items []lock.Command) []Result
	// Revoke ends leases, or opens a closed lock, and returns the lock after that, or refuses with ErrTokenMismatch.
	Revoke(context.Context, lock.Revoke) (lock.Lock, error)

	// OpenSession opens a session, or finds the one that an earlier call with the same ID has opened.
	OpenSession(context.Context, lock.OpenSession) (lock.SessionGrant, error)
	// RenewSession extends a session, or refuses with ErrSessionLost.
	RenewSession(context.Context, lock.RenewSession) (lock.SessionGrant, error)
	// CloseSession ends a session, its leases and its places, or refuses with ErrSessionLost. After any other error
	// the session may have ended, and its leases end soon.
	CloseSession(context.Context, lock.CloseSession) error
	// RevokeSession ends a session like CloseSession, on behalf of an operator. The error is ErrNotFound if no session
	// has that name, and ErrSessionLost if it has ended in another way.
	RevokeSession(context.Context, lock.RevokeSession) (lock.SessionInfo, error)

	// Session returns a session with its leases and places, or ErrNotFound. An ended one is known for a while.
	Session(context.Context, lock.SessionRef) (lock.SessionInfo, error)
	// Sessions returns a page of the sessions that have not ended.
	Sessions(context.Context, SessionQuery) (Page[lock.SessionInfo], error)

	// DeclareTree declares the tree of the root, or finds it declared, see Trees. The error is ErrTreeBusy if a lock of
	// the tree is held or waited for, and ErrTreeOverlaps if it is not apart from all others.
	DeclareTree(ctx context.Context, root string) (lock.Tree, error)
	// RemoveTree makes the locks of a tree independent of each other, or finds that there is no such tree. The error is
	// ErrTreeBusy if a lock of the tree is held or waited for.
	RemoveTree(ctx context.Context, root string) error
	// Trees returns the declared trees, in the order of their roots.
	Trees(ctx context.Context) ([]lock.Tree, error)

	// Freeze stops new grants of the locks of a scope on all replicas: after the answer none is made until the freeze
	// ends. It replaces a freeze of the same scope. The error is ErrInvalid beyond MaxFreezes.
	Freeze(context.Context, lock.FreezeRequest) (lock.FreezeStatus, error)
	// Thaw ends the freeze of the scope, or finds that there is none. Waiters are granted the locks in their order.
	Thaw(context.Context, lock.ThawRequest) error
	// Frozen returns the freeze of the scope and how many leases are left, or ErrNotFound.
	Frozen(context.Context, lock.Scope) (lock.FreezeStatus, error)
	// Freezes returns the freezes in force, in the order of their scopes.
	Freezes(context.Context) ([]lock.Freeze, error)

	// SetRule sets the rule of a scope on all replicas: after the answer nothing is granted outside of it. It replaces a
	// rule of the same scope. The error is ErrInvalid beyond MaxRules.
	SetRule(context.Context, lock.Rule) (lock.Rule, error)
	// RemoveRule removes the rule of a scope, or finds that there is none.
	RemoveRule(context.Context, lock.Scope) error
	// Rules returns the rules, in the order of their scopes.
	Rules(context.Context) ([]lock.Rule, error)

	// Lock returns a lock. A lock that was never used is free.
	Lock(ctx context.Context, name string) (lock.Lock, error)
	// Watch returns a lock as soon as its Version differs from the one seen, or when the Wait has ended.
	Watch(context.Context, Watch) (lock.Lock, error)
	// Queue returns the waiters of a lock, and what blocks each.
	Queue(ctx context.Context, name string) (lock.QueueInfo, error)
	// Locks returns a page of the known locks, in the order of their names.
	Locks(context.Context, LockQuery) (Page[lock.Lock], error)
	// Events returns a page of events, oldest first. It waits for up to the query's Wait while the page is empty, and
	// none of the query's Sessions has ended.
	Events(context.Context, EventQuery) (Page[lock.Event], error)
	// VerifyToken returns the status of a token.
	VerifyToken(context.Context, lock.Verify) (lock.Verification, error)

	// ReportStale records that a resource has refused a stale token. recorded is false if the limits of StaleReports
	// do not allow another event. The error is ErrTokenMismatch if the token is current, and ErrUnknownToken if it was
	// never granted.
	ReportStale(context.Context, lock.ReportStale) (recorded bool, err error)

	// WriteFenced writes the resource, or refuses with ErrStaleToken, ErrUnknownToken or ErrVersionMismatch. It
	// reports a stale token like ReportStale.
	WriteFenced(context.Context, lock.FencedWrite) (lock.FencedValue, error)
	// ReadFenced returns the resource, or ErrNotFound if it was never written.
	ReadFenced(ctx context.Context, key string) (lock.FencedValue, error)
}
