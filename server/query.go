package server

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// lockQueryIn returns the query of a list of locks.
func lockQueryIn(r *http.Request) (paddock.LockQuery, error) {
	q := queryOf(r)
	return paddock.LockQuery{
		Prefix: q.text("prefix"), Contains: q.filter("contains"), State: lock.State(q.filter("state")),
		Holder: q.filter("holder"), Contended: q.boolean("contended"), Sort: paddock.LockOrder(q.filter("sort")),
		Limit: q.limit(), Cursor: q.text("cursor"),
	}, q.invalid()
}

// eventQueryIn returns the query of a page of events.
func eventQueryIn(r *http.Request) (paddock.EventQuery, error) {
	q := queryOf(r)
	return paddock.EventQuery{
		Names: q.lock(), Prefix: q.text("prefix"), Kinds: q.kinds(), Deadlock: q.boolean("deadlock"), Holder: q.filter("holder"),
		Since: q.instant("since"), Until: q.instant("until"), Descending: q.descending(), Limit: q.limit(),
		Cursor: q.text("cursor"), Wait: wire.DurationOf(q.whole("wait_ms")),
	}, q.invalid()
}

// streamQueryIn returns the query of a stream of events, without a limit. The stream begins after the Last-Event-ID,
// else after the cursor, else now.
func streamQueryIn(r *http.Request) (paddock.EventQuery, error) {
	q := queryOf(r)
	out := paddock.EventQuery{Names: q.lock(), Prefix: q.text("prefix"), Cursor: paddock.CursorNow}
	if q.values.Has("cursor") {
		out.Cursor = q.text("cursor")
	}
	if last := r.Header.Values("Last-Event-ID"); len(last) > 1 {
		q.refuse("Last-Event-ID", "is there %d times; give it once", len(last))
	}
	out.Cursor = cmp.Or(r.Header.Get("Last-Event-ID"), out.Cursor)
	return out, q.invalid()
}

// holdQueryIn returns the query of the holds of a lock.
func holdQueryIn(r *http.Request) (paddock.HoldQuery, error) {
	q := queryOf(r)
	return paddock.HoldQuery{
		Name: nameIn(r), At: q.instant("at"), Until: q.instant("until"), Limit: q.limit(),
	}, q.invalid()
}

// sessionQueryIn returns the query of a list of sessions.
func sessionQueryIn(r *http.Request) (paddock.SessionQuery, error) {
	q := queryOf(r)
	return paddock.SessionQuery{Holder: q.filter("holder"), Limit: q.limit(), Cursor: q.text("cursor")}, q.invalid()
}

// watchIn returns a watch of a lock. The caller sets Seen. The bounds are checked here, because the server does not
// call Watch if the client has seen no version.
func watchIn(r *http.Request) (paddock.Watch, error) {
	q := queryOf(r)
	watch, err := paddock.Watch{Name: nameIn(r), Wait: wire.DurationOf(q.whole("wait_ms"))}.Resolve()
	return watch, cmp.Or(q.invalid(), err)
}

// A query is the query of a request. Each method reads one parameter, which is zero if it is missing or invalid.
type query struct {
	values url.Values
	err    error // the first
}

func queryOf(r *http.Request) *query { return &query{values: r.URL.Query()} }

// invalid returns the first error of the methods that were called.
func (q *query) invalid() error { return q.err }

func (q *query) refuse(name, format string, args ...any) {
	q.err = cmp.Or(q.err, lock.Invalid(name, format, args...))
}

func (q *query) text(name string) string { return q.values.Get(name) }

// filter returns a text that is not empty. An empty filter would select everything, and is probably a mistake, such as
// an unset variable.
func (q *query) filter(name string) string {
	if q.values.Has(name) && q.text(name) == "" {
		q.refuse(name, "is empty; give it a value or leave it out")
	}
	return q.text(name)
}

// lock returns the lock that the query names, if any.
func (q *query) lock() []string {
	if name := q.filter("lock"); name != "" {
		return []string{name}
	}
	return nil
}

func (q *query) whole(name string) int64 {
	n, err := strconv.ParseInt(q.text(name), 10, 64)
	if err != nil && q.values.Has(name) {
		q.refuse(name, "must be a whole number in digits")
	}
	return n
}

func (q *query) limit() int {
	n := q.whole("limit")
	if int64(int(n)) != n || n == 0 && q.values.Has("limit") {
		q.refuse("limit", "is %d; give 1 to %d, or leave it out", n, paddock.MaxLimit)
	}
	return int(n)
}

func (q *query) boolean(name string) bool {
	text := q.text(name)
	if q.values.Has(name) && text != "true" && text != "false" {
		q.refuse(name, "must be true or false")
	}
	return text == "true"
}

func (q *query) instant(name string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, q.text(name))
	if err != nil && q.values.Has(name) {
		q.refuse(name, "must be an instant such as 2026-01-02T03:04:05Z; in a URL, write the + of a time zone as %%2B")
	}
	return at
}

func (q *query) descending() bool {
	order := api.ListEventsParamsOrder(q.text("order"))
	if q.values.Has("order") && !order.Valid() {
		q.refuse("order", "is unknown; give asc for the oldest event first, or desc for the newest")
	}
	return order == api.Desc
}

// unknownKind is no kind. A query with it is refused.
const unknownKind lock.Kind = -1

func (q *query) kinds() []lock.Kind {
	if !q.values.Has("kind") {
		return nil
	}
	return wire.MapSlice(strings.Split(q.text("kind"), ","), func(kind string) lock.Kind {
		return cmp.Or(lock.KindOf(kind), unknownKind)
	})
}
