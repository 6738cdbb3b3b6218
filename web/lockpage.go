package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// maxShown bounds the leases, and the waiters, on a lock's page without ?all=1.
const maxShown = 100

// A lockPage shows a lock with its leases and its queue, or an error. The two are read one after the other, so a
// waiter may be in both.
type lockPage struct {
	view
	Here    location
	Notice  *notice
	Ask     revokePage
	Name    string
	Cell    string // that has the lock; empty for a service with one database
	Lock    lock.Lock
	Sharing sharing
	Leases  []lease
	More    int // leases that are not shown
	Whole   *sharedGroup
	Queue   queue
	Tree    lockTree
	Frozen  *freeze // nil: not frozen
	Past    past

	EventsURL string // of all events of the lock, as JSON
}

func (u *ui) lock(w http.ResponseWriter, r *http.Request) {
	here := lockLocation(r)
	p := lockPage{
		view: u.viewOf(r, here.Lock, here.events()), Here: here, Name: here.Lock, EventsURL: address("/v1/events", here.events()),
		Ask: revokePage{Dialog: true},
	}
	status := http.StatusOK
	if err := u.load(r, &p); err != nil {
		status = p.failed(u.problem(r, err))
		if status == http.StatusBadRequest { // not a name, so not to be shown as one
			p.Title, p.Name = "No such lock", "No such lock"
		}
	} else {
		p.Notice = u.notice(r)
	}
	u.show(w, r, status, "lock", p)
}

// load reads the lock, its queue and its past.
func (u *ui) load(r *http.Request, p *lockPage) error {
	p.Cell = u.cellName(p.Name)
	q, err := u.locks.Queue(r.Context(), p.Name)
	if err != nil {
		return err
	}
	l, err := u.locks.Lock(r.Context(), p.Name)
	if err != nil {
		return err
	}
	if p.Past, err = u.pastOf(r.Context(), p.Here, l); err != nil {
		return err
	}
	p.Lock, p.AsOf, p.Sharing, p.Queue = l, earlier(q.AsOf, l.AsOf), sharingOf(l), queueOf(q, p.Here)
	p.Frozen = freezeOf(l.Frozen, l.AsOf, p.Reader)
	trees, err := u.locks.Trees(r.Context())
	if err != nil {
		return err
	}
	p.Tree = lockTreeOf(l, trees, p.Here, p.Reader)
	p.Queue.setTree(p.Here.filter)
	for i := range p.Queue.Waiters {
		p.Queue.Waiters[i].Frozen = l.Frozen != nil
	}
	p.Leases = leasesOf(l, p.Here, p.Reader)
	p.Whole = sharedGroupOf(p.Leases)
	if n := len(p.Leases); n > maxShown && !p.Here.All {
		p.Leases, p.More = p.Leases[:maxShown], n-maxShown
	}
	for i := range p.Leases {
		one := &p.Leases[i]
		one.With = otherLocksOf(one.Set, p.Here, one.Key())
	}
	return nil
}

// Several reports whether the page offers to revoke several leases.
func (p lockPage) Several() bool {
	return p.Reader.mayRevoke() && len(p.Leases)+len(p.Tree.Locks) > 0
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// ClosedFor returns how long the lock is still closed by a release. It is only called while the lock is.
func (p lockPage) ClosedFor() timeLeft { return timeLeft(p.Lock.Closed.Until.Sub(p.Lock.AsOf)) }

// MayOpen reports whether the page offers to open the lock, which a release has closed.
func (p lockPage) MayOpen() bool { return p.Reader.mayRevoke() && p.Reader.covers(p.Name) }

// FreezeURL returns the URL of the form to freeze the lock, or "" if there is a freeze or the reader may not freeze it.
func (p lockPage) FreezeURL() string {
	if p.Frozen != nil || !p.Reader.mayFreeze() || !p.Reader.covers(p.Name) {
		return ""
	}
	return address(freezesRoot, url.Values{"scope": {p.Name}})
}

// Paused returns the pause that keeps the lock from being granted, or nil.
func (p lockPage) Paused() *pause { return p.pauseOf(p.Cell) }

// ListURL returns the URL of the list that linked to the page.
func (p lockPage) ListURL() string { return p.Here.list().URL() }

// AllURL returns the URL of the page with all leases and waiters.
func (p lockPage) AllURL() string {
	all := p.Here
	all.All = true
	return all.URL()
}

// A sharedGroup is all shared leases with one token, which can be revoked together.
type sharedGroup struct {
	Name  string
	Token lock.Token
	Count int
	Back  string
	Sets  bool // some are of sets
	Grace string

	Waiters *int
}

// sharedGroupOf returns the group of the leases, or nil unless they are several shared ones that the reader may
// revoke.
func sharedGroupOf(leases []lease) *sharedGroup {
	if len(leases) < 2 || leases[0].Mode != lock.Shared || !leases[0].Revocable {
		return nil
	}
	first := leases[0]
	g := &sharedGroup{Name: first.Name, Token: first.Token, Count: len(leases), Back: first.Back, Waiters: first.Waiters}
	infos := make([]lock.LeaseInfo, len(leases))
	for i, l := range leases {
		infos[i], g.Sets = l.LeaseInfo, g.Sets || l.Set != nil
	}
	g.Grace = graceOf(infos...)
	return g
}
