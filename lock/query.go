package lock

import "cmp"

// Bounds of a page.
const (
	// UsualLimit is the length of a page when none is asked for.
	UsualLimit = 100
	// MaxLimit is the greatest length of a page.
	MaxLimit = 1000
)

// A LockQuery selects locks. Zero fields select all.
type LockQuery struct {
	Prefix string
	Phase  Phase
	Holder string // exactly this one
	Limit  int    // zero: UsualLimit
	Cursor string // a Page's Next
}

// Resolve returns q with its defaults filled in, or an ErrInvalid error that
// names the field that breaks a bound.
func (q LockQuery) Resolve() (LockQuery, error) {
	switch q.Phase {
	case "", Free, Held, InGrace:
	default:
		return q, Invalid("state", "is none that a lock can be in; use free, held or grace")
	}
	var err error
	if q.Limit, err = resolveLimit(q.Limit); err != nil {
		return q, err
	}
	return q, cmp.Or(checkPrefix(q.Prefix), checkText("holder", q.Holder, 0, MaxHolderLength))
}

// An EventQuery selects events. Zero fields select all.
type EventQuery struct {
	Name   string
	Prefix string
	Limit  int    // zero: UsualLimit
	Cursor string // a Page's Next; the page begins after it
}

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
	return q, checkPrefix(q.Prefix)
}

func resolveLimit(n int) (int, error) {
	if n == 0 {
		n = UsualLimit
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
	Items []T
	// Next is the cursor of what follows. It is empty at the end of a list of
	// locks; of events there is always one, since more may come.
	Next string
}
