package web

import (
	"net/http"
	"time"

	"github.com/paddock-lock/paddock"
)

// A pause says that a database grants nothing for now.
type pause struct {
	Cell   string // that the database is of; empty: the service has one database
	Until  time.Time
	Left   timeLeft
	Reason string // of the epoch; empty: the reader may not see how the service is
	Linked bool   // to the page of the service
}

// pauseOf returns the pause of the database, or nil if it grants locks.
func pauseOf(d paddock.DatabaseInfo, to reader) *pause {
	left := timeLeft(d.GrantsPaused())
	if left == 0 {
		return nil
	}
	p := pause{Cell: d.Cell, Until: d.Epoch.GrantsPausedUntil, Left: left}
	if to.MaySeeService() {
		p.Reason = d.Epoch.Reason
	}
	return &p
}

// pauses returns the pauses that the page begins with. The page of the service shows each with its database.
func (u *ui) pauses(r *http.Request) (all []pause) {
	if u.paused == nil || r.URL.Path == serviceRoot {
		return nil
	}
	for _, d := range u.paused() {
		if p := pauseOf(d, readerOf(r)); p != nil {
			p.Linked = p.Reason != ""
			all = append(all, *p)
		}
	}
	return all
}

// cellName returns the cell that has the lock; empty for a service with one database.
func (u *ui) cellName(name string) string {
	if u.cellOf == nil {
		return ""
	}
	return u.cellOf(name)
}

// pauseOf returns the pause of the cell, or nil.
func (f frame) pauseOf(cell string) *pause {
	for i := range f.Pauses {
		if f.Pauses[i].Cell == cell {
			return &f.Pauses[i]
		}
	}
	return nil
}
