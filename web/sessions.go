package web

import (
	"net/http"

	"github.com/paddock-lock/paddock"
)

// sessionsRoot is the path of the list of sessions. That of a session's page begins with it.
const sessionsRoot = "/ui/sessions"

// A sessionsPage lists the sessions that have not ended, or shows an error. Of its filter, only the holder and the
// cursors apply.
type sessionsPage struct {
	view
	Filter   filter
	Sessions []session
	Pages    pages
	// Unreadable are the rows of the database that are left out.
	Unreadable []paddock.Unreadable
}

// All returns the URL of the list of all sessions.
func (sessionsPage) All() string { return sessionsRoot }

func (u *ui) sessions(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	f := filter{Holder: v.Get("holder"), Cursor: v.Get("cursor"), Trail: lastOf(v["trail"])}
	p := sessionsPage{view: u.viewOf(r, "Sessions", readerOf(r).allEvents("")), Filter: f}
	status := http.StatusOK
	page, err := u.locks.Sessions(r.Context(), paddock.SessionQuery{Holder: f.Holder, Cursor: f.Cursor})
	if err != nil {
		status = p.failed(u.problem(r, err))
	}
	for _, s := range page.Items {
		p.Sessions = append(p.Sessions, session{s})
	}
	if len(page.Items) > 0 {
		p.AsOf = page.Items[0].AsOf
	}
	p.Pages, p.Unreadable = pagesOf(sessionsRoot, f, page.Next), page.Unreadable
	u.show(w, r, status, "sessions", p)
}
