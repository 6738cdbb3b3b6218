package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/when"
	"github.com/paddock-lock/paddock/lock"
)

// eventsRoot is the path of the events over all locks.
const eventsRoot = "/ui/events"

// deadlocks is a choice for the kind: waiters that were removed from a queue to break a deadlock.
const deadlocks = "deadlock"

// eventFields are the fields of the form that selects events, as typed.
type eventFields struct {
	Kind, Prefix, Holder string
	Since, Until, Around string
	Cursor               string
	Trail                []string
}

func eventFieldsFrom(v url.Values) eventFields {
	text := func(name string) string { return strings.TrimSpace(v.Get(name)) }
	return eventFields{
		Kind: text("kind"), Prefix: text("prefix"), Holder: v.Get("holder"), Since: text("since"), Until: text("until"), Around: text("around"),
		Cursor: v.Get("cursor"), Trail: lastOf(v["trail"]),
	}
}

func (f eventFields) values() url.Values {
	v := url.Values{}
	for key, value := range map[string]string{
		"kind": f.Kind, "prefix": f.Prefix, "holder": f.Holder, "since": f.Since, "until": f.Until, "around": f.Around, "cursor": f.Cursor,
	} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if f.Cursor != "" && len(f.Trail) > 0 {
		v["trail"] = f.Trail
	}
	return v
}

// Narrow reports whether the fields may leave out events.
func (f eventFields) Narrow() bool {
	f.Cursor, f.Trail = "", nil
	return len(f.values()) > 0
}

// Folded returns how many fields are set that a narrow screen hides.
func (f eventFields) Folded() (n int) {
	for _, value := range []string{f.Prefix, f.Holder, f.Since, f.Until, f.Around} {
		if value != "" {
			n++
		}
	}
	return n
}

// A kindChoice is a choice for Kind.
type kindChoice struct{ Value, Text string }

// Choices returns the choices for Kind.
func (eventFields) Choices() []kindChoice {
	losses := strings.ReplaceAll(kindNames(lock.Expired, lock.Revoked, lock.Refused, lock.Suspected), " ", ",")
	freezes := strings.ReplaceAll(kindNames(lock.Frozen, lock.Thawed, lock.Opened), " ", ",")
	all := []kindChoice{{"", "all kinds"}, {losses, "losses"}, {deadlocks, "deadlocks"}, {lock.Refused.String(), "stale writes"}, {freezes, "freezes"}}
	for name := range strings.FieldsSeq(kindNames()) {
		if name == lock.Refused.String() {
			continue
		}
		all = append(all, kindChoice{name, name})
	}
	return all
}

// kinds returns the kinds that Kind names.
func (f eventFields) kinds() (kinds []lock.Kind, err error) {
	for name := range strings.SplitSeq(f.Kind, ",") {
		if f.Kind == "" || f.Kind == deadlocks {
			break
		}
		k := lock.KindOf(name)
		if k == 0 {
			return nil, lock.Invalid("kind", "is unknown; give %s, or several with commas between them", lock.KindNames())
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// query returns the query that the fields describe at now.
func (f eventFields) query(now time.Time) (q paddock.EventQuery, err error) {
	q = paddock.EventQuery{Prefix: f.Prefix, Holder: f.Holder, Deadlock: f.Kind == deadlocks, Descending: true, Cursor: f.Cursor}
	if q.Kinds, err = f.kinds(); err != nil {
		return q, err
	}
	if f.Around != "" {
		if f.Since+f.Until != "" {
			return q, lock.Invalid("around", "cannot be combined with since or until; leave one of them out")
		}
		at, err := parseInstant("around", f.Around, now)
		if err == nil {
			q.Since, q.Until = when.Around(at)
		}
		return q, err
	}
	if q.Since, err = parseInstant("since", f.Since, now); err != nil {
		return q, err
	}
	q.Until, err = parseInstant("until", f.Until, now)
	return q, err
}

// parseInstant reads an instant, in UTC where it has no zone, see when.Instant. Without a text it returns the zero instant.
func parseInstant(field, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := when.Instant(text, now.UTC())
	if err != nil {
		return at, lock.Invalid(field, "%v; without a zone it is in UTC", err)
	}
	return at, nil
}

// An eventsPage lists events over all locks, the newest first, or shows an error.
type eventsPage struct {
	view
	eventFields
	From, To   time.Time // of the selected events; zero: no bound
	Ended      bool      // nothing is added to the page's events any more
	Events     []event   // the last one may be no event, but only Epochs
	Pages      pages
	Gap        bool      // older events are no longer kept
	SearchedTo time.Time // how far the search has come, if it goes on at the next page; otherwise zero
	Unreadable []paddock.Unreadable
	JSON       string // the URL of the same in the API
}

// None reports whether the page shows no event.
func (p eventsPage) None() bool { return len(p.Events) == 0 || p.Events[0].Kind == 0 }

// All returns the URL of the page with all events.
func (eventsPage) All() string { return eventsRoot }

func (u *ui) events(w http.ResponseWriter, r *http.Request) {
	f := eventFieldsFrom(r.URL.Query())
	f.Prefix = readerOf(r).within(f.Prefix)
	q, err := f.query(time.Now())
	events := readerOf(r).allEvents(f.Prefix)
	ended := f.Cursor != "" || !q.Until.IsZero() && q.Until.Before(time.Now())
	if ended {
		events = nil
	}
	p := eventsPage{view: u.viewOf(r, "Events", events), eventFields: f, From: q.Since, To: q.Until, Ended: ended}
	p.Kinds, p.About = kindNames(q.Kinds...), f.Holder
	if q.Deadlock {
		p.Kinds = lock.Dequeued.String()
	}
	if err == nil {
		err = u.readEvents(r, &p, q)
	}
	status := http.StatusOK
	if err != nil {
		status = p.failed(u.problem(r, err))
	}
	u.show(w, r, status, "all-events", p)
}

// readEvents reads the events of the page.
func (u *ui) readEvents(r *http.Request, p *eventsPage, q paddock.EventQuery) error {
	p.JSON = address("/v1/events", jsonQuery(q))
	page, err := u.locks.Events(r.Context(), q)
	if err != nil {
		return err
	}
	epochs, err := u.epochsAmong(r, q, page)
	if err != nil {
		return err
	}
	for i, e := range page.Items {
		one := eventAnywhere(e)
		one.Epochs = epochs[i]
		if i > 0 && u.cells == nil && len(epochs[i]) == 0 && page.Items[i-1].BeginsEpoch(e) {
			one.Epochs = make([]paddock.EarlierEpoch, 1)
		}
		p.Events = append(p.Events, one)
	}
	if before := epochs[len(page.Items)]; len(before) > 0 {
		p.Events = append(p.Events, event{Epochs: before})
	}
	p.Unreadable, p.Gap, p.SearchedTo, p.Pages = page.Unreadable, page.Gap, page.SearchedTo, p.pages(page.Next)
	return nil
}

// epochsAmong returns the epochs that began in the part of the query's range that the page shows, see
// [paddock.ServiceInfo.EpochsAmong], as far as the reader may see how the service is.
func (u *ui) epochsAmong(r *http.Request, q paddock.EventQuery, page paddock.Page[lock.Event]) (_ [][]paddock.EarlierEpoch, err error) {
	if u.cells != nil || !readerOf(r).MaySeeService() {
		return paddock.ServiceInfo{}.EpochsAmong(page.Items, time.Time{}, time.Time{}), nil
	}
	since, until := q.Since, q.Until
	if q.Cursor != "" {
		if until, err = u.timeAt(r, q.Cursor); err != nil {
			return nil, err
		}
	}
	if page.Next != "" { // the next page shows what began before its newest event
		since = time.Time{}
	}
	if !page.SearchedTo.IsZero() {
		if since, err = u.timeAt(r, page.Next); err != nil {
			return nil, err
		}
	}
	return u.info(r.Context()).EpochsAmong(page.Items, since, until), nil
}

// timeAt returns when the event of the cursor happened, or the one before if there is none.
func (u *ui) timeAt(r *http.Request, cursor string) (time.Time, error) {
	id, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil {
		return time.Time{}, lock.Invalid("cursor", "is not that of an event; leave it out to start over")
	}
	page, err := u.locks.Events(r.Context(), paddock.EventQuery{Descending: true, Cursor: strconv.FormatInt(id+1, 10), Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return time.Time{}, err
	}
	return page.Items[0].At, nil
}

// eventAnywhere returns the event with its lock, or with the list of the locks of its prefix.
func eventAnywhere(e lock.Event) event {
	one, on := eventOf(e, location{}), nameOf(e.Name, filter{})
	one.Circle = circleOf(e.Cycle, location{}) // with links to all of its locks
	if lock.Scope(e.Name).IsPrefix() {
		on.URL = filter{Prefix: e.Name}.URL()
	}
	one.On = &on
	return one
}

// pages returns the URLs around the page, of which the next one is at the cursor; empty: none.
func (f eventFields) pages(next string) pages {
	around := filter{Cursor: f.Cursor, Trail: f.Trail}
	url := func(to filter) string {
		f.Cursor, f.Trail = to.Cursor, to.Trail
		return address(eventsRoot, f.values())
	}
	var p pages
	if around.Cursor != "" {
		p.First = url(around.First())
	}
	if around.HasPrevious() {
		p.Previous = url(around.Previous())
	}
	if next != "" {
		p.Next = url(around.Following(next))
	}
	return p
}

// jsonQuery returns the query for the same events in the API.
func jsonQuery(q paddock.EventQuery) url.Values {
	v := url.Values{"order": {"desc"}}
	if len(q.Kinds) > 0 {
		v.Set("kind", strings.ReplaceAll(kindNames(q.Kinds...), " ", ","))
	}
	if q.Deadlock {
		v.Set("deadlock", "true")
	}
	for key, value := range map[string]string{"prefix": q.Prefix, "holder": q.Holder, "cursor": q.Cursor} {
		if value != "" {
			v.Set(key, value)
		}
	}
	for key, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(key, at.UTC().Format(time.RFC3339))
		}
	}
	return v
}

// isLoss reports whether the event says that its holder has lost what it had, or waited for.
func isLoss(e lock.Event) bool {
	return slices.Contains([]lock.Kind{lock.Expired, lock.Revoked, lock.Refused, lock.Suspected}, e.Kind) || e.Cycle.Steps() != nil
}
