package paddock

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// Bounds of a page.
const (
	// DefaultLimit is the maximum length of a page when the query gives none.
	DefaultLimit = 100
	// MaxLimit is the maximum length of a page.
	MaxLimit = 1000
)

// Bounds of an EventQuery.
const (
	// MaxEventNames is the maximum number of its Names.
	MaxEventNames = 5000
	// MaxEventSessions is the maximum number of its Sessions.
	MaxEventSessions = 1000
)

// A LockQuery selects locks. A zero field selects all.
type LockQuery struct {
	Prefix    string
	Contains  string // a part of the name
	State     lock.State
	Holder    string // of an active lease, exactly
	Contended bool   // only locks with waiters
	// Sort is the order of the list. A list that is not sorted by name has one page, with at most Limit locks. It
	// leaves out free locks without waiters.
	Sort   LockOrder
	Limit  int    // 1 to MaxLimit; zero: DefaultLimit
	Cursor string // the Next of the page before; empty: the first page
}

// A LockOrder is an order of a list of locks.
type LockOrder string

// The orders of a list of locks. Locks that are equal in it are in the order of their names.
const (
	ByName    LockOrder = ""
	ByWaiters LockOrder = "waiters" // the most waiters first
	ByAge     LockOrder = "age"     // the lease that is held longest first
	ByEnding  LockOrder = "ending"  // the lease that expires soonest first
)

// LockOrders returns all orders but ByName.
func LockOrders() []LockOrder { return []LockOrder{ByWaiters, ByAge, ByEnding} }

// Resolve returns q with its defaults filled in, or an ErrInvalid error that names the invalid field.
func (q LockQuery) Resolve() (LockQuery, error) {
	switch q.State {
	case "", lock.Free, lock.Held, lock.InGrace, lock.Suspect:
	default:
		return q, lock.Invalid("state", "is invalid; use free, held, grace or suspect")
	}
	switch {
	case q.Sort != ByName && !slices.Contains(LockOrders(), q.Sort):
		return q, lock.Invalid("sort", "is invalid; use waiters, age or ending, or leave it out for the order of names")
	case q.Sort != ByName && q.Cursor != "":
		return q, lock.Invalid("cursor", "cannot be combined with sort: a sorted list has one page; leave it out")
	}
	var err error
	if q.Limit, err = resolveLimit(q.Limit); err != nil {
		return q, err
	}
	return q, cmp.Or(lock.CheckPrefix(q.Prefix), lock.CheckCharacters("contains", q.Contains, 0, lock.MaxNameLength), lock.CheckCharacters("holder", q.Holder, 0, lock.MaxHolderLength))
}

// After returns the lock after which the page begins, empty for the first page, or an ErrInvalid error.
func (q LockQuery) After() (string, error) {
	after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || q.Cursor != "" && lock.CheckName(string(after)) != nil {
		return "", lock.Invalid("cursor", "is invalid; pass next_cursor unchanged, or omit it to start over")
	}
	return string(after), nil
}

// LockCursor returns the cursor of the page that begins after the lock.
func LockCursor(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

// An EventQuery selects events. A zero field selects all, but with Sessions only those of the Names.
//
// With several Names, or with Sessions, it is for a caller that follows what it holds, and not for lists: it excludes
// Prefix, Holder, Since, Until and Descending, its Limit is MaxLimit, and a page whose cursor is far behind has a Gap
// and no events.
type EventQuery struct {
	Names  []string // up to MaxEventNames different ones; not together with Prefix
	Prefix string
	// Sessions are up to MaxEventSessions different sessions. A page has those of them that have ended, whenever that
	// was, and no call waits once one has.
	Sessions []lock.SessionRef
	Kinds    []lock.Kind
	Deadlock bool      // only waiters that left a queue to break a deadlock, see lock.Event.IsDeadlock
	Holder   string    // of the lease or waiter, exactly
	Since    time.Time // events at this instant or later
	Until    time.Time // earlier events, which must be after Since
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

// Resolve returns q with its defaults filled in and its lists sorted, or an ErrInvalid error that names the invalid
// field.
func (q EventQuery) Resolve() (EventQuery, error) {
	if q.FollowsSeveral() {
		if err := q.checkSeveral(); err != nil {
			return q, err
		}
		q.Limit = MaxLimit
	} else if len(q.Names) == 1 {
		if err := lock.CheckNameOf("lock", q.Names[0]); err != nil {
			return q, err
		}
	}
	if len(q.Names) > 0 && q.Prefix != "" {
		return q, lock.Invalid("prefix", "cannot be combined with lock; give one of them")
	}
	var err error
	if q.Names, err = distinct("locks", q.Names, MaxEventNames); err != nil {
		return q, err
	}
	if q.Sessions, err = distinct("sessions", q.Sessions, MaxEventSessions); err != nil {
		return q, err
	}
	if q.Limit, err = resolveLimit(q.Limit); err != nil {
		return q, err
	}
	return q, cmp.Or(lock.CheckPrefix(q.Prefix), checkKinds(q.Kinds), lock.CheckCharacters("holder", q.Holder, 0, lock.MaxHolderLength),
		q.checkRange(), lock.CheckDuration("wait_ms", q.Wait, 0, lock.MaxWait))
}

// FollowsSeveral reports whether the query has several Names, or Sessions.
func (q *EventQuery) FollowsSeveral() bool { return len(q.Names) > 1 || len(q.Sessions) > 0 }

// checkSeveral returns an error if the query has a field that it must not have with several Names or with Sessions.
func (q *EventQuery) checkSeveral() error {
	for i, name := range q.Names {
		if lock.CheckName(name) != nil {
			return lock.CheckNameOf(fmt.Sprintf("locks/%d", i), name)
		}
	}
	for _, excluded := range []struct {
		field string
		given bool
	}{
		{"prefix", q.Prefix != ""}, {"holder", q.Holder != ""}, {"since", !q.Since.IsZero()}, {"until", !q.Until.IsZero()},
		{"deadlock", q.Deadlock},
		{"order", q.Descending}, {"limit", q.Limit != 0 && q.Limit != MaxLimit},
	} {
		if excluded.given {
			return lock.Invalid(excluded.field, "cannot be combined with several locks or with sessions; leave it out")
		}
	}
	return nil
}

// distinct returns the items in order, or an ErrInvalid error if there are more than limit, or if one is there twice.
func distinct[T cmp.Ordered](field string, items []T, limit int) ([]T, error) {
	if len(items) > limit {
		return items, lock.Invalid(field, "has %d items; give at most %d", len(items), limit)
	}
	if len(items) < 2 {
		return items, nil
	}
	sorted := slices.Sorted(slices.Values(items))
	for i, item := range sorted[1:] {
		if item == sorted[i] {
			again := len(items) - 1
			for items[again] != item {
				again--
			}
			return items, lock.Invalid(fmt.Sprintf("%s/%d", field, again), "is given twice; name each once")
		}
	}
	return sorted, nil
}

// checkRange returns an error if no event can be in the range, or if it is no range of future events and the query
// waits for them.
func (q EventQuery) checkRange() error {
	switch {
	case !q.Until.IsZero() && !q.Since.IsZero() && !q.Until.After(q.Since):
		return lock.Invalid("until", "is not after since; give a later instant, or leave one of them out")
	case q.Wait > 0 && !q.Until.IsZero():
		return lock.Invalid("wait_ms", "cannot be combined with until; leave one of them out")
	case q.Wait > 0 && q.Descending:
		return lock.Invalid("wait_ms", "cannot be combined with the order desc; leave one of them out")
	case q.Descending && q.Cursor == CursorNow:
		return lock.Invalid("cursor", "is now, after which there is nothing in the order desc; leave it out to begin with the newest event")
	}
	return nil
}

func checkKinds(kinds []lock.Kind) error {
	for _, k := range kinds {
		if lock.KindOf(k.String()) != k {
			return lock.Invalid("kind", "is unknown; give %s, or several with commas between them", lock.KindNames())
		}
	}
	return nil
}

// Selects reports whether the query, as Resolve returned it, selects the event. Order, cursor and limit are not
// considered.
func (q *EventQuery) Selects(e *lock.Event) bool {
	return q.selectsName(e.Name) && strings.HasPrefix(e.Name, q.Prefix) &&
		(len(q.Kinds) == 0 || slices.Contains(q.Kinds, e.Kind)) && (!q.Deadlock || e.IsDeadlock()) && (q.Holder == "" || e.Holder == q.Holder) &&
		(q.Since.IsZero() || !e.At.Before(q.Since)) && (q.Until.IsZero() || e.At.Before(q.Until))
}

func (q *EventQuery) selectsName(name string) bool {
	if len(q.Names) == 0 {
		return len(q.Sessions) == 0
	}
	_, found := slices.BinarySearch(q.Names, name)
	return found
}

// A SessionQuery selects sessions that have not ended. A zero field selects all.
type SessionQuery struct {
	Holder string // exactly
	Limit  int    // 1 to MaxLimit; zero: DefaultLimit
	Cursor string // the Next of the page before; empty: the first page
}

// Resolve returns q with its defaults filled in, or an ErrInvalid error that names the invalid field.
func (q SessionQuery) Resolve() (SessionQuery, error) {
	var err error
	if q.Limit, err = resolveLimit(q.Limit); err != nil {
		return q, err
	}
	if q.Holder == "" {
		return q, nil
	}
	return q, lock.CheckCharacters("holder", q.Holder, 1, lock.MaxHolderLength)
}

// After returns the session after which the page begins, or an ErrInvalid error.
func (q SessionQuery) After() (lock.SessionRef, error) {
	if q.Cursor == "" {
		return 0, nil
	}
	after, err := lock.ParseSessionRef("cursor", q.Cursor)
	if err != nil {
		return 0, lock.Invalid("cursor", "is invalid; pass next_cursor unchanged, or omit it to start over")
	}
	return after, nil
}

// A Watch returns a lock once its version differs from the one seen.
type Watch struct {
	Name string
	Seen string        // a Lock's Version; empty: return the lock at once
	Wait time.Duration // how long to wait, up to MaxWait
}

// Resolve returns w, or an ErrInvalid error that names the invalid field.
func (w Watch) Resolve() (Watch, error) {
	return w, cmp.Or(lock.CheckName(w.Name), lock.CheckDuration("wait_ms", w.Wait, 0, lock.MaxWait))
}

func resolveLimit(n int) (int, error) {
	if n == 0 {
		n = DefaultLimit
	}
	if n < 1 || n > MaxLimit {
		return n, lock.Invalid("limit", "is %d; give 1 to %d", n, MaxLimit)
	}
	return n, nil
}

// A Page is one page of a list.
type Page[T any] struct {
	Items []T // read-only: pages may share them
	// Next is the cursor of the next page. It is empty at the end of the list. A list of events ends only if it is
	// Descending or its Until has passed.
	Next string
	// Gap reports whether events may be missing before Items: events after the cursor were pruned; or a fail-over or a
	// restore has lost the event of the cursor; or, in a stream, the service had no time to send them; or they are
	// too many, see EventQuery. In a list with a
	// Since or Descending, it reports that events of the range were pruned, on the page next to them.
	Gap bool
	// SearchedTo is set if a page of events has fewer than its limit, although there may be more: the search has read as
	// much as one page may, and has come to this instant, up to a minute. Next goes on there.
	SearchedTo time.Time
	// EndedSessions are those of an EventQuery's Sessions that have ended.
	EndedSessions []lock.SessionRef
	// Unreadable are rows of the database that belong here and cannot be read, by a change by hand mostly.
	Unreadable []Unreadable
}

// An Unreadable is a row of the database that cannot be read. It costs no other row.
type Unreadable struct {
	Name   string // of the lock, or the id of the session; empty: unknown
	Detail string // names the table and the key of the row, what is wrong, and what to do
}

// Selects reports whether the query selects the lock. The page is not considered. A prefix that was frozen has events,
// as a lock has, and is not selected unless a client has used it as a lock.
func (q LockQuery) Selects(l lock.Lock) bool {
	if lock.Scope(l.Name).IsPrefix() && l.Token == 0 && l.Waiters+l.WaitersBelow == 0 {
		return false
	}
	return strings.HasPrefix(l.Name, q.Prefix) && strings.Contains(l.Name, q.Contains) && (q.State == "" || q.State == l.State) &&
		(!q.Contended || l.Waiters > 0) && (q.Sort == ByName || l.State != lock.Free || l.Waiters > 0) &&
		(q.Holder == "" || slices.ContainsFunc(l.Leases, func(i lock.LeaseInfo) bool { return i.Holder == q.Holder }))
}

// Top sorts the locks and returns the first ones, as many as the query's Limit.
func (q LockQuery) Top(locks []lock.Lock) []lock.Lock {
	slices.SortFunc(locks, func(a, b lock.Lock) int { return cmp.Or(q.Sort.compare(a, b), strings.Compare(a.Name, b.Name)) })
	return locks[:min(len(locks), q.Limit)]
}

// compare returns a negative number if a is before b, zero if they are equal.
func (o LockOrder) compare(a, b lock.Lock) int {
	switch o {
	case ByWaiters:
		return cmp.Compare(b.Waiters, a.Waiters)
	case ByAge:
		return compareFirst(a, b, func(l lock.LeaseInfo) time.Time { return l.AcquiredAt })
	case ByEnding:
		return compareFirst(a, b, func(l lock.LeaseInfo) time.Time { return l.ExpiresAt })
	}
	return 0
}

// compareFirst compares the earliest instants of the leases. A lock without leases is last.
func compareFirst(a, b lock.Lock, of func(lock.LeaseInfo) time.Time) int {
	first := func(l lock.Lock) (t time.Time) {
		for _, i := range l.Leases {
			if t.IsZero() || of(i).Before(t) {
				t = of(i)
			}
		}
		return t
	}
	switch x, y := first(a), first(b); {
	case x.IsZero() == y.IsZero():
		return x.Compare(y)
	case x.IsZero():
		return 1
	}
	return -1
}
