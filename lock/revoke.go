package lock

import (
	"cmp"
	"fmt"
)

// Revoke is an operator taking a lease away. It names the token that it means to
// oust, so that it cannot hit a lease granted meanwhile, and the reason, which
// the ousted holder and the events show.
type Revoke struct {
	Name   string
	Token  Token
	Reason string
}

// Resolve returns r, or an ErrInvalid error that names the field that breaks a bound.
func (r Revoke) Resolve() (Revoke, error) {
	return r, cmp.Or(
		CheckName(r.Name),
		checkToken(r.Token),
		checkText("reason", r.Reason, 1, MaxReasonLength),
	)
}

func checkToken(t Token) error {
	if t < 1 || t > MaxToken {
		return Invalid("fencing_token", "is %d; give 1 to %d", t, MaxToken)
	}
	return nil
}

// Names returns the lock's name.
func (r Revoke) Names() []string { return []string{r.Name} }

// Refs returns nothing: a revocation shows no lease_id.
func (r Revoke) Refs() []LeaseRef { return nil }

// Draws allows for the end of the lease.
func (r Revoke) Draws() (tokens, events int) { return 0, 1 }

// Apply ends the lease that has the token. Sent again it succeeds for as long as
// nobody was granted the lock since.
func (r Revoke) Apply(v View) Decision {
	t := begin(v)
	for _, l := range t.state.Leases {
		if l.Token == r.Token {
			t.end(l, Revoked, r.Reason)
			return t.decided(nil)
		}
	}
	if t.state.Token == r.Token && t.state.End == Revoked {
		return t.decided(nil)
	}
	return t.decided(t.mismatch(r.Token))
}

func (t *turn) mismatch(shown Token) error {
	now := "nobody holds the lock now"
	if len(t.state.Leases) > 0 {
		now = fmt.Sprintf("token %d of %q holds the lock now", t.state.Leases[0].Token, t.state.Leases[0].Holder)
	}
	return &Error{Code: ErrTokenMismatch, Token: shown, Newest: t.state.Token,
		Detail: fmt.Sprintf("Token %d does not hold the lock; %s. Look at the lock again before revoking.", shown, now)}
}
