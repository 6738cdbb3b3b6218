package lock

import (
	"cmp"
	"slices"
	"strings"
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
	Kinds  []Kind
	Holder string    // of the lease or waiter, exactly
	Since  time.Time // events at this instant or later
	Until  time.Time // earlier events, which must be after Since
	// Descending lists the newest event first.
	Descending bool
	Limit      int // 1 to MaxLimit; zero: DefaultLimit
	// Cursor is where the page begins: after an event's ID or a page's Next, in the order of the list; with the next
	// event for CursorNow; with the first event if empty.
	Cursor string
	// Wait is how long to wait, up to MaxWait, while the page is empty. It excludes Until and Descending.
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
	return q, cmp.Or(checkPrefix(q.Prefix), checkKinds(q.Kinds), checkCharacters("holder", q.Holder, 0, MaxHolderLength),
		q.checkRange(), checkDuration("wait_ms", q.Wait, 0, MaxWait))
}

// checkRange returns an error if no event can be in the range, or if it is no range of future events and the query
// waits for them.
func (q EventQuery) checkRange() error {
	switch {
	case !q.Until.IsZero() && !q.Since.IsZero() && !q.Until.After(q.Since):
		return Invalid("until", "is not after since; give a later instant, or leave one of them out")
	case q.Wait > 0 && !q.Until.IsZero():
		return Invalid("wait_ms", "cannot be combined with until; leave one of them out")
	case q.Wait > 0 && q.Descending:
		return Invalid("wait_ms", "cannot be combined with the order desc; leave one of them out")
	case q.Descending && q.Cursor == CursorNow:
		return Invalid("cursor", "is now, after which there is nothing in the order desc; leave it out to begin with the newest event")
	}
	return nil
}

func checkKinds(kinds []Kind) error {
	for _, k := range kinds {
		if KindOf(k.String()) != k {
			return Invalid("kind", "is unknown; give %s, or several with commas between them", KindNames())
		}
	}
	return nil
}

// Selects reports whether the query selects the event. Order, cursor and limit are not considered.
func (q *EventQuery) Selects(e *Event) bool {
	return (q.Name == "" || e.Name == q.Name) && strings.HasPrefix(e.Name, q.Prefix) &&
		(len(q.Kinds) == 0 || slices.Contains(q.Kinds, e.Kind)) && (q.Holder == "" || e.Holder == q.Holder) &&
		(q.Since.IsZero() || !e.At.Before(q.Since)) && (q.Until.IsZero() || e.At.Before(q.Until))
}

// SelectsAll reports whether the query selects each event.
func (q *EventQuery) SelectsAll() bool {
	return q.Name == "" && q.Prefix == "" && len(q.Kinds) == 0 && q.Holder == "" && q.Since.IsZero() && q.Until.IsZero()
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
	// Next is the cursor of the next page. It is empty at the end of the list. A list of events ends only if it is Descending
	// or its Until has passed.
	Next string
	// Gap reports whether events may be missing before Items: events after the cursor were pruned, or a fail-over or a
	// restore has lost the event of the cursor. In a list with a Since or Descending, it reports that events of the
	// range were pruned, on the page next to them.
	Gap bool
}

// Selects reports whether the query selects the lock by its state and its holders. Name and page are not considered.
func (q LockQuery) Selects(l Lock) bool {
	return (q.State == "" || q.State == l.State) &&
		(q.Holder == "" || slices.ContainsFunc(l.Leases, func(i LeaseInfo) bool { return i.Holder == q.Holder }))
}
