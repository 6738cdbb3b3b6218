package lock

import (
	"cmp"
	"time"
)

const (
	// MaxFreeze is the longest time that a Freeze can be requested for. One without an end lasts until it is ended.
	MaxFreeze = 31 * 24 * time.Hour
	// MaxFreezes is the maximum number of freezes.
	MaxFreezes = 1000
)

// A FreezeRequest asks for a [Freeze] of the locks of its scope. A freeze of the same scope is replaced.
type FreezeRequest struct {
	Scope  Scope
	Reason string        // for people: 1 to MaxReasonLength characters
	For    time.Duration // from now on, up to MaxFreeze; zero: until it is ended
	By     string        // the name of the API key of the caller, which package access sets; no request has it
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r FreezeRequest) Resolve() (FreezeRequest, error) {
	return r, cmp.Or(
		CheckScope(r.Scope),
		checkText("reason", r.Reason, 1, MaxReasonLength),
		CheckDuration("for_ms", r.For, 0, MaxFreeze),
	)
}

// A ThawRequest asks for the end of a [Freeze].
type ThawRequest struct {
	Scope Scope
	By    string // as in a FreezeRequest
}

// A Freeze stops new grants of the locks of its scope, for maintenance: leases can be renewed and released, and waiters
// keep their places until the end of the freeze. In a tree, it stops the grants that would cover one of the locks, too.
type Freeze struct {
	Scope    Scope
	Reason   string
	By       string    // the name of the API key that began it; empty in a service without keys
	FrozenAt time.Time // on the database's clock
	Until    time.Time // when it ends by itself; zero: never
}

// isOver reports whether the freeze has ended by itself at now.
func (f *Freeze) isOver(now time.Time) bool { return !f.Until.IsZero() && !now.Before(f.Until) }

// A FreezeStatus is a freeze, and what it still waits for.
type FreezeStatus struct {
	Freeze
	// Leases is how many leases of locks of the scope are left, those in grace included; in a tree also those of locks
	// above. None is added while the freeze lasts. So at zero the work that the locks guard has stopped.
	Leases int
	AsOf   time.Time // on the database's clock
}
