package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// root is the path of the list.
const root = "/ui/"

// A filter selects the locks of the list. It is the query of the list's URL.
type filter struct {
	Prefix    string
	Contains  string
	State     string
	Holder    string
	Contended bool   // only locks with waiters
	Sort      string // empty: by name
	Cursor    string
	Trail     []string // the cursors of the pages before, the nearest last; at most maxTrail
	Refresh   bool     // without JavaScript, reload the page every five seconds
}

func filterFrom(v url.Values) filter {
	return filter{
		Prefix:    strings.TrimSpace(v.Get("prefix")),
		Contains:  strings.TrimSpace(v.Get("q")),
		State:     v.Get("state"),
		Holder:    v.Get("holder"),
		Contended: v.Get("contended") == "true",
		Sort:      v.Get("sort"),
		Cursor:    v.Get("cursor"),
		Trail:     lastOf(v["trail"]),
		Refresh:   v.Get("refresh") == "5",
	}
}

func (f filter) query() paddock.LockQuery {
	return paddock.LockQuery{
		Prefix: f.Prefix, Contains: f.Contains, State: lock.State(f.State), Holder: f.Holder, Contended: f.Contended,
		Sort: paddock.LockOrder(f.Sort), Cursor: f.Cursor,
	}
}

// Narrow reports whether the filter may leave out locks.
func (f filter) Narrow() bool {
	return f.Prefix != "" || f.Contains != "" || f.State != "" || f.Holder != "" || f.Contended || f.Sort != ""
}

// Folded returns how many of the filters are set that a narrow screen hides.
func (f filter) Folded() (n int) {
	for _, set := range []bool{f.Prefix != "", f.State != "", f.Holder != "", f.Contended, f.Sort != ""} {
		if set {
			n++
		}
	}
	return n
}

// A part is what a filter asks of a lock, in words.
type part struct{ Text, Value string }

// Parts returns what the filter asks of a lock.
func (f filter) Parts() (parts []part) {
	for _, p := range []part{
		{"a name that contains", f.Contains}, {"a name that begins with", f.Prefix}, {"the state", f.State}, {"the holder", f.Holder},
	} {
		if p.Value != "" {
			parts = append(parts, p)
		}
	}
	if f.Contended {
		parts = append(parts, part{Text: "waiters"})
	}
	if f.Sort != "" && !f.Contended && f.Holder == "" && (f.State == "" || f.State == string(lock.Free)) { // else it follows
		parts = append(parts, part{Text: "a holder or waiters"})
	}
	return parts
}

// An order is a choice for Sort.
type order struct {
	Value paddock.LockOrder
	Text  string
}

// Orders returns the choices for Sort.
func (filter) Orders() []order {
	return []order{{paddock.ByName, "name"}, {paddock.ByWaiters, "most waiters"}, {paddock.ByAge, "held longest"}, {paddock.ByEnding, "ending soonest"}}
}

// States returns the choices for State.
func (filter) States() []lock.State {
	return []lock.State{lock.Free, lock.Held, lock.InGrace, lock.Suspect}
}

func (f filter) values() url.Values {
	v := url.Values{}
	for key, value := range map[string]string{
		"prefix": f.Prefix, "q": f.Contains, "state": f.State, "holder": f.Holder, "sort": f.Sort, "cursor": f.Cursor,
	} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if f.Contended {
		v.Set("contended", "true")
	}
	if f.Cursor != "" && len(f.Trail) > 0 {
		v["trail"] = f.Trail
	}
	if f.Refresh {
		v.Set("refresh", "5")
	}
	return v
}

// URL returns the URL of the list.
func (f filter) URL() string { return address(root, f.values()) }

// Back returns the list as a location to return to.
func (f filter) Back() string { return location{filter: f}.Encode() }

// First returns the filter for the first page.
func (f filter) First() filter {
	f.Cursor, f.Trail = "", nil
	return f
}

// Following returns the filter for the page after this one, at the cursor.
func (f filter) Following(cursor string) filter {
	f.Trail = lastOf(append(slices.Clone(f.Trail), f.Cursor))
	f.Cursor = cursor
	return f
}

// HasPrevious reports whether the page before this one is known.
func (f filter) HasPrevious() bool { return f.Cursor != "" && len(f.Trail) > 0 }

// Previous returns the filter for the page before this one.
func (f filter) Previous() filter {
	last := len(f.Trail) - 1
	f.Cursor, f.Trail = f.Trail[last], f.Trail[:last]
	return f
}

// pages are the URLs of other pages of a list, empty if there are none.
type pages struct{ First, Previous, Next string }

// pagesOf returns the pages around the page of f, of the list at the path. The next page is at the cursor; empty:
// none.
func pagesOf(path string, f filter, next string) (p pages) {
	if f.Cursor != "" {
		p.First = address(path, f.First().values())
	}
	if f.HasPrevious() {
		p.Previous = address(path, f.Previous().values())
	}
	if next != "" {
		p.Next = address(path, f.Following(next).values())
	}
	return p
}

// maxTrail is how many pages one can go back by a link. Cursors lead forward only, so the URL has those of the pages
// before, and a cursor may be as long as a name.
const maxTrail = 10

func lastOf(trail []string) []string { return trail[max(len(trail)-maxTrail, 0):] }

// Wide returns a filter for the first page of all locks.
func (f filter) Wide() filter { return filter{Refresh: f.Refresh} }

func address(path string, v url.Values) string {
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// A location is a page to return to: the list, or a lock's page with the list that linked to it.
type location struct {
	filter
	Lock string // empty: the list
	All  bool   // show all leases and waiters of the lock
	Past string // show events of the lock before this cursor; empty: the newest
}

// parseLocation returns the location that Encode wrote. It drops invalid parts, so it never points elsewhere.
func parseLocation(query string) location {
	v, err := url.ParseQuery(query)
	if err != nil {
		return location{}
	}
	p := location{filter: filterFrom(v), Lock: v.Get("lock"), All: v.Get("all") == "1", Past: v.Get("past")}
	if lock.CheckName(p.Lock) != nil {
		p.Lock = ""
	}
	return p
}

// lockLocation returns the location of a request for a lock's page.
func lockLocation(r *http.Request) location {
	v := r.URL.Query()
	p := location{Lock: r.PathValue("name"), All: v.Get("all") == "1", Past: v.Get("past")}
	p.filter = parseLocation(v.Get("back")).filter
	p.Refresh = v.Get("refresh") == "5"
	return p
}

// list returns the list that linked to the location.
func (p location) list() location { return location{filter: p.filter} }

// at returns the location with the events of the lock before the cursor.
func (p location) at(cursor string) location {
	p.Past = cursor
	return p
}

// Encode returns the location as a query, for parseLocation.
func (p location) Encode() string {
	v := p.values()
	if p.Lock != "" {
		v.Set("lock", p.Lock)
	}
	if p.All {
		v.Set("all", "1")
	}
	if p.Past != "" {
		v.Set("past", p.Past)
	}
	return v.Encode()
}

// URL returns the URL of the location.
func (p location) URL() string { return p.with(url.Values{}) }

// with returns the URL of the location with more parameters.
func (p location) with(more url.Values) string {
	path, v := root, p.values()
	if p.Lock != "" {
		path, v = lockPath(p.Lock), p.lockValues()
	}
	for key := range more {
		v.Set(key, more.Get(key))
	}
	return address(path, v)
}

// lockValues returns the query of a lock's page.
func (p location) lockValues() url.Values {
	v := url.Values{}
	list := p.filter
	list.Refresh = false
	if back := list.values().Encode(); back != "" {
		v.Set("back", back)
	}
	if p.Refresh {
		v.Set("refresh", "5")
	}
	if p.All {
		v.Set("all", "1")
	}
	if p.Past != "" {
		v.Set("past", p.Past)
	}
	return v
}

func lockPath(name string) string { return root + "locks/" + url.PathEscape(name) }
