package lock

import (
	"cmp"
	"slices"
	"time"
)

// A Verify asks whether a token guards a lock at this instant, as Chubby's
// CheckSequencer does.
type Verify struct {
	Name  string
	Token Token
	Slot  *int // the slot that it must sit in; nil: any
}

// Resolve returns v, or an ErrInvalid error that names the field that breaks a bound.
func (v Verify) Resolve() (Verify, error) {
	return v, cmp.Or(CheckName(v.Name), checkToken(v.Token), checkSlot(v.Slot))
}

// A TokenStatus says how a token stands to its lock.
type TokenStatus string

// How a token can stand.
const (
	// Current: the token's lease is not over.
	Current TokenStatus = "current"
	// Ended: no token is newer, yet the token's lease is over.
	Ended TokenStatus = "ended"
	// Stale: a greater token has been granted.
	Stale TokenStatus = "stale"
	// Unknown: the token was never granted for this lock.
	Unknown TokenStatus = "unknown"
)

// A Verification is the answer to Verify. It is true of the instant CheckedAt and is
// advice from then on: only a check where the write lands is more.
type Verification struct {
	Name      string
	Token     Token
	Status    TokenStatus
	Newest    Token // the newest granted; zero if there was none
	CheckedAt time.Time
	Remaining time.Duration // until the lease's end; zero unless Current
}

// RestsOnTime reports whether the verdict rests on nothing but time: no one has written that the token's lease is over, but
// it is past its end. A renewal that was decided before may still be on its way into the state.
func (v Verify) RestsOnTime(s Record, now time.Time) bool {
	return slices.ContainsFunc(s.Leases, v.refersTo) && v.Check(s, now).Status != Current
}

// refersTo reports whether the token is that of the lease, which was not revoked.
func (v Verify) refersTo(l Lease) bool {
	return l.Token == v.Token && !l.Revoked() && (v.Slot == nil || *v.Slot == l.Slot)
}

// Check decides on the token that v shows.
func (v Verify) Check(s Record, now time.Time) Verification {
	d := Verification{Name: v.Name, Token: v.Token, Newest: s.Token, CheckedAt: now}
	for _, l := range s.ActiveLeases(now) {
		if v.refersTo(l) {
			d.Status, d.Remaining = Current, max(l.ExpiresAt.Sub(now), 0)
			return d
		}
	}
	switch {
	case v.Token > s.Token:
		d.Status = Unknown
	case v.Token == s.Token:
		d.Status = Ended
	default:
		d.Status = Stale
	}
	return d
}
