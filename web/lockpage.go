package web

import (
	"net/http"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// maxShown is how many leases, and how many waiters, the page of a lock
// shows until all are asked for.
const maxShown = 100

// A lockPage shows one lock with its leases and its queue, or why it cannot. The
// two are looked at one after the other, so a waiter may be in both.
type lockPage struct {
	view
	Name    string
	Lock    lock.Lock
	Sharing sharing
	Leases  []lease
	More    int // how many leases there are beside
	Whole   *sharedGroup
	Queue   queue
	Events  string // the address of all that happened to the lock
}

func (u *ui) lock(w http.ResponseWriter, r *http.Request) {
	here := lockLocation(r)
	p := lockPage{view: viewOf(r, here.Lock, here), Name: here.Lock, Events: address("/v1/events", here.events())}
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

// load looks at the lock.
func (u *ui) load(r *http.Request, p *lockPage) error {
	q, err := u.locks.Queue(r.Context(), p.Name)
	if err != nil {
		return err
	}
	l, err := u.locks.Lock(r.Context(), p.Name)
	if err != nil {
		return err
	}
	p.Lock, p.AsOf, p.Sharing, p.Queue = l, earlier(q.AsOf, l.AsOf), sharingOf(l), queueOf(q, p.Here)
	p.Leases = leasesOf(l, p.Here, p.Reader)
	p.Whole = sharedGroupOf(p.Leases)
	if n := len(p.Leases); n > maxShown && !p.Here.All {
		p.Leases, p.More = p.Leases[:maxShown], n-maxShown
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// ListURL returns the address of the list that the page was come to from.
func (p lockPage) ListURL() string { return p.Here.list().URL() }

// AllURL returns the address of the page with nothing left out.
func (p lockPage) AllURL() string {
	all := p.Here
	all.All = true
	return all.URL()
}

// A sharedGroup is all the leases of a shared phase, which can be revoked together.
type sharedGroup struct {
	Name  string
	Token lock.Token
	Count int
	Back  string
}

// sharedGroupOf returns the phase of the leases, nil if they are not several with one
// token that may be revoked.
func sharedGroupOf(leases []lease) *sharedGroup {
	if len(leases) < 2 || leases[0].Mode != lock.Shared || !leases[0].Revocable {
		return nil
	}
	first := leases[0]
	return &sharedGroup{Name: first.Name, Token: first.Token, Count: len(leases), Back: first.Back}
}
