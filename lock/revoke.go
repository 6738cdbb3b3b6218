package lock

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Revoke is an operator taking leases away. It names the token that it means to
// oust, so that it cannot hit a lease granted meanwhile, and the reason, which
// the ousted holders and the events show. The leases of a shared phase have one
// token, and go together unless Slot picks one. A slot may have been taken by the
// next reader since, with the same token: AcquiredAt tells them apart.
//
// The lease ends at once. Conflicting grants wait until its grace, counted from the
// revocation, is over; if it was in its grace already, until that grace is over. SkipGrace
// skips the grace, also that of a lease that was revoked before. A lease that no client
// was told of has no grace.
type Revoke struct {
	Name       string
	Token      Token
	Slot       *int      // nil: whichever the token sits in
	AcquiredAt time.Time // of the one lease that is meant, as the lock shows it; zero: whenever that was
	Reason     string
	SkipGrace  bool // do not wait for the grace
}

// Resolve returns r, or an ErrInvalid error that names the field that breaks a bound.
func (r Revoke) Resolve() (Revoke, error) {
	return r, cmp.Or(
		CheckName(r.Name),
		checkToken(r.Token),
		checkSlot(r.Slot),
		checkText("reason", r.Reason, 1, MaxReasonLength),
	)
}

func checkToken(t Token) error {
	if t < 1 || t > MaxToken {
		return Invalid("fencing_token", "is %d; give 1 to %d", t, MaxToken)
	}
	return nil
}

func checkSlot(slot *int) error {
	if slot != nil && (*slot < 0 || *slot > MaxHolders) {
		return Invalid("slot", "is %d; give 0 to %d", *slot, MaxHolders)
	}
	return nil
}

// Names returns the lock's name.
func (r Revoke) Names() []string { return []string{r.Name} }

// Refs returns nothing: a revocation shows no lease_id.
func (r Revoke) Refs() []LeaseRef { return nil }

// Needs allows for the end of the lease.
func (r Revoke) Needs() (tokens, events int) { return 0, 1 }

// Apply ends the leases that are meant. Sent again it succeeds while a lease that it
// ended is in its grace, and after that until the next grant, unless another lease has
// the token.
func (r Revoke) Apply(v View) Decision {
	t := newDecider(v)
	meant := slices.DeleteFunc(slices.Clone(t.record.Leases), func(l Lease) bool { return !r.matches(l) })
	for _, l := range meant {
		t.revoke(l, r)
	}
	if len(meant) > 0 {
		t.promote()
		return t.finish(nil)
	}
	if t.record.Token == r.Token && t.record.LastEnd == Revoked {
		return t.finish(nil)
	}
	return t.finish(t.errTokenMismatch(r))
}

// revoke ends the lease, and its grace if r says so.
func (t *decider) revoke(l Lease, r Revoke) {
	left := l.revokedAt(t.now)
	switch {
	case l.Revoked() && r.SkipGrace:
		t.removeLease(l)
		t.emit(Event{Kind: Revoked, Reason: r.Reason}, l)
	case l.Revoked():
	case r.SkipGrace || t.isUndelivered(l) || !t.now.Before(left.EndsAt()):
		t.endLease(l, Revoked, r.Reason)
	default:
		t.replaceLease(left)
		t.setLastEnd(left, Revoked)
		t.emit(Event{Kind: Revoked, Reason: r.Reason, Ref: RefOf(t.record.Name, l.ID)}, left)
	}
}

func (r Revoke) matches(l Lease) bool {
	return l.Token == r.Token && (r.Slot == nil || *r.Slot == l.Slot) &&
		(r.AcquiredAt.IsZero() || r.AcquiredAt.Equal(l.AcquiredAt))
}

func (t *decider) errTokenMismatch(r Revoke) error {
	now := "nobody holds the lock now"
	if first, ok := t.record.firstUnrevoked(); ok {
		now = fmt.Sprintf("token %d of %q holds the lock now", first.Token, first.Holder)
	}
	what := fmt.Sprintf("Token %d does not hold the lock; %s", r.Token, now)
	if slices.ContainsFunc(t.record.Leases, func(l Lease) bool { return l.Token == r.Token && !l.Revoked() }) {
		what = fmt.Sprintf("Others hold the lock under token %d, and the lease that is meant has ended", r.Token)
	}
	return &Error{Code: ErrTokenMismatch, Token: r.Token, Newest: t.record.Token,
		Detail: what + ". Look at the lock again before revoking."}
}
