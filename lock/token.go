package lock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// A Token is a fencing token. A grant that was requested after another grant was answered has the greater token, at
// whatever locks, and of two conflicting grants of a lock the later one has. Only a shared lease that joins others has
// their token. Tokens are positive and at most MaxToken, and have gaps.
type Token int64

const (
	// MaxToken is the greatest token: 2⁵³−1, which JavaScript can represent exactly.
	MaxToken Token = 1<<53 - 1
	// MaxTokens is the most tokens that one decision grants.
	MaxTokens = 256
)

// Provisional returns the n-th provisional token, n from 0 on. It stands for a token that is not known until the
// decision is stored: it is greater than every token, and grows with n. See [Decision.SetTokens].
func Provisional(n int) Token { return MaxToken + 1 + Token(n) }

// IsProvisional reports whether the token is provisional.
func (t Token) IsProvisional() bool { return t > MaxToken }

// Known returns the token that a provisional one stands for if first is that of Provisional(0), and other tokens as
// they are.
func (t Token) Known(first Token) Token {
	if t.IsProvisional() {
		return first + t - Provisional(0)
	}
	return t
}

// SetTokens replaces the provisional tokens of the record by known ones, see [Token.Known].
func (r *Record) SetTokens(first Token) {
	r.Token = r.Token.Known(first)
	setTokens(r.Leases, first)
}

// setTokens replaces provisional tokens. It writes nothing else: other records may share the leases.
func setTokens(leases []Lease, first Token) {
	for i := range leases {
		if l := &leases[i]; l.Token.IsProvisional() {
			l.Token = l.Token.Known(first)
		}
	}
}

// SetTokens replaces the provisional tokens of the event by known ones, see [Token.Known].
func (e *Event) SetTokens(first Token) {
	e.Token, e.Newest = e.Token.Known(first), e.Newest.Known(first)
}

// SetTokens replaces all provisional tokens of the decision by known ones, see [Token.Known].
func (d *Decision) SetTokens(first Token) {
	for i := range d.Locks {
		d.Locks[i].SetTokens(first)
	}
	for i := range d.Events {
		d.Events[i].SetTokens(first)
	}
	for i := range d.Ended {
		d.Ended[i].Token = d.Ended[i].Token.Known(first)
	}
	d.Lease.Token = d.Lease.Token.Known(first)
	setTokens(d.Members, first)
	if e := (*Error)(nil); errors.As(d.Err, &e) {
		e.Token, e.Newest = e.Token.Known(first), e.Newest.Known(first) // a Detail has no token that may be provisional
	}
}

// tokenKey is the context key of a Token.
type tokenKey struct{}

// WithToken returns a context that carries the token of the lease under which the work runs. Code that writes gets it
// with TokenFrom. It replaces a token that ctx carries already.
func WithToken(ctx context.Context, t Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, t)
}

// TokenFrom returns the token that ctx carries, false if it carries none.
func TokenFrom(ctx context.Context) (Token, bool) {
	t, ok := ctx.Value(tokenKey{}).(Token)
	return t, ok
}

// A Verify asks for the status of a token, like Chubby's CheckSequencer.
type Verify struct {
	Name  string
	Token Token
	Slot  *int // the required slot; nil: any
}

// Resolve returns v, or an ErrInvalid error that names the invalid field.
func (v Verify) Resolve() (Verify, error) {
	return v, cmp.Or(CheckName(v.Name), checkToken(v.Token), checkSlot(v.Slot))
}

// A TokenStatus is the status of a token of a lock.
type TokenStatus string

// The statuses of a token.
const (
	// Current: the token's lease is active, or in grace.
	Current TokenStatus = "current"
	// Ended: the token is the newest, and its lease has ended.
	Ended TokenStatus = "ended"
	// Stale: a greater token has been granted.
	Stale TokenStatus = "stale"
	// Unknown: the token was never granted for this lock.
	Unknown TokenStatus = "unknown"
)

// A Verification is the answer to Verify. It holds for the instant CheckedAt; later the token may be stale. Only a
// check at the resource, see CheckFence, prevents stale writes.
type Verification struct {
	Name      string
	Token     Token
	Status    TokenStatus
	Newest    Token // the newest granted; zero if there was none
	CheckedAt time.Time
	Remaining time.Duration // until the lease expires; zero unless Current
}

// NeedsLockedRead reports whether only the clock says that the token's lease has ended: r still contains the lease,
// but the status is not Current. The status may be wrong if r was read before a renewal was stored. Read r again then,
// with other decisions excluded.
func (v Verify) NeedsLockedRead(r Record, now time.Time) bool {
	return slices.ContainsFunc(r.Leases, v.refersTo) && v.Check(r, now).Status != Current
}

// refersTo reports whether the token is that of the lease, and the lease is not revoked. The token of an intention is
// that of a lock below.
func (v Verify) refersTo(l Lease) bool {
	return l.Token == v.Token && !l.Mode.IsIntention() && !l.Revoked() && (v.Slot == nil || *v.Slot == l.Slot)
}

// Check returns the status of the token at now.
func (v Verify) Check(r Record, now time.Time) Verification {
	d := Verification{Name: v.Name, Token: v.Token, Newest: r.Token, CheckedAt: now}
	for _, l := range r.ActiveLeases(now) {
		if v.refersTo(l) {
			d.Status, d.Remaining = Current, max(l.ExpiresAt.Sub(now), 0)
			return d
		}
	}
	switch {
	case v.Token > r.Token:
		d.Status = Unknown
	case v.Token == r.Token:
		d.Status = Ended
	default:
		d.Status = Stale
	}
	return d
}
