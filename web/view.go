package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A view is the common part of the pages that refresh themselves.
type view struct {
	frame
	URL     string    // of the page, without the notice of what the reader has just done
	Turned  string    // the same with Refresh toggled
	Refresh bool      // without JavaScript, reload the page every five seconds
	Problem string    // the service's error; empty if there is none
	AsOf    time.Time // on the database's clock; zero if the page shows nothing
	Away    bool      // the service is unavailable, and the reader may see what is known of it
	Still   bool      // the page will never show anything else
	Stream  string    // the URL of the page's event stream; empty: the page is refreshed every five seconds
	Kinds   string    // the names of the stream's events that concern the page
	About   string    // the holder whose events concern the page; empty: all do
}

// viewOf returns the view of the request, with a stream of the events that the query selects; nil: none.
func (u *ui) viewOf(r *http.Request, title string, events url.Values) view {
	v := view{frame: u.frameOf(r, title), Kinds: kindNames(), Refresh: r.URL.Query().Get("refresh") == "5"}
	v.URL, v.Turned = ownURL(r, v.Refresh), ownURL(r, !v.Refresh)
	if events != nil {
		v.Stream = address("/v1/events/stream", events)
	}
	return v
}

// noticeNames are the parameters of the notice of what the reader has just done.
var noticeNames = []string{"revoked", "token", "slot", "removed", "declared", "begun", "thawed"}

func ownURL(r *http.Request, refresh bool) string {
	v := r.URL.Query()
	for _, name := range noticeNames {
		v.Del(name)
	}
	v.Del("refresh")
	if refresh {
		v.Set("refresh", "5")
	}
	return address(r.URL.EscapedPath(), v)
}

// NoticeNames returns the parameters of a notice, which a reload must not show again.
func (view) NoticeNames() string { return strings.Join(noticeNames, " ") }

// failed sets the problem and returns the status. A page with a permanent error is not refreshed.
func (v *view) failed(status int, problem string) int {
	v.Problem, v.Away = problem, status == http.StatusServiceUnavailable && v.Reader.MaySeeService()
	if status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		v.Still, v.Stream = true, ""
	}
	return status
}

// kindNames returns the names of the kinds, of all if none is given.
func kindNames(kinds ...lock.Kind) string {
	var names []string
	for k := lock.Granted; k.String() != lock.Kind(0).String(); k++ {
		if len(kinds) == 0 || slices.Contains(kinds, k) {
			names = append(names, k.String())
		}
	}
	return strings.Join(names, " ")
}

// allEvents returns the query for all events of the prefix, or nil if the reader may not see them.
func (r reader) allEvents(prefix string) url.Values {
	switch {
	case !r.coversAll(prefix):
		return nil
	case prefix == "":
		return url.Values{}
	}
	return url.Values{"prefix": {prefix}}
}

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
