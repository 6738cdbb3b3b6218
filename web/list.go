package web

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A listPage shows locks, or why it cannot.
type listPage struct {
	Title   string
	Filter  filter
	Notice  *notice
	Problem string    // the service's own words; empty if there is a list
	AsOf    time.Time // on the database's clock; zero if there is no lock to tell it
	Rows    []row
	Next    string // the cursor of the next page, empty on the last
	Origin  string // of the service, for the curl line
	Ask     revokePage
}

func (u *ui) list(w http.ResponseWriter, r *http.Request) {
	p := listPage{Title: "Locks", Filter: filterFrom(r.URL.Query()), Origin: originOf(r), Ask: revokePage{Dialog: true}}
	status := http.StatusOK
	page, err := u.locks.Locks(r.Context(), p.Filter.query())
	if err != nil {
		status, p.Problem = u.problem(r, err)
	} else {
		p.AsOf, p.Rows, p.Next = asOf(page.Items), rowsOf(page.Items, p.Filter.Encode()), page.Next
		p.Notice = u.notice(r)
	}
	u.show(w, r, status, "list", p)
}

// asOf returns the earliest instant that the locks are true of.
func asOf(locks []lock.Lock) time.Time {
	var t time.Time
	for _, l := range locks {
		if t.IsZero() || l.AsOf.Before(t) {
			t = l.AsOf
		}
	}
	return t
}

// A notice says that a lease is gone.
type notice struct {
	Name  string
	Token lock.Token
}

// done returns the address to go to after a revocation.
func (n notice) done(f filter) string {
	v := f.values()
	v.Set("revoked", n.Name)
	v.Set("token", strconv.FormatInt(int64(n.Token), 10))
	return address(root, v)
}

// notice returns the notice that the address asks for, if it is true. Anybody can
// write an address, so the lock is looked at again.
func (u *ui) notice(r *http.Request) *notice {
	v := r.URL.Query()
	token, err := parseToken(v.Get("token"))
	if err != nil || !v.Has("revoked") {
		return nil
	}
	l, err := u.locks.Lock(r.Context(), v.Get("revoked"))
	if err != nil || l.Token < token || holding(l, token) != nil {
		return nil
	}
	return &notice{Name: l.Name, Token: token}
}

// originOf returns the origin under which the reader reached the service, as far
// as can be told here. The script knows better.
func originOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(scheme + "://" + r.Host)
	if err != nil || !plainHost(r.Host) {
		return "http://127.0.0.1:8080"
	}
	return u.String()
}

// plainHost is whether host can stand in a shell's line as it is.
func plainHost(host string) bool {
	for _, c := range host {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '-', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return host != ""
}
