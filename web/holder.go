package web

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// holderRoot is the path of the page of a holder.
	holderRoot = "/ui/holder"
	// maxHolderEvents is how many events of a holder are read for its page.
	maxHolderEvents = 200
	// maxHolderWaits bounds the queues that are read for it.
	maxHolderWaits = 20
)

// holderPath returns the URL of the page of the holder.
func holderPath(holder string) string { return address(holderRoot, url.Values{"holder": {holder}}) }

// A holderPage shows what a holder has, waits for and has lost, or an error. What it waits for is found in its last
// events.
type holderPage struct {
	view
	Notice   *notice
	Ask      revokePage
	Name     string
	Leases   []namedLease
	ListURL  string // of the locks that it holds
	More     bool   // there are more of them
	Waits    []holderWait
	Sessions []session
	Losses   []event
	Gap      bool // older events are no longer kept, or not read
	Cut      bool // there may be more waits than those in its last events, and than in the queues that are read

	EventsURL string // of all its events
}

// A namedLease is a lease, with its lock.
type namedLease struct {
	lease
	On namedLock
}

// A holderWait is a place of the holder in the queue of a lock.
type holderWait struct {
	waiter
	On namedLock
}

// Several reports whether the page offers to revoke several leases.
func (p holderPage) Several() bool { return len(p.Leases) > 0 && p.Leases[0].Revocable }

// EventLimit returns how many of its events the page has read at most.
func (holderPage) EventLimit() int { return maxHolderEvents }

// Back returns the page's list as a location to return to.
func (p holderPage) Back() string { return location{filter: filter{Holder: p.Name}}.Encode() }

func (u *ui) holder(w http.ResponseWriter, r *http.Request) {
	holder := r.URL.Query().Get("holder")
	p := holderPage{
		view: u.viewOf(r, "Holder "+holder, readerOf(r).allEvents("")), Name: holder, Ask: revokePage{Dialog: true},
		ListURL: filter{Holder: holder}.URL(), EventsURL: address(eventsRoot, url.Values{"holder": {holder}}),
	}
	p.About = holder
	status := http.StatusOK
	if err := u.loadHolder(r, &p); err != nil {
		status = p.failed(u.problem(r, err))
		if status == http.StatusBadRequest { // not the text of a holder
			p.Title = "No such holder"
		}
	}
	u.show(w, r, status, "holder-page", p)
}

// loadHolder reads the leases, the events, the places and the sessions of the holder.
func (u *ui) loadHolder(r *http.Request, p *holderPage) error {
	if err := lock.CheckCharacters("holder", p.Name, 1, lock.MaxHolderLength); err != nil {
		return err
	}
	prefix := p.Reader.within("")
	locks, err := u.locks.Locks(r.Context(), paddock.LockQuery{Prefix: prefix, Holder: p.Name})
	if err != nil {
		return err
	}
	p.AsOf, p.More = asOf(locks.Items), locks.Next != ""
	back := location{filter: filter{Holder: p.Name}}
	for _, l := range locks.Items {
		for _, one := range leasesOf(l, back, p.Reader) {
			if one.Holder == p.Name {
				p.Leases = append(p.Leases, namedLease{one, nameOf(l.Name, filter{})})
			}
		}
	}
	events, err := u.locks.Events(r.Context(), paddock.EventQuery{Prefix: prefix, Holder: p.Name, Descending: true, Limit: maxHolderEvents})
	if err != nil {
		return err
	}
	p.Gap = events.Gap || events.Next != ""
	for _, e := range events.Items {
		if isLoss(e) && len(p.Losses) < maxShownEvents {
			p.Losses = append(p.Losses, eventAnywhere(e))
		}
	}
	waits := waitedFor(events.Items)
	p.Cut = p.Gap || len(waits) > maxHolderWaits
	if err := u.loadWaits(r, p, waits[:min(len(waits), maxHolderWaits)]); err != nil || !p.Reader.MayListSessions() {
		return err
	}
	sessions, err := u.locks.Sessions(r.Context(), paddock.SessionQuery{Holder: p.Name})
	for _, s := range sessions.Items {
		p.Sessions = append(p.Sessions, session{s})
	}
	return err
}

// waitedFor returns the locks in whose queues the holder may wait, as its events tell, the newest first: those that
// it has queued for more often than it has left the queue.
func waitedFor(newestFirst []lock.Event) (names []string) {
	places := map[string]int{}
	for _, e := range newestFirst {
		switch {
		case e.Kind == lock.Queued, e.Kind == lock.Withdrawn && e.Place > 0:
			places[e.Name]++
		case e.Kind == lock.Dequeued, e.Kind == lock.Granted && e.Place > 0:
			places[e.Name]--
		}
		if places[e.Name] > 0 && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}

// isSameCall reports whether both places are of one call: it has joined the queues of its set in one decision.
func (w waiter) isSameCall(other holderWait) bool {
	return w.Set != nil && slices.Equal(w.Set, other.Set) && w.JoinedAt.Equal(other.JoinedAt)
}

// loadWaits reads the places of the holder in the queues. A call is one wait: one that waits below a lock is shown at its
// own lock only, and one that waits for several locks at the first of them.
func (u *ui) loadWaits(r *http.Request, p *holderPage, names []string) error {
	for _, name := range names {
		q, err := u.locks.Queue(r.Context(), name)
		if err != nil {
			return err
		}
		for _, w := range queueOf(q, location{Lock: name, All: true}).Waiters {
			if w.Holder == p.Name && w.Name == "" && !slices.ContainsFunc(p.Waits, w.isSameCall) {
				p.Waits = append(p.Waits, holderWait{w, nameOf(name, filter{})})
			}
		}
	}
	return nil
}
