package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// An Overview is how many locks there are and how bad it is, over all locks of the service.
type Overview struct {
	Schema    string    // of the database, where they are; empty: not shown
	CountedAt time.Time // on this process's clock; zero: not yet
	Known     int64     // locks
	Held      int64     // locks
	InGrace   int64     // locks that are not held any more, but still in the grace of a lease
	Suspect   int64     // locks with a lease that does not end by itself, and was not renewed
	Contended int64     // locks with waiters
	Waiters   int64
	// LongestWait is how long the waiter has waited that has done so longest, and LongestHeld the same of an active
	// lease.
	LongestWait, LongestHeld time.Duration
	// Expired and Revoked are leases that this replica has ended so since StartedAt, on this process's clock, StaleTokens
	// the stale tokens that it has refused or was told of, Deadlocks the calls that it has refused to break one.
	StartedAt                                time.Time
	Expired, Revoked, StaleTokens, Deadlocks int64
}

// An overview is the front line of the list.
type overview struct {
	Overview
	Age   elapsed        // of the counts
	Up    elapsed        // since the replica has started
	Cells []paddock.Cell // of a service that has several
	list  filter
}

// overviewFor returns the front line, or nil if there is none or the reader's key does not cover all names.
func (u *ui) overviewFor(r *http.Request, f filter) *overview {
	if u.overview == nil || !readerOf(r).coversAll("") {
		return nil
	}
	o := &overview{Overview: u.overview(), list: f.Wide()}
	if u.cells != nil {
		o.Cells = u.cells(r.Context())
	}
	if !o.CountedAt.IsZero() {
		o.Age, o.Up = elapsed(time.Since(o.CountedAt)), elapsed(time.Since(o.StartedAt))
	}
	return o
}

// Wait and Lease return the longest ones in words.
func (o overview) Wait() elapsed  { return elapsed(o.LongestWait) }
func (o overview) Lease() elapsed { return elapsed(o.LongestHeld) }

// HeldURL, WaitersURL and OldestURL return the URLs of the lists of held locks, of those with the most waiters, and of
// those that have been held longest.
func (o overview) HeldURL() string {
	o.list.State = "held"
	return o.list.URL()
}

// SuspectURL returns the URL of the list of suspect locks.
func (o overview) SuspectURL() string {
	o.list.State = "suspect"
	return o.list.URL()
}

// ExpiredURL, RevokedURL, StaleURL and DeadlocksURL return the URLs of these events.
func (overview) ExpiredURL() string { return eventsURL(lock.Expired) }
func (overview) RevokedURL() string { return eventsURL(lock.Revoked) }
func (overview) StaleURL() string   { return eventsURL(lock.Refused) }

func (overview) DeadlocksURL() string { return address(eventsRoot, url.Values{"kind": {deadlocks}}) }

// eventsURL returns the URL of the events of the kind.
func eventsURL(k lock.Kind) string { return address(eventsRoot, url.Values{"kind": {k.String()}}) }

func (o overview) WaitersURL() string {
	o.list.Sort = "waiters"
	o.list.Contended = true
	return o.list.URL()
}

func (o overview) OldestURL() string {
	o.list.Sort = "age"
	return o.list.URL()
}
