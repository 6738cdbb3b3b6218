package lock

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A Record is all that a decision about one lock may rest on. The zero Record with
// a name is a lock that was never used.
type Record struct {
	Name      string
	Revision  int64     // how many transitions there were
	Token     Token     // the newest granted; zero if there was none
	LastEnd   Kind      // how the newest grant ended; zero while it has not
	ChangedAt time.Time // when the last transition was
	// Leases are those that nobody has written the end of: at most one exclusive
	// lease, or shared ones, or as many permits as Capacity. One may be past its
	// end, see Live. A revoked lease stays among them until its grace is over.
	Leases   []Lease
	Capacity int // of the permits among Leases; zero if there are none
	// Queue are the waiters, in the order in which they are served. Many states share a Waiter, so none is changed in
	// place: the slice is copied, and a changed copy of the Waiter takes its place. A long queue costs a pointer each.
	Queue []*Waiter
}

// ActiveLeases returns the leases that are not over at now.
func (s Record) ActiveLeases(now time.Time) []Lease {
	return slices.DeleteFunc(slices.Clone(s.Leases), func(l Lease) bool { return !now.Before(l.EndsAt()) })
}

// firstUnrevoked returns the first lease that was not revoked, false if there is none.
func (s Record) firstUnrevoked() (Lease, bool) {
	for i := range s.Leases {
		if !s.Leases[i].Revoked() {
			return s.Leases[i], true
		}
	}
	return Lease{}, false
}

// A State says in a word how things stand with a lock.
type State string

// The phases of a lock.
const (
	Free State = "free"
	Held State = "held"
	// InGrace: every lease is past its end, and the grace of one still blocks others. Its
	// holder may renew it, unless it was revoked.
	InGrace State = "grace"
)

// A Lock is what anybody may know of a lock, as of an instant. It holds no secret.
type Lock struct {
	Name      string
	State     State
	Revision  int64
	Token     Token // the newest granted; zero if there was none
	ChangedAt time.Time
	AsOf      time.Time // on the database's clock
	Capacity  int       // of the permits that are out; zero if none is
	Waiters   int       // how many places there are in the queue
	Leases    []LeaseInfo
}

// A LeaseInfo is what anybody may know of a lease.
type LeaseInfo struct {
	Slot       int
	Mode       Mode
	Holder     string
	Token      Token
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Remaining  time.Duration // until ExpiresAt as of the lock's AsOf, never negative
	Grace      time.Duration
	Metadata   json.RawMessage
	Revoked    bool // the lease was revoked at ExpiresAt, or during its grace; only its grace is left
}

// Lock returns what anybody may know of s at now.
func (s Record) Lock(now time.Time) Lock {
	l := Lock{
		Name: s.Name, State: Free, Revision: s.Revision, Token: s.Token, ChangedAt: s.ChangedAt, AsOf: now,
		Waiters: len(s.Queue),
	}
	for _, lease := range s.ActiveLeases(now) {
		if now.Before(lease.ExpiresAt) {
			l.State = Held
		} else if l.State == Free {
			l.State = InGrace
		}
		l.Capacity = s.Capacity
		if lease.Unclaimed() {
			l.Waiters-- // it keeps its place until the grant is fetched
		}
		l.Leases = append(l.Leases, lease.info(now))
	}
	return l
}

// info returns what anybody may know of l at now.
func (l Lease) info(now time.Time) LeaseInfo {
	return LeaseInfo{
		Slot: l.Slot, Mode: l.Mode, Holder: l.Holder, Token: l.Token,
		AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt,
		Remaining: max(l.ExpiresAt.Sub(now), 0), Grace: l.Grace, Metadata: l.Metadata, Revoked: l.Revoked(),
	}
}

// Version changes whenever l does in more than how much time is left: it is what
// a Watch has seen. It is never empty.
func (l Lock) Version() string {
	return fmt.Sprintf("%d.%d.%s.%d.%d", l.Revision, l.Token, l.State, len(l.Leases), l.Waiters)
}

// NextChangeAt returns when time alone changes l's Version, at the earliest; zero if never.
func (l Lock) NextChangeAt() time.Time {
	var first time.Time
	for _, h := range l.Leases {
		for _, at := range []time.Time{h.ExpiresAt, h.ExpiresAt.Add(h.Grace)} {
			if l.AsOf.Before(at) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}
