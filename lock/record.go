package lock

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A Record is the complete state of one lock. The zero Record with a name is a lock that was never used.
type Record struct {
	Name      string
	Revision  int64     // number of transitions
	Token     Token     // the newest granted; zero for none
	LastEnd   Kind      // how the newest grant ended; zero while it is active
	ChangedAt time.Time // time of the last transition
	// Leases are at most one exclusive lease, or shared leases, or up to Capacity permits. A lease stays here until
	// its end is recorded, so some may have expired, see ActiveLeases. A revoked lease stays until its grace is over.
	Leases   []Lease
	Capacity int // of the permits in Leases; zero if there are none
	// Queue contains the waiters in order. Several Records may share one Waiter, so never modify a Waiter in place:
	// copy the slice and the Waiter.
	Queue []*Waiter
}

// ActiveLeases returns the leases that have not ended at now, those in grace included.
func (r Record) ActiveLeases(now time.Time) []Lease {
	return slices.DeleteFunc(slices.Clone(r.Leases), func(l Lease) bool { return !now.Before(l.EndsAt()) })
}

// firstUnrevoked returns the first lease that is not revoked, false if there is none.
func (r Record) firstUnrevoked() (Lease, bool) {
	for i := range r.Leases {
		if !r.Leases[i].Revoked() {
			return r.Leases[i], true
		}
	}
	return Lease{}, false
}

// firstReader returns the first shared lease that is not revoked, false if there is none.
func (r Record) firstReader() (Lease, bool) {
	for i := range r.Leases {
		if l := &r.Leases[i]; l.Mode == Shared && !l.Revoked() {
			return *l, true
		}
	}
	return Lease{}, false
}

// A State is the public state of a lock.
type State string

// The states of a lock.
const (
	Free State = "free"
	Held State = "held"
	// InGrace: every lease has expired or was revoked, and the grace of one is not over. Its holder may renew it,
	// unless it was revoked.
	InGrace State = "grace"
)

// A Lock is the public view of a lock at one instant. It contains no secret.
type Lock struct {
	Name      string
	State     State
	Revision  int64
	Token     Token // the newest granted; zero for none
	ChangedAt time.Time
	AsOf      time.Time // on the database's clock
	Capacity  int       // of the permits; zero if none is held
	Waiters   int       // number of places in the queue
	Leases    []LeaseInfo
	// In a tree: the leases of the locks above it, which cover it, and of those below it.
	Above, Below []LeaseInfo
}

// AddAbove adds the leases of a lock above l in its tree.
func (l *Lock) AddAbove(above Lock) {
	for _, info := range above.Leases {
		info.Name = above.Name
		l.Above = append(l.Above, info)
	}
}

// A LeaseInfo is the public view of a lease.
type LeaseInfo struct {
	Name       string // of its lock, if that is above or below the one whose info this is part of
	Slot       int
	Mode       Mode
	Holder     string
	Token      Token
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Remaining  time.Duration // from the lock's AsOf until ExpiresAt, never negative
	Grace      time.Duration
	Metadata   json.RawMessage
	Session    SessionRef // keeps the lease alive; zero for none
	Set        []string   // the locks that were acquired together, this one included; nil if it was acquired alone
	Revoked    bool       // only the grace is left; it began at ExpiresAt, which the revocation may have set
}

// Lock returns the public view of r at now.
func (r Record) Lock(now time.Time) Lock {
	l := Lock{
		Name: r.Name, State: Free, Revision: r.Revision, Token: r.Token, ChangedAt: r.ChangedAt, AsOf: now,
		Waiters: len(r.Queue),
	}
	for _, lease := range r.ActiveLeases(now) {
		if lease.Unclaimed() {
			l.Waiters-- // its waiter stays in the queue until the grant is claimed
		}
		if lease.Mode.IsIntention() {
			l.Below = append(l.Below, lease.infoBelow(r.Name, now))
			continue
		}
		if now.Before(lease.ExpiresAt) {
			l.State = Held
		} else if l.State == Free {
			l.State = InGrace
		}
		l.Capacity = r.Capacity
		l.Leases = append(l.Leases, lease.info(now))
	}
	return l
}

// info returns the public view of l at now.
func (l Lease) info(now time.Time) LeaseInfo {
	return LeaseInfo{
		Slot: l.Slot, Mode: l.Mode, Holder: l.Holder, Token: l.Token,
		AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt,
		Remaining: max(l.ExpiresAt.Sub(now), 0), Grace: l.Grace, Metadata: l.Metadata, Session: l.Session,
		Set: l.together(), Revoked: l.Revoked(),
	}
}

// infoBelow returns the public view of what an intention at the lock stands for.
func (l Lease) infoBelow(at string, now time.Time) LeaseInfo {
	i := l.info(now)
	i.Name, i.Slot, i.Mode = l.heldName(at), 0, Exclusive
	if l.Mode == IntentionShared {
		i.Mode = Shared
	}
	return i
}

// Version identifies the state of l: it changes with every change except the remaining times. Pass it as the Seen of a
// Watch. It is never empty.
func (l Lock) Version() string {
	v := fmt.Sprintf("%d.%d.%s.%d.%d", l.Revision, l.Token, l.State, len(l.Leases), l.Waiters)
	for _, above := range l.Above {
		v += fmt.Sprintf(".%d", above.Token)
	}
	return v
}

// NextChangeAt returns the earliest time at which the version changes without any request, or zero.
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
