package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// Acquire acquires the lock Name. If it conflicts with a lease or an earlier waiter, it waits in the queue for up to
// Wait, and is refused with ErrHeld after that.
//
// An Acquire with the same LeaseID is the same request: it returns the lease that the first one was granted, with its
// remaining time, or continues to wait at the same place. Another LeaseID is another request, even for the same
// Holder: locks are not re-entrant.
type Acquire struct {
	Name     string
	LeaseID  LeaseID         // zero: the service generates one, and the request cannot be retried
	Holder   string          // free text for people: 1 to MaxHolderLength characters
	Mode     Mode            // zero: Exclusive
	Capacity int             // number of permits, 1 to MaxHolders; Permit only
	TTL      time.Duration   // from the grant, within the Bounds; zero: their default
	Grace    time.Duration   // within the Bounds
	MaxHold  time.Duration   // from the Bounds' MinTTL to the constant MaxHold; zero: unlimited
	Metadata json.RawMessage // a JSON object of up to MaxMetadataSize bytes, or nil
	// SessionID makes the lease one of that session: it ends when the session does, so TTL and Grace must be zero. Zero: the
	// lease is renewed by itself.
	SessionID SessionID

	// Wait is how long to wait, up to MaxWait. Zero means not to wait.
	Wait time.Duration
	// KeepPlace keeps the place in the queue for PlaceRetention after the wait has ended, so that the next call with
	// the LeaseID resumes there. It requires a LeaseID.
	KeepPlace bool

	// Services set these before Apply. They are zero in a request.
	Attachment   Attachment // the waiting call
	Replica      Replica    // the replica that serves it
	GeneratedID  bool       // LeaseID was generated for this call: no lease has ever had it
	LimitReached bool       // the service's limit on waiting calls is reached: a may be granted, but not join a queue
	SessionFull  bool       // the session has as many leases and places as one may have: a may only find what it has

	maxWaiters       int       // of the lock, from the Bounds
	sessionExpiresAt time.Time // from the View
}

// Resolve returns a with its defaults filled in, or an ErrInvalid error that names the invalid field.
func (a Acquire) Resolve(b Bounds) (Acquire, error) {
	a.Mode = cmp.Or(a.Mode, Exclusive)
	a.maxWaiters = b.MaxWaiters
	times := a.resolveTimes(b)
	return a, cmp.Or(
		CheckName(a.Name),
		checkText("holder", a.Holder, 1, MaxHolderLength),
		checkMode(a.Mode, a.Capacity),
		a.checkKeepPlace(),
		times,
		checkDuration("wait_ms", a.Wait, 0, MaxWait),
		checkMaxHold(a.MaxHold, b.MinTTL),
		checkMetadata(a.Metadata),
	)
}

func checkMode(m Mode, capacity int) error {
	switch {
	case m.String() == "unknown":
		return Invalid("mode", "is invalid; use exclusive, shared or permit")
	case m != Permit && capacity != 0:
		return Invalid("capacity", "is only valid with mode permit; leave it out")
	case m == Permit && (capacity < 1 || capacity > MaxHolders):
		return Invalid("capacity", "is %d; give 1 to %d, the number of permits", capacity, MaxHolders)
	}
	return nil
}

// resolveTimes sets the TTL, unless the lease is one of a session, which has none of its own.
func (a *Acquire) resolveTimes(b Bounds) error {
	switch {
	case a.SessionID == SessionID{}:
		a.TTL = cmp.Or(a.TTL, b.DefaultTTL)
		return cmp.Or(checkDuration("ttl_ms", a.TTL, b.MinTTL, b.MaxTTL), checkDuration("grace_ms", a.Grace, 0, b.MaxGrace))
	case a.TTL != 0:
		return Invalid("ttl_ms", "cannot be combined with session_id: the lease ends with the session; leave it out")
	case a.Grace != 0:
		return Invalid("grace_ms", "cannot be combined with session_id: the grace is that of the session; leave it out")
	}
	return nil
}

func (a Acquire) checkKeepPlace() error {
	if a.KeepPlace && a.LeaseID == (LeaseID{}) {
		return Invalid("keep_place", "requires a lease_id, by which the next call finds the place")
	}
	return nil
}

func checkMaxHold(d, minTTL time.Duration) error {
	if d == 0 {
		return nil
	}
	return checkDuration("max_hold_ms", d, minTTL, MaxHold)
}

// Names returns the lock's name.
func (a Acquire) Names() []string { return []string{a.Name} }

// Refs returns the lease of a, unless no lease can have had its ID.
func (a Acquire) Refs() []LeaseRef {
	if a.GeneratedID {
		return nil
	}
	return []LeaseRef{RefOf(a.Name, a.LeaseID)}
}

// Tokens returns 1, for the grant.
func (a Acquire) Tokens() int { return 1 }

// Apply grants the lease, or finds the lease or the place of an earlier call with the same LeaseID. A LeaseID whose
// lease has ended is never granted again.
func (a Acquire) Apply(v View) Decision {
	d := newDecider(v)
	if err := d.checkSession(a.SessionID); err != nil {
		return d.finish(err)
	}
	if s := d.session(a.SessionID); s != nil {
		a.TTL, a.Grace, a.sessionExpiresAt = s.TTL, s.Grace, s.ExpiresAt
	}
	if l, ok := d.lease(a.LeaseID); ok {
		if !a.matches(l) || a.Capacity != 0 && a.Capacity != d.record.Capacity {
			return d.finish(errInUse())
		}
		first := d.isUndelivered(l)
		return d.finishWithLease(d.claim(l, a.Attachment), !first)
	}
	if w, ok := d.waiter(a.LeaseID); ok {
		if !a.matches(w.Lease) || a.Capacity != w.Capacity {
			return d.finish(errInUse())
		}
		return d.resumeWait(a, w)
	}
	if _, ended := d.endOf(a.LeaseID); ended {
		return d.finish(d.errLost(a.LeaseID))
	}
	if a.SessionFull {
		return d.finish(&Error{Code: ErrTooManyLeases, Detail: "The session has as many leases and places as one may have. " +
			"Release some, or acquire in another session."})
	}
	if c := d.record.capacityInUse(); a.Mode == Permit && c != 0 && c != a.Capacity {
		return d.finish(&Error{Code: ErrCapacityMismatch, Capacity: c, Detail: fmt.Sprintf(
			"The lock has capacity %d, not %d, while any permit is held or waited for. "+
				"Use that capacity, or wait until all permits are released.", c, a.Capacity)})
	}
	if d.canGrant(a) {
		return d.finishWithLease(d.grant(a.newLease(), a.Capacity, 0), false)
	}
	return d.enqueue(a)
}

// newLease returns the requested lease.
func (a Acquire) newLease() Lease {
	return Lease{
		ID: a.LeaseID, Name: a.Name, Mode: a.Mode, Holder: a.Holder, TTL: a.TTL, Grace: a.Grace,
		MaxHold: a.MaxHold, Metadata: a.Metadata, Attachment: a.Attachment, Session: a.SessionID.Ref(),
		ExpiresAt: a.sessionExpiresAt,
	}
}

// matches reports whether l has the holder, the mode and the session of a.
func (a Acquire) matches(l Lease) bool {
	return l.Holder == a.Holder && l.Mode == a.Mode && l.Session == a.SessionID.Ref()
}

func errInUse() error {
	return &Error{Code: ErrLeaseIDInUse,
		Detail: "The lease_id belongs to a lease or a waiter with another holder, mode, capacity or session. " +
			"Use a new random UUID for each acquire."}
}

// capacityInUse returns the capacity of the permits that are held or waited for, zero if there are none.
func (r Record) capacityInUse() int {
	if r.Capacity != 0 {
		return r.Capacity
	}
	for _, w := range r.Queue {
		if w.Lease.Mode == Permit {
			return w.Capacity
		}
	}
	return 0
}

// canGrant reports whether a can be granted at once: no attached waiter is ahead, and no lease conflicts.
func (d *decider) canGrant(a Acquire) bool {
	return !d.paused() && !d.hasAttachedWaiter() && d.record.isCompatible(a.Mode, a.Capacity)
}
