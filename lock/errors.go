package lock

import (
	"fmt"
	"strings"
	"time"
)

// A Code identifies a kind of error. Codes are stable; test for them with errors.Is, both in the server and in
// clients.
type Code string

// The codes of the domain.
const (
	// ErrInvalid: the request is invalid; Field names the field.
	ErrInvalid Code = "invalid_request"
	// ErrHeld: the lock cannot be granted now. Holder holds it. RetryAfter is the time until the first lease ends,
	// unless that is renewed.
	ErrHeld Code = "lock_held"
	// ErrAlreadyDone: the lock is closed, because its work is done until RetryAfter has passed. Holder has done it, and
	// released the lock at DoneAt.
	ErrAlreadyDone Code = "already_done"
	// ErrFrozen: an operator has stopped new grants of the lock. Reason says why, FrozenBy who it was, and FrozenUntil when
	// the freeze ends. RetryAfter is the time until then, or a guess if it has no end.
	ErrFrozen Code = "lock_frozen"
	// ErrLeaseLost: the lease has ended; stop the work. Ended says how.
	ErrLeaseLost Code = "lease_lost"
	// ErrLeaseIDInUse: the lease_id belongs to a lease or waiter with another holder, mode, capacity, number of
	// permits, Stays, session or set.
	ErrLeaseIDInUse Code = "lease_id_in_use"
	// ErrLeaseInSet: the lease is one of several that were acquired together; renew or release all of them. Set names
	// their locks.
	ErrLeaseInSet Code = "lease_in_set"
	// ErrSessionLost: the session has ended, and its leases with it; stop the work. Ended says how.
	ErrSessionLost Code = "session_lost"
	// ErrSessionIDInUse: the session_id belongs to a session with another holder.
	ErrSessionIDInUse Code = "session_id_in_use"
	// ErrTooManyLeases: the session has reached its limit of leases and places, or the API key that of a rule. Release
	// some.
	ErrTooManyLeases Code = "too_many_leases"
	// ErrDeadlock: the call waited in a circle of calls that wait for each other, and gave way. Cycle is the circle.
	ErrDeadlock Code = "deadlock"
	// ErrCapacityMismatch: permits with another capacity are held or waited for. Capacity is that capacity.
	ErrCapacityMismatch Code = "capacity_mismatch"
	// ErrTreeBusy: a lock of the tree is held or waited for.
	ErrTreeBusy Code = "tree_busy"
	// ErrTreeOverlaps: the root is inside another tree, or above its root.
	ErrTreeOverlaps Code = "tree_overlaps"
	// ErrTooManyWaiters: a limit on waiting or watching calls is reached; retry later.
	ErrTooManyWaiters Code = "too_many_waiters"
	// ErrTokenMismatch: the given token does not hold the lock.
	ErrTokenMismatch Code = "token_mismatch"
	// ErrStaleToken: a greater token has been granted or seen.
	ErrStaleToken Code = "stale_token"
	// ErrUnknownToken: the token was never granted for this lock.
	ErrUnknownToken Code = "unknown_token"
	// ErrVersionMismatch: the fenced resource has another version.
	ErrVersionMismatch Code = "version_mismatch"
	// ErrNotFound: no fenced resource was ever written under this key, or there is no session or freeze of this name.
	ErrNotFound Code = "not_found"
	// ErrKeyMissing: the request has no API key, and the service requires one.
	ErrKeyMissing Code = "key_missing"
	// ErrKeyInvalid: the API key is unknown or revoked.
	ErrKeyInvalid Code = "key_invalid"
	// ErrKeyExpired: the API key has expired.
	ErrKeyExpired Code = "key_expired"
	// ErrRoleMissing: the role of the API key does not allow the call.
	ErrRoleMissing Code = "role_missing"
	// ErrNameNotAllowed: the API key does not allow this name.
	ErrNameNotAllowed Code = "name_not_allowed"
	// ErrRateLimited: the rate limit is exceeded; retry after RetryAfter.
	ErrRateLimited Code = "rate_limited"
	// ErrUnavailable: the service cannot run the call now, and the call has changed nothing; retry.
	ErrUnavailable Code = "unavailable"
	// ErrUnknownOutcome: the answer was lost, so the call may or may not have taken effect; retry to find out.
	ErrUnknownOutcome Code = "unknown_outcome"
	// ErrInternal: a fault of the service.
	ErrInternal Code = "internal"
)

// Codes returns every code of the domain.
func Codes() []Code {
	return []Code{
		ErrInvalid, ErrHeld, ErrAlreadyDone, ErrFrozen, ErrLeaseLost, ErrLeaseIDInUse, ErrLeaseInSet, ErrSessionLost, ErrSessionIDInUse, ErrTooManyLeases,
		ErrDeadlock, ErrCapacityMismatch, ErrTreeBusy, ErrTreeOverlaps, ErrTooManyWaiters,
		ErrTokenMismatch, ErrStaleToken, ErrUnknownToken, ErrVersionMismatch, ErrNotFound,
		ErrKeyMissing, ErrKeyInvalid, ErrKeyExpired, ErrRoleMissing, ErrNameNotAllowed, ErrRateLimited, ErrUnavailable,
		ErrUnknownOutcome, ErrInternal,
	}
}

// Error returns the code itself: a Code is an error to compare with.
func (c Code) Error() string { return string(c) }

// An Error is a refusal. The fields that its Code does not mention are zero. errors.Is matches its Code and its
// Cause.
type Error struct {
	Code   Code
	Detail string // for people: what is wrong and what to do next
	Field  string // the invalid field of the request, as a JSON Pointer without the first slash: ttl_ms, locks/3/name

	Holder      string         // the lock's holder; of a closed lock, who has done the work
	RetryAfter  time.Duration  // how long to wait before a retry
	Suspect     bool           // the lock, or one of several, is suspect, and an operator must look at the work
	Ahead       int            // how many attached waiters the lock has
	KeptFor     time.Duration  // how long the place in the queue is kept; zero if it is not
	Capacity    int            // of the permits that are held or waited for
	Token       Token          // the given token, or that of the lost lease
	Newest      Token          // the greatest token granted or seen
	Version     int64          // the current version of the fenced resource
	Ended       Kind           // how the lost lease or session ended; zero if unknown
	EndedAt     time.Time      // when it ended
	DoneAt      time.Time      // when a closed lock was released
	Reason      string         // the operator's reason for a revocation or a freeze
	FrozenBy    string         // the name of the API key that froze the lock; empty in a service without keys
	FrozenUntil time.Time      // when the freeze ends by itself; zero: never
	RevokedBy   string         // the name of the API key that revoked; empty in a service without keys
	GraceLeft   time.Duration  // of the revoked lease or session: how long its locks are still granted to no other client
	Blocked     []BlockedLock  // the locks of a set that cannot be granted now
	Set         []string       // the locks of the lease's set
	Cycle       []DeadlockStep // of a deadlock: the refused call first; each waits for the next one, and the last one for it

	Cause error // for operators; never sent to clients
}

// A BlockedLock is a lock of a set that cannot be granted now.
type BlockedLock struct {
	Name       string
	Holder     string        // of a lease in the way; empty if only waiters are, or grants are paused
	RetryAfter time.Duration // until the first lease ends, unless that is renewed
	Suspect    bool          // that lease is suspect
	Ahead      int           // how many attached waiters the lock has
}

// Error returns the code and the detail, without the cause.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Detail }

// Unwrap returns the code and, if there is one, the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Cause}
}

// Invalid returns an ErrInvalid error for the field. The format continues a sentence that begins with the field's
// name, without a full stop: "is empty; give 1 to 200 characters".
func Invalid(field, format string, args ...any) error {
	return &Error{Code: ErrInvalid, Field: field, Detail: field + " " + fmt.Sprintf(format, args...) + "."}
}

// revocation returns the sentence that says who revoked a lease or a session, and why. It is empty for other ends.
func revocation(how Kind, reason, key string) string {
	if how != Revoked {
		return ""
	}
	who := "An operator"
	if key != "" {
		who += fmt.Sprintf(" (key %s)", key)
	}
	return fmt.Sprintf("%s revoked it: %s. ", who, strings.TrimSuffix(reason, "."))
}
