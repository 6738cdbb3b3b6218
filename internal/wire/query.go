package wire

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/api"

	"github.com/paddock-lock/paddock/lock"
)

// ToLocksQuery returns the query of a list of locks.
func ToLocksQuery(p api.ListLocksParams) (lock.LockQuery, error) {
	return lock.LockQuery{
			Prefix: ValueOf(p.Prefix), Contains: ValueOf(p.Contains), State: lock.State(ValueOf(p.State)), Holder: ValueOf(p.Holder),
			Contended: ValueOf(p.Contended), Sort: lock.LockOrder(ValueOf(p.Sort)), Limit: ValueOf(p.Limit), Cursor: ValueOf(p.Cursor),
		}, cmp.Or(checkNotEmpty("contains", p.Contains), checkNotEmpty("state", p.State), checkNotEmpty("holder", p.Holder),
			checkNotEmpty("sort", p.Sort), checkLimit(p.Limit))
}

// ToEventsQuery returns the query of a page of events.
func ToEventsQuery(p api.ListEventsParams) (lock.EventQuery, error) {
	kinds := MapSlice(ValueOf(p.Kind), func(k api.EventKind) lock.Kind { return cmp.Or(lock.KindOf(string(k)), unknownKind) })
	return lock.EventQuery{
		Name: ValueOf(p.Lock), Prefix: ValueOf(p.Prefix), Kinds: kinds, Holder: ValueOf(p.Holder), Since: ValueOf(p.Since),
		Until: ValueOf(p.Until), Descending: ValueOf(p.Order) == api.Desc, Limit: ValueOf(p.Limit),
		Cursor: ValueOf(p.Cursor), Wait: DurationOf(ValueOf(p.WaitMs)),
	}, cmp.Or(checkNotEmpty("lock", p.Lock), checkNotEmpty("holder", p.Holder), checkOrder(p.Order), checkLimit(p.Limit))
}

// ToHoldsQuery returns the query of the holds of the lock with this name.
func ToHoldsQuery(p api.ListHoldsParams, name string) (lock.HoldQuery, error) {
	return lock.HoldQuery{
		Name: name, At: ValueOf(p.At), Until: ValueOf(p.Until), Limit: ValueOf(p.Limit),
	}, checkLimit(p.Limit)
}

// ToSessionsQuery returns the query of a list of sessions.
func ToSessionsQuery(p api.ListSessionsParams) (lock.SessionQuery, error) {
	return lock.SessionQuery{Holder: ValueOf(p.Holder), Limit: ValueOf(p.Limit), Cursor: ValueOf(p.Cursor)},
		cmp.Or(checkNotEmpty("holder", p.Holder), checkLimit(p.Limit))
}

// unknownKind is no kind. A query with it is refused.
const unknownKind lock.Kind = -1

// ToStreamEventsQuery returns the query of a stream of events, without a limit. The stream begins after the
// Last-Event-ID, else after the cursor, else now.
func ToStreamEventsQuery(p api.StreamEventsParams) (lock.EventQuery, error) {
	q := lock.EventQuery{Name: ValueOf(p.Lock), Prefix: ValueOf(p.Prefix), Cursor: lock.CursorNow}
	if p.Cursor != nil {
		q.Cursor = *p.Cursor
	}
	q.Cursor = cmp.Or(ValueOf(p.LastEventID), q.Cursor)
	return q, checkNotEmpty("lock", p.Lock)
}

// ToLockQuery returns a watch of the lock with this name. The caller sets Seen. Domain checks the bounds, because the
// server does not call Watch if the client has seen no version.
func ToLockQuery(p api.GetLockParams, name string) (lock.Watch, error) {
	return lock.Watch{Name: name, Wait: DurationOf(ValueOf(p.WaitMs))}.Resolve()
}

// checkNotEmpty refuses an empty filter. It would select everything, and is probably a mistake, such as an unset
// variable.
func checkNotEmpty[T ~string](name string, text *T) error {
	if text != nil && *text == "" {
		return lock.Invalid(name, "is empty; give it a value or leave it out")
	}
	return nil
}

func checkOrder(order *api.ListEventsParamsOrder) error {
	if order != nil && *order != api.Asc && *order != api.Desc {
		return lock.Invalid("order", "is unknown; give asc for the oldest event first, or desc for the newest")
	}
	return nil
}

func checkLimit(n *int) error {
	if n != nil && *n == 0 {
		return lock.Invalid("limit", "is 0; give 1 to %d, or leave it out", lock.MaxLimit)
	}
	return nil
}

// LockQueryString returns the query of a URL that lists locks: empty, or with the leading question mark.
func LockQueryString(q lock.LockQuery) string {
	contended := ""
	if q.Contended {
		contended = "true"
	}
	return queryString("prefix", q.Prefix, "contains", q.Contains, "state", string(q.State), "holder", q.Holder,
		"contended", contended, "sort", string(q.Sort), "limit", digits(int64(q.Limit)), "cursor", q.Cursor)
}

// EventQueryString returns the query of a URL that pages through events.
func EventQueryString(q lock.EventQuery) string {
	order := ""
	if q.Descending {
		order = string(api.Desc)
	}
	return queryString("lock", q.Name, "prefix", q.Prefix, "kind", strings.Join(MapSlice(q.Kinds, lock.Kind.String), ","),
		"holder", q.Holder, "since", instant(q.Since), "until", instant(q.Until), "order", order,
		"limit", digits(int64(q.Limit)), "cursor", q.Cursor, "wait_ms", digits(Milliseconds(q.Wait)))
}

// instant returns an instant in the form of the API, or nothing for the zero one.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// HoldQueryString returns the query of a URL that lists the holds of a lock.
func HoldQueryString(q lock.HoldQuery) string {
	return queryString("at", instant(q.At), "until", instant(q.Until), "limit", digits(int64(q.Limit)))
}

// SessionQueryString returns the query of a URL that lists sessions.
func SessionQueryString(q lock.SessionQuery) string {
	return queryString("holder", q.Holder, "limit", digits(int64(q.Limit)), "cursor", q.Cursor)
}

// WatchQueryString returns the query of a URL that watches a lock.
func WatchQueryString(w lock.Watch) string {
	return queryString("wait_ms", digits(Milliseconds(w.Wait)))
}

// digits returns a number, or nothing for zero.
func digits(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// queryString returns a query of pairs of a name and a value. It omits empty values.
func queryString(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		b.WriteByte("?&"[min(b.Len(), 1)])
		b.WriteString(pairs[i] + "=" + url.QueryEscape(pairs[i+1]))
	}
	return b.String()
}
