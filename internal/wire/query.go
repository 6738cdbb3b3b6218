package wire

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// LockQueryString returns the query of a URL that lists locks: empty, or with the leading question mark.
func LockQueryString(q paddock.LockQuery) string {
	contended := ""
	if q.Contended {
		contended = "true"
	}
	return queryString("prefix", q.Prefix, "contains", q.Contains, "state", string(q.State), "holder", q.Holder,
		"contended", contended, "sort", string(q.Sort), "limit", digits(int64(q.Limit)), "cursor", q.Cursor)
}

// EventQueryString returns the query of a URL that pages through events. It has one of the Names at most, and no
// Sessions.
func EventQueryString(q paddock.EventQuery) string {
	order, name, deadlock := "", "", ""
	if q.Deadlock {
		deadlock = "true"
	}
	if len(q.Names) > 0 {
		name = q.Names[0]
	}
	if q.Descending {
		order = string(api.Desc)
	}
	return queryString("lock", name, "prefix", q.Prefix, "kind", strings.Join(MapSlice(q.Kinds, lock.Kind.String), ","),
		"deadlock", deadlock, "holder", q.Holder, "since", instant(q.Since), "until", instant(q.Until), "order", order,
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
func HoldQueryString(q paddock.HoldQuery) string {
	return queryString("at", instant(q.At), "until", instant(q.Until), "limit", digits(int64(q.Limit)))
}

// SessionQueryString returns the query of a URL that lists sessions.
func SessionQueryString(q paddock.SessionQuery) string {
	return queryString("holder", q.Holder, "limit", digits(int64(q.Limit)), "cursor", q.Cursor)
}

// WatchQueryString returns the query of a URL that watches a lock.
func WatchQueryString(w paddock.Watch) string {
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
