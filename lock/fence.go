package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// CheckFence checks whether a resource may accept a write with the token. seen is the greatest token that the resource
// has accepted, zero for none. newest is the newest token granted for the lock. A holder may write any number of times
// with its token.
//
// It refuses a token lower than seen or newest with ErrStaleToken, so that a paused holder is rejected even before
// the next holder's first write. It refuses a token greater than newest with ErrUnknownToken.
//
// The rule is that of Chubby's sequencers (Burrows, OSDI 2006) and of Kleppmann's
// "How to do distributed locking" (2016).
func CheckFence(token, seen, newest Token) error {
	switch greatest := max(seen, newest); {
	case token < greatest:
		return &Error{Code: ErrStaleToken, Token: token, Newest: greatest,
			Detail: fmt.Sprintf("Token %d is stale: token %d has been granted or seen. "+
				"The lease is lost; stop the work.", token, greatest)}
	case token > newest:
		return &Error{Code: ErrUnknownToken, Token: token, Newest: newest,
			Detail: fmt.Sprintf("Token %d was never granted for this lock. "+
				"Send the fencing_token that acquire returned for it.", token)}
	}
	return nil
}

// A FencedWrite writes Value under Key if CheckFence accepts Token, which the lock named Lock has granted.
type FencedWrite struct {
	Key   string
	Lock  string
	Token Token
	Slot  int // of a permit; zero: the token must be the newest of the lock
	// InTree says that the lock is in a tree. Then a lease with the token must be active: a lock above may have been
	// granted since the lease has ended. Services set it.
	InTree    bool
	Value     json.RawMessage
	IfVersion *int64 // the required version; nil: any; zero: the resource must not exist
	// OperationID identifies the write among those to Key. Repeated for OperationTTL, under whatever token, the write
	// counts once. Empty: the write is no operation.
	OperationID string
	// Done says that a write with the OperationID was committed before. Services set it.
	Done bool
}

// OperationTTL is how long a service remembers the OperationID of a FencedWrite, at least.
const OperationTTL = 30 * 24 * time.Hour

// Resolve returns w with its value in compact form, or an ErrInvalid error that names the invalid field.
func (w FencedWrite) Resolve() (FencedWrite, error) {
	if err := cmp.Or(CheckNameOf("key", w.Key), CheckNameOf("lock", w.Lock), checkToken(w.Token)); err != nil {
		return w, err
	}
	if w.IfVersion != nil && *w.IfVersion < 0 {
		return w, Invalid("if_version", "is %d; give 0 or more", *w.IfVersion)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, w.Value); err != nil || !utf8.Valid(w.Value) {
		return w, Invalid("value", "must be JSON in UTF-8")
	}
	w.Value = compact.Bytes()
	err := cmp.Or(checkNumbers("value", w.Value), checkSlot(&w.Slot))
	if w.OperationID != "" {
		err = cmp.Or(err, checkText("operation_id", w.OperationID, 1, MaxOperationIDLength))
	}
	return w, err
}

// RequiredToken returns the token that the write must have: the newest granted for the lock or, with a Slot, that of
// the permit in the slot. Permits have different tokens, so they must guard one resource for each slot. RequiredToken
// refuses with ErrStaleToken if the slot has no permit or, in a tree, if no active lease has the token.
func (w FencedWrite) RequiredToken(r Record, now time.Time) (Token, error) {
	if w.Slot == 0 && (!w.InTree || w.Token > r.Token) {
		return r.Token, nil
	}
	for _, l := range r.ActiveLeases(now) {
		if l.Revoked() || l.Mode.IsIntention() {
			continue
		}
		if w.Slot > 0 && l.hasSlot(&w.Slot) || w.Slot == 0 && w.Token == l.Token {
			return l.Token, nil
		}
	}
	e := &Error{Code: ErrStaleToken, Token: w.Token, Newest: r.Token,
		Detail: fmt.Sprintf("Slot %d has no lease. The permit has ended; stop the work.", w.Slot)}
	if w.Slot == 0 {
		e.Detail = fmt.Sprintf("The lease with token %d has ended, and locks above and below may have been granted since. Stop the work.", w.Token)
	}
	return 0, e
}

// A FencedValue is a resource that the service itself provides, as an example of fencing: a value that only the holder
// of the newest token can change.
type FencedValue struct {
	Key       string
	Lock      string
	Token     Token // of the last write: the greatest accepted
	Version   int64 // number of writes; zero if it does not exist
	Value     json.RawMessage
	WrittenAt time.Time
}

// Apply returns f after the write at now, where newest is the result of RequiredToken. It returns the errors of CheckFence,
// or ErrVersionMismatch. A write that is Done, or a repeated write with the same IfVersion, succeeds and changes nothing.
func (w FencedWrite) Apply(f FencedValue, newest Token, now time.Time) (FencedValue, error) {
	if err := CheckFence(w.Token, f.Token, newest); err != nil {
		return f, err
	}
	if w.Done {
		return f, nil
	}
	if w.IfVersion != nil && *w.IfVersion != f.Version {
		if w.repeats(f) {
			return f, nil
		}
		return f, &Error{Code: ErrVersionMismatch, Version: f.Version,
			Detail: fmt.Sprintf("The resource is at version %d, not %d. Read it again before you retry.",
				f.Version, *w.IfVersion)}
	}
	return FencedValue{
		Key: w.Key, Lock: w.Lock, Token: w.Token, Version: f.Version + 1, Value: w.Value, WrittenAt: now,
	}, nil
}

// repeats reports whether w was the last write of f.
func (w FencedWrite) repeats(f FencedValue) bool {
	return f.Version == *w.IfVersion+1 && f.Token == w.Token && f.Lock == w.Lock && bytes.Equal(f.Value, w.Value)
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

// refersTo reports whether the token is that of the lease, and the lease is not revoked.
func (v Verify) refersTo(l Lease) bool {
	return l.hasToken(v.Token) && !l.Revoked() && l.hasSlot(v.Slot)
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
