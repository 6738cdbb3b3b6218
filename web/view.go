package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A view is what those pages have in common that follow the service.
type view struct {
	Title   string
	Reader  reader
	Here    location
	Notice  *notice
	Problem string    // the service's own words; empty if there is something to show
	AsOf    time.Time // on the database's clock; zero if there is no lock to tell it
	Stream  string    // the address of the events that concern the page; empty if it cannot be followed
	Ask     revokePage
}

func viewOf(r *http.Request, title string, here location) view {
	return view{Title: title, Reader: readerOf(r), Here: here, Stream: here.stream(), Ask: revokePage{Dialog: true}}
}

// failed notes that the service refused to be looked at, and returns the status
// to say so with. A page that it will never show is not followed.
func (v *view) failed(status int, problem string) int {
	v.Problem = problem
	if status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		v.Stream = ""
	}
	return status
}

// Kinds returns the names of the events that the stream may bring.
func (view) Kinds() string {
	var names []string
	for k := lock.Granted; k.String() != lock.Kind(0).String(); k++ {
		names = append(names, k.String())
	}
	return strings.Join(names, " ")
}

// stream returns the address of the events that concern the place.
func (p location) stream() string { return address("/v1/events/stream", p.events()) }

// events returns which events concern the place.
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

// A notice says that a lease is gone, or all leases that had the token.
type notice struct {
	Name  string
	Token lock.Token
	Slot  *int     // nil: whichever the token sat in
	Over  timeLeft // until the grace of what was revoked is over; zero if it is
}

// done returns the address to go to after a revocation.
func (n notice) done(p location) string {
	v := url.Values{"revoked": {n.Name}, "token": {strconv.FormatInt(int64(n.Token), 10)}}
	if n.Slot != nil {
		v.Set("slot", strconv.Itoa(*n.Slot))
	}
	return p.with(v)
}

// notice returns the notice that the address asks for, if it is true. Anybody can
// write an address, so the lock is looked at again.
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
