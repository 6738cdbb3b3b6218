package lock

import (
	"fmt"
	"time"
)

// A Code says what went wrong in one word. Codes are stable: callers branch on
// them, with errors.Is on either side of the wire.
type Code string

// The codes of the domain.
const (
	// ErrInvalid: the request breaks a bound; Field says where.
	ErrInvalid Code = "invalid_request"
	// ErrHeld: somebody else has the lock. Holder and RetryAfter say who, and
	// when the lease ends unless it is renewed.
	ErrHeld Code = "lock_held"
	// ErrLeaseLost: the lease has ended; stop the work. Ended says how.
	ErrLeaseLost Code = "lease_lost"
	// ErrLeaseIDInUse: the lease_id belongs to another holder's or mode's lease.
	ErrLeaseIDInUse Code = "lease_id_in_use"
	// ErrCapacityMismatch: permits of another capacity are out, or waited for.
	// Capacity says which.
	ErrCapacityMismatch Code = "capacity_mismatch"
	// ErrTooManyWaiters: as many wait, or watch, as may; try again later.
	ErrTooManyWaiters Code = "too_many_waiters"
	// ErrTokenMismatch: the token named is not the one that holds the lock.
	ErrTokenMismatch Code = "token_mismatch"
	// ErrStaleToken: a greater token has been granted or seen.
	ErrStaleToken Code = "stale_token"
	// ErrUnknownToken: the token was never granted for this lock.
	ErrUnknownToken Code = "unknown_token"
	// ErrVersionMismatch: the fenced resource is at another version.
	ErrVersionMismatch Code = "version_mismatch"
	// ErrNotFound: nothing was ever written under this key.
	ErrNotFound Code = "not_found"
	// ErrKeyMissing: the service asks for an API key, and none was shown.
	ErrKeyMissing Code = "key_missing"
	// ErrKeyInvalid: the API key shown is none that the service knows; it may have
	// been revoked.
	ErrKeyInvalid Code = "key_invalid"
	// ErrKeyExpired: the API key was good until a while ago.
	ErrKeyExpired Code = "key_expired"
	// ErrRoleMissing: the API key's role does not allow this.
	ErrRoleMissing Code = "role_missing"
	// ErrNameNotAllowed: the API key is for names under other prefixes.
	ErrNameNotAllowed Code = "name_not_allowed"
	// ErrRateLimited: more calls than allowed; RetryAfter says when to go on.
	ErrRateLimited Code = "rate_limited"
	// ErrUnavailable: not now, and nothing was changed; try again.
	ErrUnavailable Code = "unavailable"
	// ErrUnknownOutcome: the answer was lost on the way; it may or may not have
	// been done. The same call again finds out.
	ErrUnknownOutcome Code = "unknown_outcome"
	// ErrInternal: a fault of the service.
	ErrInternal Code = "internal"
)

// Codes returns every code of the domain.
func Codes() []Code {
	return []Code{
		ErrInvalid, ErrHeld, ErrLeaseLost, ErrLeaseIDInUse, ErrCapacityMismatch, ErrTooManyWaiters,
		ErrTokenMismatch, ErrStaleToken, ErrUnknownToken, ErrVersionMismatch, ErrNotFound,
		ErrKeyMissing, ErrKeyInvalid, ErrKeyExpired, ErrRoleMissing, ErrNameNotAllowed, ErrRateLimited, ErrUnavailable, ErrUnknownOutcome, ErrInternal,
	}
}

// Error returns the code itself, so that a Code is an error to compare with.
func (c Code) Error() string { return string(c) }

// An Error is a refusal with the facts that its Code promises; the other fields
// are zero. errors.Is finds both its Code and its Cause.
type Error struct {
	Code   Code
	Detail string // for people: what happened and what to do next
	Field  string // the request's field at fault, if one is

	Holder     string        // who has the lock
	RetryAfter time.Duration // when to try again, at the earliest
	Ahead      int           // how many wait for the lock and would be served first
	KeptFor    time.Duration // for how long the place in the queue is kept; zero if it is not
	Capacity   int           // of the permits that are out or waited for
	Token      Token         // the token that was shown, or that the lost lease had
	Newest     Token         // the greatest token granted or seen
	Version    int64         // the version that the fenced resource has
	Ended      Kind          // how the lost lease ended; zero when that is not known
	EndedAt    time.Time     // when it did
	Reason     string        // why, if an operator revoked it

	Cause error // for operators, never for callers
}

// Error returns the code and the detail. The cause is left out on purpose.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Detail }

// Unwrap returns the code, and the cause if there is one.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Cause}
}

// Invalid returns an ErrInvalid error: what is wrong with the field, said so that
// the sentence goes on from the field's name, without a full stop.
func Invalid(field, format string, args ...any) error {
	return &Error{Code: ErrInvalid, Field: field, Detail: field + " " + fmt.Sprintf(format, args...) + "."}
}
