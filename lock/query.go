package lock

import (
	"cmp"
	"time"
)

// Bounds of a page.
const (
	// DefaultLimit is the length of a page when none is asked for.
	DefaultLimit = 100
	// MaxLimit is the greatest length of a page.
	MaxLimit = 1000
)

// A LockQuery selects locks. Zero fields select all.
type LockQuery struct {
	Prefix string
	State  State
	Holder string // exactly this one
	Limit  int    // zero: UsualLimit
	Cursor string // a Page's Next
}

// Resolve returns q with its defaults filled in, or an ErrInvalid error that
// names the field that breaks a bound.
func (q LockQuery) Resolve() (LockQuery, error) {
	switch q.State {
	case "", Free, Held, InGrace:
	default:
		return q, Invalid("state", "is none that a lock can be in; use free, held or grace")
	}
	var err error
	if q.Limit, err = resolveLimit(q.Limit); err != nil {
		return q, err
	}
	return q, cmp.Or(checkPrefix(q.Prefix), checkCharacters("holder", q.Holder, 0, MaxHolderLength))
}

// An EventQuery selects events. Zero fields select all.
type EventQuery struct {
	Name   string
	Prefix string
	Limit  int    // zero: UsualLimit
	Cursor string // the ID of an event, or a Page's Next: the page begins after it; or CursorNow
	// Wait is for how long to wait while there is nothing to tell.
	Wait time.Duration
}

// CursorNow is the cursor of an EventQuery after all that has happened.
const CursorNow = "now"

// Resolve returns q with its defaults filled in, or an ErrInvalid error that
// names the field that breaks a bound.
func (q EventQuery) Resolve() (EventQuery, error) {
	if q.Name != "" {
		if err := checkName("lock", q.Name); err != nil {
			return q, err
		}
		if q.Prefix != "" {
			return q, Invalid("prefix", "cannot go with lock; give one of them")
		}
	}
	var err error
	if q.Limit, err = resolveLimit(q.Limit); err != nil {
		return q, err
	}
	return q, cmp.Or(checkPrefix(q.Prefix), checkDuration("wait_ms", q.Wait, 0, MaxWait))
}

// A Watch asks for a lock once it is not what was seen any more.
type Watch struct {
	Name string
	Seen string        // a Lock's Version; empty: the lock as it is
	Wait time.Duration // for how long to wait for that
}

// Resolve returns w, or an ErrInvalid error that names the field that breaks a bound.
func (w Watch) Resolve() (Watch, error) {
	return w, cmp.Or(CheckName(w.Name), checkDuration("wait_ms", w.Wait, 0, MaxWait))
}

func resolveLimit(n int) (int, error) {
	if n == 0 {
		n = DefaultLimit
	}
	if n < 1 || n > MaxLimit {
		return n, Invalid("limit", "is %d; give 1 to %d", n, MaxLimit)
	}
	return n, nil
}

func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return checkName("prefix", prefix)
}

// A Page is one stretch of a list.
type Page[T any] struct {
	Items []T // may be shared with other pages: nobody may change them
	// Next is the cursor of what follows. It is empty at the end of a list of
	// locks; of events there is always one, since more may come.
	Next string
	// Gap reports whether events are missing between the cursor and Items, since they are no longer kept; or whether
	// the cursor is that of an event which a fail-over or a restore has lost.
	Gap bool
}
