package web

import (
	"net/http"
	"net/url"

	"github.com/paddock-lock/paddock/lock"
)

// A location is a page that others lead back to: the list, or the page of a lock
// that was come to from that list.
type location struct {
	filter
	Lock string // empty: the list
	All  bool   // of a lock's page: whether it is long
}

// parseLocation returns the place that an earlier page put into its form. What is
// none in it is dropped, so that it cannot lead anywhere else.
func parseLocation(query string) location {
	v, err := url.ParseQuery(query)
	if err != nil {
		return location{}
	}
	p := location{filter: filterFrom(v), Lock: v.Get("lock"), All: v.Get("all") == "1"}
	if lock.CheckName(p.Lock) != nil {
		p.Lock = ""
	}
	return p
}

// lockLocation returns the place that the request for a lock's page is for.
func lockLocation(r *http.Request) location {
	v := r.URL.Query()
	p := location{Lock: r.PathValue("name"), All: v.Get("all") == "1"}
	p.filter = parseLocation(v.Get("back")).filter
	p.Refresh = v.Get("refresh") == "5"
	return p
}

// list returns the list that the place leads back to.
func (p location) list() location { return location{filter: p.filter} }

// Turned returns the place with Refresh turned round.
func (p location) Turned() location {
	p.Refresh = !p.Refresh
	return p
}

// Encode returns the place as a query, which placeBack understands.
func (p location) Encode() string {
	v := p.values()
	if p.Lock != "" {
		v.Set("lock", p.Lock)
	}
	if p.All {
		v.Set("all", "1")
	}
	return v.Encode()
}

// URL returns the address of the place.
func (p location) URL() string { return p.with(url.Values{}) }

// with returns the address of the place with more to it.
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

// lockValues returns what is behind the path of a lock's page.
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
	return v
}

func lockPath(name string) string { return root + "locks/" + url.PathEscape(name) }
