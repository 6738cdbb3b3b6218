package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// freezesRoot is the path of the list of freezes. That of a freeze's page begins with it.
const freezesRoot = "/ui/freezes"

func freezePath(s lock.Scope) string { return freezesRoot + "/" + url.PathEscape(string(s)) }

// A scopeLink is a scope, with the URL of the page about it; empty if the reader's key does not cover all of it.
type scopeLink struct{ Name, URL string }

// scopeOf returns the scope with the URL of its freeze's page.
func scopeOf(s lock.Scope, to reader) scopeLink {
	if lock.CheckScope(s) != nil || !to.coversScope(s) {
		return scopeLink{Name: string(s)}
	}
	return scopeLink{string(s), freezePath(s)}
}

// A freeze is a freeze as the page shows it.
type freeze struct {
	lock.Freeze
	Page scopeLink
	Left timeLeft // until it ends by itself, on a page that knows the service's time; zero otherwise
}

// freezeOf returns the freeze as of a time, or nil for nil.
func freezeOf(f *lock.Freeze, asOf time.Time, to reader) *freeze {
	if f == nil {
		return nil
	}
	shown := freeze{Freeze: *f, Page: scopeOf(f.Scope, to)}
	if !f.Until.IsZero() {
		shown.Left = timeLeft(f.Until.Sub(asOf))
	}
	return &shown
}

// Whole reports whether the freeze is of all locks with a prefix.
func (f freeze) Whole() bool { return f.Scope.IsPrefix() }

// freezeFields are the fields of the form to freeze, as typed.
type freezeFields struct {
	Scope   string
	Reason  string
	Minutes string // empty: until it is ended
}

func freezeFieldsFrom(v url.Values) freezeFields {
	return freezeFields{Scope: strings.TrimSpace(v.Get("scope")), Reason: v.Get("reason"), Minutes: strings.TrimSpace(v.Get("minutes"))}
}

// request returns the freeze that the form describes.
func (f freezeFields) request() (lock.FreezeRequest, error) {
	r := lock.FreezeRequest{Scope: lock.Scope(f.Scope), Reason: strings.Join(strings.Fields(f.Reason), " ")}
	if f.Minutes == "" {
		return r, lock.CheckScope(r.Scope)
	}
	n, err := strconv.Atoi(f.Minutes)
	if err != nil || n < 1 || n > f.MaxMinutes() {
		err = lock.Invalid("minutes", "must be a whole number from 1 to %d; leave it out for a freeze without an end", f.MaxMinutes())
	}
	r.For = time.Duration(n) * time.Minute
	return r, cmp.Or(lock.CheckScope(r.Scope), err)
}

// MaxScope returns the greatest length of a scope, in characters.
func (freezeFields) MaxScope() int { return lock.MaxNameLength }

// MaxReason returns the greatest length of a reason, in characters.
func (freezeFields) MaxReason() int { return lock.MaxReasonLength }

// MaxMinutes returns the longest time of a freeze with an end, in minutes.
func (freezeFields) MaxMinutes() int { return int(lock.MaxFreeze / time.Minute) }

// A freezesPage lists the freezes, with the form to freeze, or shows an error, or both.
type freezesPage struct {
	view
	Freezes []freeze
	Unread  bool       // the freezes could not be read
	Thawed  lock.Scope // a freeze that the reader has just ended; empty: none
	Form    bool       // to freeze
	freezeFields
}

func (u *ui) freezes(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	fields := freezeFields{Scope: v.Get("scope"), Minutes: "30"}
	u.showFreezes(w, r, freezesPage{Thawed: lock.Scope(v.Get("thawed")), freezeFields: fields}, nil)
}

// showFreezes shows the list with err, or with the error of reading it.
func (u *ui) showFreezes(w http.ResponseWriter, r *http.Request, p freezesPage, err error) {
	p.view = u.viewOf(r, "Freezes", readerOf(r).allEvents(""))
	p.Kinds = kindNames(lock.Frozen, lock.Thawed)
	p.Form = p.Reader.mayFreeze()
	status := http.StatusOK
	all, readErr := u.locks.Freezes(r.Context())
	for _, f := range all {
		p.Freezes = append(p.Freezes, freeze{Freeze: f, Page: scopeOf(f.Scope, p.Reader)})
	}
	p.Unread = readErr != nil
	if problem := cmp.Or(err, readErr); problem != nil {
		status = p.failed(u.problem(r, problem))
	}
	// URLs can be forged, so the notice is shown only if it is true.
	isThawed := func(f lock.Freeze) bool { return f.Scope == p.Thawed }
	if p.Unread || lock.CheckScope(p.Thawed) != nil || !p.Reader.coversScope(p.Thawed) || slices.ContainsFunc(all, isThawed) {
		p.Thawed = ""
	}
	u.show(w, r, status, "freezes", p)
}

// freeze freezes the scope and redirects to its page. It is idempotent, so after a lost answer the form may be sent
// again.
func (u *ui) freeze(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.badForm(w, r, err)
		return
	}
	p := freezesPage{freezeFields: freezeFieldsFrom(r.PostForm)}
	asked, err := p.request()
	if err == nil {
		_, err = u.locks.Freeze(r.Context(), asked)
	}
	if err != nil {
		u.showFreezes(w, r, p, err)
		return
	}
	http.Redirect(w, r, address(freezePath(asked.Scope), url.Values{"begun": {"1"}}), http.StatusSeeOther)
}

// A freezePage shows a freeze, and how many leases are left, with the form to end it; or an error; or both.
type freezePage struct {
	view
	Freeze *freeze // nil: unknown
	Leases int
	Begun  bool // the reader has just begun the freeze
	Form   bool // to end it
}

// Action returns the URL of the form to end the freeze.
func (p freezePage) Action() string { return freezePath(p.Freeze.Scope) }

// LocksURL returns the URL of the lock, or of the list of the locks that have leases.
func (p freezePage) LocksURL() string {
	if !p.Freeze.Whole() {
		return lockPath(string(p.Freeze.Scope))
	}
	return location{filter: filter{Prefix: string(p.Freeze.Scope), Sort: "ending"}}.URL()
}

func (u *ui) frozen(w http.ResponseWriter, r *http.Request) { u.showFreeze(w, r, nil) }

// showFreeze shows the page with err, or with the error of reading the freeze.
func (u *ui) showFreeze(w http.ResponseWriter, r *http.Request, err error) {
	scope := lock.Scope(r.PathValue("scope"))
	p := freezePage{view: u.viewOf(r, "Freeze of "+string(scope), eventsOf(scope, readerOf(r)))}
	found, readErr := u.locks.Frozen(r.Context(), scope)
	if readErr == nil {
		p.Freeze, p.Leases, p.AsOf = freezeOf(&found.Freeze, found.AsOf, p.Reader), found.Leases, found.AsOf
		p.Form, p.Begun = p.Reader.mayFreeze(), r.URL.Query().Has("begun")
	} else if errors.Is(readErr, lock.ErrInvalid) || errors.Is(readErr, lock.ErrNotFound) {
		p.Title = "No such freeze"
	}
	status := http.StatusOK
	if problem := cmp.Or(err, readErr); problem != nil {
		status = p.failed(u.problem(r, problem))
	}
	u.show(w, r, status, "freeze", p)
}

// thaw ends the freeze and redirects to the list, which confirms it. It is idempotent, too.
func (u *ui) thaw(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.badForm(w, r, err)
		return
	}
	scope := lock.Scope(r.PathValue("scope"))
	var err error
	if readerOf(r).mayFreeze() && r.PostForm.Get("confirm") == "" {
		err = &lock.Error{Code: lock.ErrInvalid, Detail: "Nothing was thawed. Check the box to confirm, then thaw."}
	} else {
		err = u.locks.Thaw(r.Context(), lock.ThawRequest{Scope: scope})
	}
	if err != nil {
		u.showFreeze(w, r, err)
		return
	}
	http.Redirect(w, r, address(freezesRoot, url.Values{"thawed": {string(scope)}}), http.StatusSeeOther)
}

// eventsOf returns the query for the events of the scope, or nil if the reader may not see them.
func eventsOf(s lock.Scope, to reader) url.Values {
	switch {
	case !to.coversScope(s):
		return nil
	case s.IsPrefix():
		return url.Values{"prefix": {string(s)}}
	}
	return url.Values{"lock": {string(s)}}
}
