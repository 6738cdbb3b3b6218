package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A view is the common part of the pages that refresh themselves.
type view struct {
	Title   string
	Reader  reader
	Here    location
	Notice  *notice
	Problem string    // the service's error; empty if there is none
	AsOf    time.Time // on the database's clock; zero if the page shows no lock
	Stream  string    // the URL of the page's event stream; empty for a page that will never show anything
	Ask     revokePage
}

func viewOf(r *http.Request, title string, here location) view {
	return view{Title: title, Reader: readerOf(r), Here: here, Stream: here.stream(), Ask: revokePage{Dialog: true}}
}

// failed sets the problem and returns the status. A page with a permanent error gets no event stream.
func (v *view) failed(status int, problem string) int {
	v.Problem = problem
	if status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		v.Stream = ""
	}
	return status
}

// Kinds returns the names of the stream's events.
func (view) Kinds() string {
	var names []string
	for k := lock.Granted; k.String() != lock.Kind(0).String(); k++ {
		names = append(names, k.String())
	}
	return strings.Join(names, " ")
}

// stream returns the URL of the events at the location.
func (p location) stream() string { return address("/v1/events/stream", p.events()) }

// events returns the query for the events at the location.
func (p location) events() url.Values {
	v := url.Values{}
	switch {
	case p.Lock != "":
		v.Set("lock", p.Lock)
	case p.Prefix != "":
		v.Set("prefix", p.Prefix)
	}
	return v
}

// A notice reports that a lease was revoked, or all leases with the token.
type notice struct {
	Name  string
	Token lock.Token
	Slot  *int     // nil: all slots with the token
	Over  timeLeft // of the grace; zero if it is over
}

// done returns the URL to redirect to after a revocation.
func (n notice) done(p location) string {
	v := url.Values{"revoked": {n.Name}, "token": {strconv.FormatInt(int64(n.Token), 10)}}
	if n.Slot != nil {
		v.Set("slot", strconv.Itoa(*n.Slot))
	}
	return p.with(v)
}

// notice returns the notice that the URL asks for, or nil. URLs can be forged, so it checks the lock.
func (u *ui) notice(r *http.Request) *notice {
	v := r.URL.Query()
	token, err := parseToken(v.Get("token"))
	if err != nil || !v.Has("revoked") {
		return nil
	}
	slot, err := parseSlot(v.Get("slot"))
	if err != nil {
		return nil
	}
	l, err := u.locks.Lock(r.Context(), v.Get("revoked"))
	if err != nil || l.Token < token {
		return nil
	}
	n := &notice{Name: l.Name, Token: token, Slot: slot}
	for _, h := range leasesWithToken(l, token, slot) {
		if !h.Revoked {
			return nil
		}
		n.Over = max(n.Over, timeLeft(h.ExpiresAt.Add(h.Grace).Sub(l.AsOf)))
	}
	return n
}
