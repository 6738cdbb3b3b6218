package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// Acquire takes the lock Name if nobody has it, and is refused with ErrHeld
// otherwise. Sent again with the same LeaseID it is the same acquire: it returns
// the lease that the first gave, with what remains of it now. There is no
// re-entrancy: another LeaseID is another holder, whatever Holder says.
type Acquire struct {
	Name     string
	LeaseID  LeaseID // zero: the service draws one, and a lost answer cannot be asked for again
	Holder   string  // free text for people
	Mode     Mode
	TTL      time.Duration // zero: the bounds' default
	Grace    time.Duration
	MaxHold  time.Duration   // zero: no bound
	Metadata json.RawMessage // a JSON object, or nil
}

// Resolve returns a with its defaults filled in, or an ErrInvalid error that
// names the field that breaks a bound.
func (a Acquire) Resolve(b Bounds) (Acquire, error) {
	a.TTL = cmp.Or(a.TTL, b.DefaultTTL)
	if a.Mode == 0 {
		a.Mode = Exclusive
	}
	if a.Mode != Exclusive {
		return a, Invalid("mode", "is not one that exists; use exclusive")
	}
	return a, cmp.Or(
		CheckName(a.Name),
		checkText("holder", a.Holder, 1, MaxHolderLength),
		checkDuration("ttl_ms", a.TTL, b.MinTTL, b.MaxTTL),
		checkDuration("grace_ms", a.Grace, 0, b.MaxGrace),
		checkMaxHold(a.MaxHold, b.MinTTL),
		checkMetadata(a.Metadata),
	)
}

func checkMaxHold(d, least time.Duration) error {
	if d == 0 {
		return nil
	}
	return checkDuration("max_hold_ms", d, least, LongestHold)
}

// Names returns the lock's name.
func (a Acquire) Names() []string { return []string{a.Name} }

// Refs returns the lease of a.
func (a Acquire) Refs() []LeaseRef { return []LeaseRef{RefOf(a.Name, a.LeaseID)} }

// Draws allows for a token, the grant, and the end of a lease before it.
func (a Acquire) Draws() (tokens, events int) { return 1, 2 }

// Apply grants the lease, or finds the one that an earlier call with the same
// LeaseID got. A lease that has ended is never granted again under its LeaseID.
func (a Acquire) Apply(v View) Decision {
	t := begin(v)
	if l, ok := t.lease(a.LeaseID); ok {
		if l.Holder != a.Holder || l.Mode != a.Mode {
			return t.decided(&Error{Code: ErrLeaseIDInUse,
				Detail: "The lease_id is that of a lease with another holder or mode. Choose a new random UUID for each acquire."})
		}
		d := t.decided(nil)
		d.Grant, d.Replay = l, true
		return d
	}
	if _, over := t.ending(v, a.LeaseID); over {
		return t.decided(t.lost(v, a.LeaseID))
	}
	if len(t.state.Leases) > 0 {
		return t.decided(t.held(t.state.Leases[0]))
	}
	l := Lease{
		ID: a.LeaseID, Name: a.Name, Mode: a.Mode, Holder: a.Holder, Token: v.Tokens(),
		TTL: a.TTL, Grace: a.Grace, MaxHold: a.MaxHold, AcquiredAt: t.now, Metadata: a.Metadata,
	}
	l.ExpiresAt = l.endFrom(t.now)
	t.grant(l)
	d := t.decided(nil)
	d.Grant = l
	return d
}

func (t *turn) held(l Lease) error {
	wait := l.OverAt().Sub(t.now)
	return &Error{
		Code: ErrHeld, Holder: l.Holder, Newest: l.Token, RetryAfter: wait,
		Detail: fmt.Sprintf("%q holds the lock. Try again later: the lease ends in %d ms unless it is renewed.",
			l.Holder, wait.Milliseconds()),
	}
}
