package lock

import (
	"math"
	"slices"
	"time"
)

// What waiting rests on.
const (
	// MaxWait is how long a call may wait at most. Balancers cut at a minute.
	MaxWait = 50 * time.Second
	// PlaceRetention is for how long a place is kept that nobody waits at: one that was
	// asked to be kept, or whose replica is gone.
	PlaceRetention = 10 * time.Second
	// ReplicaTTL is for how long a replica is taken to live since it was last heard of.
	ReplicaTTL = 2 * time.Second
	// ClaimTimeout is how long a grant waits for the replica that serves its waiter
	// to fetch it. No TTL runs until then.
	ClaimTimeout = 2 * time.Second
	// MaxHolders is how many leases a lock has at most.
	MaxHolders = 1000
	// DefaultMaxWaiters is how many may wait for one lock at most, unless the Bounds
	// say otherwise. A place at which no call waits counts for KeepPlace only.
	DefaultMaxWaiters = 1000
)

// A Replica is one process of the service, by a random number. The zero Replica
// is none.
type Replica int64

// An Attachment is one call that waits, by a random number. A place belongs to
// the lease_id; the attachment tells which call sits there now, so that one which
// was left does not take the place away from the one that came back. The zero
// Attachment is none.
type Attachment int64

// A Waiter is a place in the queue of a lock.
type Waiter struct {
	Place    int64 // the lock's revision when it was taken: the order of the queue
	Lease    Lease // what it is to get: no slot, token or instants yet
	Capacity int   // of a permit
	JoinedAt time.Time

	// Who sits there. A waiter is attached while its call lasts and its replica
	// lives; a detached one keeps its place for a while and is passed over.
	Attachment Attachment // zero: nobody
	Replica    Replica    // that serves the call
	Until      time.Time  // when the call is over
	AliveUntil time.Time  // until when that replica is known to live
	KeptUntil  time.Time  // when the place is given up

	// GrantedUnclaimed is whether the waiter was granted the lock, and its replica has not
	// fetched the grant yet.
	GrantedUnclaimed bool
}

// Attached is whether somebody is there to get the lock, as the replica self can
// tell at now: of its own waiters it knows.
func (w Waiter) Attached(now time.Time, self Replica) bool { return w.attachedAt(now, now, self) }

// attachedAt is Attached at an instant of the lock's time, while the clock, by
// which replicas live, may show an earlier one.
func (w *Waiter) attachedAt(now, clock time.Time, self Replica) bool {
	return (w.Replica == self || clock.Before(w.AliveUntil)) && w.Attachment != 0 && now.Before(w.Until)
}

// hasLapsed is whether nobody is there and the place is not kept any longer.
func (w Waiter) hasLapsed(now time.Time, self Replica) bool {
	return !w.Attached(now, self) && !now.Before(w.KeptUntil)
}

// attach seats the call of a.
func (w Waiter) attach(a Acquire, now time.Time) Waiter {
	w.Attachment, w.Replica = a.Attachment, a.Replica
	w.Until, w.AliveUntil = now.Add(a.Wait), now.Add(ReplicaTTL)
	w.KeptUntil = w.Until.Add(PlaceRetention)
	return w
}

// detach has nobody sit there, and keeps the place for a while.
func (w Waiter) detach(now time.Time) Waiter {
	w.Attachment, w.Replica, w.Until, w.AliveUntil = 0, 0, now, now
	w.KeptUntil = now.Add(PlaceRetention)
	w.GrantedUnclaimed = false
	return w
}

// isQueueFull returns how many places count as waiters, and reports whether those are most or more. A place
// counts while its call waits, and for KeepPlace after that: the place of a replica that
// has died is kept for longer, but must not keep new waiters out.
func (t *decider) isQueueFull(most int) (n int, full bool) {
	if len(t.record.Queue) < most {
		return len(t.record.Queue), false
	}
	for _, w := range t.record.Queue {
		if t.attached(w) || t.view.Now.Before(w.AliveUntil.Add(PlaceRetention)) {
			n++
		}
	}
	return n, n >= most
}

// nextDue returns when time alone will have changed the lock, zero if never.
func (t *decider) nextDue() time.Time {
	var first time.Time
	sooner := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for i := range t.record.Leases {
		sooner(t.record.Leases[i].EndsAt())
	}
	if t.paused() && len(t.record.Queue) > 0 {
		sooner(t.now.Add(t.view.GrantsPausedUntil.Sub(t.view.Now)))
	}
	lastMine := int64(math.MinInt64)
	for _, w := range slices.Backward(t.record.Queue) {
		if w.Replica == t.view.Self {
			lastMine = w.Place
			break
		}
	}
	for _, w := range t.record.Queue {
		if !w.GrantedUnclaimed {
			sooner(t.waiterDue(w, w.Place < lastMine))
		}
	}
	return first
}

// waiterDue returns when time alone changes what w means to this replica, which
// has a waiter of its own behind w or has none.
func (t *decider) waiterDue(w *Waiter, mineBehind bool) time.Time {
	if w.Replica == t.view.Self && t.attached(w) {
		return w.Until
	}
	alive := w.AliveUntil
	if !t.now.Before(alive) { // the lock's time is ahead of the clock
		alive = t.now.Add(w.AliveUntil.Sub(t.view.Now))
	}
	switch {
	case !t.attached(w):
		return w.KeptUntil
	case mineBehind && alive.Before(w.Until):
		return alive
	}
	return w.Until
}
