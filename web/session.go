package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A session is a session as the pages show it.
type session struct {
	lock.SessionInfo
}

// URL returns the URL of the session's page.
func (s session) URL() string { return sessionsRoot + "/" + s.Ref.String() }

// State returns the state in a word: open, grace, closed, expired or revoked.
func (s session) State() string {
	switch {
	case s.Ended == lock.Released:
		return "closed"
	case s.Ended != 0:
		return s.Ended.String()
	case s.InGrace():
		return string(lock.InGrace)
	}
	return "open"
}

// InGrace reports whether the session has expired, and may still be renewed.
func (s session) InGrace() bool { return s.Ended == 0 && s.Remaining <= 0 }

// Pill returns the state of a lock that has the color of the session's state.
func (s session) Pill() lock.State {
	switch {
	case s.Ended != 0:
		return lock.Free
	case s.InGrace():
		return lock.InGrace
	}
	return lock.Held
}

// WasRevoked reports whether an operator has ended the session.
func (s session) WasRevoked() bool { return s.Ended == lock.Revoked }

// HeartbeatAt returns when the session was last renewed, or opened. The last heartbeat was earlier if it shortened the
// TTL, or if a fail-over has extended the session since.
func (s session) HeartbeatAt() time.Time { return earlier(s.ExpiresAt.Add(-s.TTL), s.AsOf) }

// Heartbeat returns how long ago that was.
func (s session) Heartbeat() elapsed { return elapsed(s.AsOf.Sub(s.HeartbeatAt())) }

// Left returns the time until the session expires unless it is renewed.
func (s session) Left() timeLeft { return timeLeft(s.Remaining) }

// Over returns the time until the grace has ended.
func (s session) Over() timeLeft { return timeLeft(s.ExpiresAt.Add(s.Grace).Sub(s.AsOf)) }

// Lasts returns the TTL, and After the grace.
func (s session) Lasts() string { return exactly(s.TTL) }
func (s session) After() string { return exactly(s.Grace) }

// exactly returns a duration in words, or in milliseconds if it is short and has a fraction of a second.
func exactly(d time.Duration) string {
	if d < time.Minute && d%time.Second != 0 {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return words(d)
}

// Indented returns the metadata, empty if there are none.
func (s session) Indented() string { return indentJSON(s.Metadata) }

// A sessionLine is a lease or a place of a session.
type sessionLine struct {
	lock.SessionLock
}

// URL returns the URL of the lock's page, or "" if the service hides the name of the lock from the reader.
func (l sessionLine) URL() string {
	if lock.CheckName(l.Name) != nil {
		return ""
	}
	return location{Lock: l.Name}.URL()
}

// Key identifies the lease or the place across refreshes.
func (l sessionLine) Key() string {
	return fmt.Sprintf("line %s/%d/%d/%d", l.Name, l.Place, l.Token, l.Slot)
}

// Alone reports whether the lease is exclusive, so that it needs no slot to identify it.
func (l sessionLine) Alone() bool { return l.Mode == lock.Exclusive }

// A sessionPage shows a session with its leases and places and the form to revoke it, or an error, or both.
type sessionPage struct {
	view
	Session *session
	Lines   []sessionLine
	More    int    // leases and places that are not shown
	AllURL  string // of the page that shows them; empty if there is none
	Revoked bool   // the reader has just revoked the session
	Form    bool   // to revoke the session
	reasonFields
}

// Focused reports whether the form has the focus when the page is opened. It is at the end of the page.
func (sessionPage) Focused() bool { return false }

// Subject returns what the form takes away from its holder.
func (sessionPage) Subject() string { return "The locks" }

// Back returns the URL of the list that the reader may see.
func (p sessionPage) Back() string {
	if p.Reader.MayListSessions() {
		return sessionsRoot
	}
	return root
}

func (u *ui) session(w http.ResponseWriter, r *http.Request) { u.showSession(w, r, sessionPage{}, nil) }

// showSession shows the page with err, or with the error of reading the session.
func (u *ui) showSession(w http.ResponseWriter, r *http.Request, p sessionPage, err error) {
	p.view = u.viewOf(r, "Session "+r.PathValue("session"), readerOf(r).allEvents(""))
	status := http.StatusOK
	found, readErr := u.readSession(r)
	switch {
	case readErr == nil:
		v := r.URL.Query()
		p.Session, p.AsOf, p.About = &session{found}, found.AsOf, found.Holder
		p.Form = found.Ended == 0 && p.Reader.mayRevokeSessions()
		p.Revoked = v.Has("revoked") && p.Session.WasRevoked()
		p.list(v.Get("all") == "1")
	case errors.Is(readErr, lock.ErrInvalid), errors.Is(readErr, lock.ErrNotFound):
		// The name may be a session_id, so it is not shown.
		p.Title, p.URL = "No such session", ""
	}
	if problem := cmp.Or(err, readErr); problem != nil {
		status = p.failed(u.problem(r, problem))
	}
	u.show(w, r, status, "session", p)
}

func (u *ui) readSession(r *http.Request) (lock.SessionInfo, error) {
	ref, err := lock.ParseSessionRef("session", r.PathValue("session"))
	if err != nil {
		return lock.SessionInfo{}, err
	}
	return u.locks.Session(r.Context(), ref)
}

// list sets the leases and places to show: all that the service lists, or the first.
func (p *sessionPage) list(all bool) {
	s := p.Session
	shown := s.Locks
	if !all && len(shown) > maxShown {
		shown, p.AllURL = shown[:maxShown], address(s.URL(), url.Values{"all": {"1"}})
	}
	for _, l := range shown {
		p.Lines = append(p.Lines, sessionLine{l})
	}
	p.More = max(s.Leases+s.Places-len(shown), 0)
}

// revokeSession revokes the session and redirects to its page, which confirms it. It is idempotent, so after a lost
// answer the form may be sent again.
func (u *ui) revokeSession(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.badForm(w, r, err)
		return
	}
	p := sessionPage{reasonFields: reasonFieldsFrom(r.PostForm)}
	ref, err := lock.ParseSessionRef("session", r.PathValue("session"))
	if err == nil {
		_, err = u.locks.RevokeSession(r.Context(), lock.RevokeSession{Ref: ref, Reason: p.oneLine(), SkipGrace: p.SkipGrace})
	}
	if errors.Is(err, lock.ErrSessionLost) { // its detail is for the holder
		err = &lock.Error{Code: lock.ErrSessionLost, Detail: "The session has ended. There is nothing to revoke."}
	}
	if err != nil {
		u.showSession(w, r, p, err)
		return
	}
	done := session{lock.SessionInfo{Ref: ref}}
	http.Redirect(w, r, address(done.URL(), url.Values{"revoked": {"1"}}), http.StatusSeeOther)
}
