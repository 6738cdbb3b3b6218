package lock

import (
	"cmp"
	"slices"
	"time"
)

// Bounds of a page.
const (
	// DefaultLimit is the maximum length of a page when the query gives none.
	DefaultLimit = 100
	// MaxLimit is the maximum length of a page.
	MaxLimit = 1000
)

// A LockQuery selects locks. A zero field selects all.
type LockQuery struct {
	Prefix string
	State  State
	Holder string // of an active lease, exactly
	Limit  int    // 1 to MaxLimit; zero: DefaultLimit
	Cursor string // the Next of the page before; empty: the first page
}

// Resolve returns q with its defaults filled in, or an ErrInvalid error that names the invalid field.
func (q LockQuery) Resolve() (LockQuery, error) {
	switch q.State {
	case "", Free, Held, InGrace:
	default:
		return q, Invalid("state", "is invalid; use free, held or grace")
	}
	var err error
	if q.Limit, err = resolveLimit(q.Limit); err != nil {
		return q, err
	}
	return q, cmp.Or(checkPrefix(q.Prefix), checkCharacters("holder", q.Holder, 0, MaxHolderLength))
}

// An EventQuery selects events. A zero field selects all.
type EventQuery struct {
	Name   string
	Prefix string // not together with Name
	Limit  int    // 1 to MaxLimit; zero: DefaultLimit
	// Cursor is where the page begins: after an event's ID or a page's Next; with the next event for CursorNow; with
	// the oldest event if empty.
	Cursor string
	// Wait is how long to wait, up to MaxWait, while the page is empty.
	Wait time.Duration
}

// CursorNow is the cursor of an EventQuery for future events only.
const CursorNow = "now"

// Resolve returns q with its defaults filled in, or an ErrInvalid error that names the invalid field.
func (q EventQuery) Resolve() (EventQuery, error) {
	if q.Name != "" {
		if err := checkName("lock", q.Name); err != nil {
			return q, err
		}
		if q.Prefix != "" {
			return q, Invalid("prefix", "cannot be combined with lock; give one of them")
		}
	}
	var err error
	if q.Limit, err = resolveLimit(q.Limit); err != nil {
		return q, err
	}
	return q, cmp.Or(checkPrefix(q.Prefix), checkDuration("wait_ms", q.Wait, 0, MaxWait))
}

// A Watch returns a lock once its version differs from the one seen.
type Watch struct {
	Name string
	Seen string        // a Lock's Version; empty: return the lock at once
	Wait time.Duration // how long to wait, up to MaxWait
}

// Resolve returns w, or an ErrInvalid error that names the invalid field.
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

// A Page is one page of a list.
type Page[T any] struct {
	Items []T // read-only: pages may share them
	// Next is the cursor of the next page. It is empty at the end of a list of locks, and never empty for events.
	Next string
	// Gap reports whether events may be missing before Items: events after the cursor were pruned, or a fail-over or a
	// restore has lost the event of the cursor.
	Gap bool
}

// Selects reports whether the query selects the lock by its state and its holders. Name and page are not considered.
func (q LockQuery) Selects(l Lock) bool {
	return (q.State == "" || q.State == l.State) &&
		(q.Holder == "" || slices.ContainsFunc(l.Leases, func(i LeaseInfo) bool { return i.Holder == q.Holder }))
}
