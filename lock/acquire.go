package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// Acquire takes the lock Name if it can be had beside the leases that there are
// and nobody waits ahead; else it waits in the queue for up to Wait, and is
// refused with ErrHeld after that. Sent again with the same LeaseID it is the same
// acquire: it returns the lease that the first gave, with what remains of it now,
// or waits on at its old place. There is no re-entrancy: another LeaseID is
// another holder, whatever Holder says.
type Acquire struct {
	Name     string
	LeaseID  LeaseID       // zero: the service draws one, and a lost answer cannot be asked for again
	Holder   string        // free text for people
	Mode     Mode          // zero: Exclusive
	Capacity int           // how many permits there are; of Permit only
	TTL      time.Duration // from the grant; zero: the bounds' default
	Grace    time.Duration
	MaxHold  time.Duration   // zero: no bound
	Metadata json.RawMessage // a JSON object, or nil

	// Wait is for how long to wait; zero to try only.
	Wait time.Duration
	// KeepPlace has the place be kept for KeepPlace when the wait is over, so that the
	// next call with the LeaseID finds it.
	KeepPlace bool

	// For those who store locks: the call that waits, who serves it, whether as many wait
	// in all as may, and whether the LeaseID was drawn for this call, so that there has
	// never been a lease with it.
	Attachment Attachment
	Replica    Replica
	Full       bool
	Drawn      bool

	maxWaiters int // at the lock, from the Bounds
}

// Resolve returns a with its defaults filled in, or an ErrInvalid error that
// names the field that breaks a bound.
func (a Acquire) Resolve(b Bounds) (Acquire, error) {
	a.TTL = cmp.Or(a.TTL, b.DefaultTTL)
	a.Mode = cmp.Or(a.Mode, Exclusive)
	a.maxWaiters = b.MaxWaiters
	return a, cmp.Or(
		CheckName(a.Name),
		checkText("holder", a.Holder, 1, MaxHolderLength),
		checkMode(a.Mode, a.Capacity),
		a.checkKeepPlace(),
		checkDuration("ttl_ms", a.TTL, b.MinTTL, b.MaxTTL),
		checkDuration("grace_ms", a.Grace, 0, b.MaxGrace),
		checkDuration("wait_ms", a.Wait, 0, MaxWait),
		checkMaxHold(a.MaxHold, b.MinTTL),
		checkMetadata(a.Metadata),
	)
}

func checkMode(m Mode, capacity int) error {
	switch {
	case m.String() == "unknown":
		return Invalid("mode", "is not one that exists; use exclusive, shared or permit")
	case m != Permit && capacity != 0:
		return Invalid("capacity", "goes with the mode permit only; leave it out")
	case m == Permit && (capacity < 1 || capacity > MaxHolders):
		return Invalid("capacity", "is %d; give 1 to %d, how many permits there are", capacity, MaxHolders)
	}
	return nil
}

func (a Acquire) checkKeepPlace() error {
	if a.KeepPlace && a.LeaseID == (LeaseID{}) {
		return Invalid("keep_place", "needs a lease_id of your own, by which the next call finds the place")
	}
	return nil
}

func checkMaxHold(d, least time.Duration) error {
	if d == 0 {
		return nil
	}
	return checkDuration("max_hold_ms", d, least, MaxHold)
}

// Names returns the lock's name.
func (a Acquire) Names() []string { return []string{a.Name} }

// Refs returns the lease of a.
func (a Acquire) Refs() []LeaseRef {
	if a.Drawn {
		return nil
	}
	return []LeaseRef{RefOf(a.Name, a.LeaseID)}
}

// Needs allows for a token, the grant, and the end of a lease before it.
func (a Acquire) Needs() (tokens, events int) { return 1, 2 }

// Apply grants the lease, or finds the one that an earlier call with the same
// LeaseID got, or its place. A lease that has ended is never granted again under
// its LeaseID.
func (a Acquire) Apply(v View) Decision {
	t := newDecider(v)
	if l, ok := t.lease(a.LeaseID); ok {
		if !a.matches(l) || a.Capacity != 0 && a.Capacity != t.record.Capacity {
			return t.finish(errInUse())
		}
		first := t.isUndelivered(l)
		return t.finishWithLease(t.claim(l, a.Attachment), !first)
	}
	if w, ok := t.waiter(a.LeaseID); ok {
		if !a.matches(w.Lease) || a.Capacity != w.Capacity {
			return t.finish(errInUse())
		}
		return t.resumeWait(a, w)
	}
	if _, over := t.endOf(a.LeaseID); over {
		return t.finish(t.errLost(a.LeaseID))
	}
	if c := t.record.capacityInUse(); a.Mode == Permit && c != 0 && c != a.Capacity {
		return t.finish(&Error{Code: ErrCapacityMismatch, Capacity: c, Detail: fmt.Sprintf(
			"The lock has %d permits, not %d, while any is out or waited for. Ask with that capacity, or wait until all are back.",
			c, a.Capacity)})
	}
	if t.canGrant(a) {
		return t.finishWithLease(t.grant(a.newLease(), a.Capacity, 0), false)
	}
	return t.enqueue(a)
}

// newLease returns the lease that a asks for.
func (a Acquire) newLease() Lease {
	return Lease{
		ID: a.LeaseID, Name: a.Name, Mode: a.Mode, Holder: a.Holder, TTL: a.TTL, Grace: a.Grace,
		MaxHold: a.MaxHold, Metadata: a.Metadata, Attachment: a.Attachment,
	}
}

// matches is whether l is what a asks for.
func (a Acquire) matches(l Lease) bool { return l.Holder == a.Holder && l.Mode == a.Mode }

func errInUse() error {
	return &Error{Code: ErrLeaseIDInUse,
		Detail: "The lease_id is that of a lease, or of a waiter, with another holder, mode or capacity. " +
			"Choose a new random UUID for each acquire."}
}

// capacityInUse returns the capacity of the permits that are out, or waited for;
// zero if there are none.
func (s Record) capacityInUse() int {
	if s.Capacity != 0 {
		return s.Capacity
	}
	for _, w := range s.Queue {
		if w.Lease.Mode == Permit {
			return w.Capacity
		}
	}
	return 0
}

// canGrant is whether the lock can be had at once: after those who wait were
// served as far as may be, nobody who is there still waits.
func (t *decider) canGrant(a Acquire) bool {
	return !t.paused() && !t.hasAttachedWaiter() && t.record.isCompatible(a.Mode, a.Capacity)
}
