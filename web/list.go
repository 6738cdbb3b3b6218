package web

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A listPage shows locks, or an error.
type listPage struct {
	view
	Notice   *notice
	Ask      revokePage
	Filter   filter
	Rows     []row
	Pages    pages
	Overview *overview // nil: the reader does not see it
	Origin   string    // of the service, for the curl example
	// Unreadable are the rows of the database that are left out.
	Unreadable []paddock.Unreadable
}

func (u *ui) list(w http.ResponseWriter, r *http.Request) {
	f := filterFrom(r.URL.Query())
	f.Prefix = readerOf(r).within(f.Prefix)
	here := location{filter: f}
	p := listPage{view: u.viewOf(r, "Locks", here.events()), Filter: f, Origin: originOf(r), Overview: u.overviewFor(r, f), Ask: revokePage{Dialog: true}}
	status := http.StatusOK
	page, err := u.locks.Locks(r.Context(), f.query())
	if err != nil {
		status = p.failed(u.problem(r, err))
	} else {
		p.AsOf, p.Rows, p.Pages = asOf(page.Items), rowsOf(page.Items, here, p.Reader), pagesOf(root, f, page.Next)
		for i := range p.Rows {
			if p.Rows[i].State == lock.Free {
				p.Rows[i].Paused = p.pauseOf(u.cellName(p.Rows[i].Name))
			}
		}
		p.Notice, p.Unreadable = u.notice(r), page.Unreadable
	}
	u.show(w, r, status, "list", p)
}

// Several reports whether the page offers to revoke several leases.
func (p listPage) Several() bool {
	return slices.ContainsFunc(p.Rows, func(r row) bool { return len(r.Leases) > 0 && r.Leases[0].Revocable })
}

// asOf returns the earliest AsOf of the locks.
func asOf(locks []lock.Lock) time.Time {
	var t time.Time
	for _, l := range locks {
		if t.IsZero() || l.AsOf.Before(t) {
			t = l.AsOf
		}
	}
	return t
}

// originOf returns the origin in the reader's URL, as far as the server knows it. The script corrects it.
func originOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(scheme + "://" + r.Host)
	if err != nil || !isPlainHost(r.Host) {
		return "http://127.0.0.1:8080"
	}
	return u.String()
}

// isPlainHost reports whether host needs no quoting in a shell command.
func isPlainHost(host string) bool {
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
