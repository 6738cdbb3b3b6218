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

// A Standing says how a token stands to its lock.
type Standing string

// How a token can stand.
const (
	// Current: the token's lease is not over.
	Current Standing = "current"
	// Ended: no token is newer, yet the token's lease is over.
	Ended Standing = "ended"
	// Stale: a greater token has been granted.
	Stale Standing = "stale"
	// Unknown: the token was never granted for this lock.
	Unknown Standing = "unknown"
)

// A Verdict is the answer to Verify. It is true of the instant CheckedAt and is
// advice from then on: only a check where the write lands is more.
type Verdict struct {
	Name      string
	Token     Token
	Standing  Standing
	Newest    Token // the newest granted; zero if there was none
	CheckedAt time.Time
	Remaining time.Duration // until the lease's end; zero unless Current
}

// RestsOnTime reports whether the verdict rests on nothing but time: no one has written that the token's lease is over, but
// it is past its end. A renewal that was decided before may still be on its way into the state.
func (v Verify) RestsOnTime(s State, now time.Time) bool {
	return slices.ContainsFunc(s.Leases, v.about) && v.Verdict(s, now).Standing != Current
}

// about reports whether the token is that of the lease, which was not revoked.
func (v Verify) about(l Lease) bool {
	return l.Token == v.Token && !l.Revoked() && (v.Slot == nil || *v.Slot == l.Slot)
}

// Verdict decides on the token that v shows.
func (v Verify) Verdict(s State, now time.Time) Verdict {
	d := Verdict{Name: v.Name, Token: v.Token, Newest: s.Token, CheckedAt: now}
	for _, l := range s.Live(now) {
		if v.about(l) {
			d.Standing, d.Remaining = Current, max(l.ExpiresAt.Sub(now), 0)
			return d
		}
	}
	switch {
	case v.Token > s.Token:
		d.Standing = Unknown
	case v.Token == s.Token:
		d.Standing = Ended
	default:
		d.Standing = Stale
	}
	return d
}
