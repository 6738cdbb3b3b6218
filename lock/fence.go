package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// CheckFence decides whether a write that carries the token shown may land on a
// resource that has seen tokens up to seen, while the newest token granted for
// the lock is newest. Equal is fine: a holder writes as often as it likes.
//
// It refuses with ErrStaleToken a token lower than either, so that a paused
// holder is kept out even before its successor's first write, and with
// ErrUnknownToken one that was never granted for this lock.
//
// The rule is that of Chubby's sequencers (Burrows, OSDI 2006) and of Kleppmann's
// "How to do distributed locking" (2016).
func CheckFence(shown, seen, newest Token) error {
	switch greatest := max(seen, newest); {
	case shown < greatest:
		return &Error{Code: ErrStaleToken, Token: shown, Newest: greatest,
			Detail: fmt.Sprintf("Token %d is stale: %d has been granted or seen. Your lease is gone; stop the work.", shown, greatest)}
	case shown > newest:
		return &Error{Code: ErrUnknownToken, Token: shown, Newest: newest,
			Detail: fmt.Sprintf("Token %d was never granted for this lock. Send the fencing_token that acquire returned, and name its lock.", shown)}
	}
	return nil
}

// A FencedWrite writes Value under Key if Token still guards Lock.
type FencedWrite struct {
	Key       string
	Lock      string
	Token     Token
	Slot      int // that a permit sits in; zero: the lock's newest token counts
	Value     json.RawMessage
	IfVersion *int64 // nil: whatever the version; zero: only if there is nothing yet
}

// Resolve returns w with its value in compact form, or an ErrInvalid error that
// names the field that breaks a bound.
func (w FencedWrite) Resolve() (FencedWrite, error) {
	if err := cmp.Or(checkName("key", w.Key), checkName("lock", w.Lock), checkToken(w.Token)); err != nil {
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
	return w, cmp.Or(checkNumbers("value", w.Value), checkSlot(&w.Slot))
}

// Newest returns the token that the write must have: the newest granted for the
// lock, or, of a write that names a slot, the one that sits there. Permits have
// tokens of their own, so a resource that they guard is one a slot, and nothing is
// known of a slot once its permit is over: then it refuses with ErrStaleToken.
func (w FencedWrite) Newest(s Record, now time.Time) (Token, error) {
	if w.Slot == 0 {
		return s.Token, nil
	}
	for _, l := range s.ActiveLeases(now) {
		if l.Slot == w.Slot && !l.Revoked() {
			return l.Token, nil
		}
	}
	return 0, &Error{Code: ErrStaleToken, Token: w.Token, Newest: s.Token,
		Detail: fmt.Sprintf("No lease sits in slot %d. Your permit is over; stop the work.", w.Slot)}
}

// A FencedValue is the example resource: a value that only the newest token may change.
type FencedValue struct {
	Key       string
	Lock      string
	Token     Token // the greatest it has seen
	Version   int64 // how many writes it took; zero if there was none
	Value     json.RawMessage
	WrittenAt time.Time
}

// Apply returns f after the write at now, given the newest token granted for
// the write's lock. The same write sent again, with the same IfVersion, succeeds
// and changes nothing.
func (w FencedWrite) Apply(f FencedValue, newest Token, now time.Time) (FencedValue, error) {
	if err := CheckFence(w.Token, f.Token, newest); err != nil {
		return f, err
	}
	if w.IfVersion != nil && *w.IfVersion != f.Version {
		if w.repeats(f) {
			return f, nil
		}
		return f, &Error{Code: ErrVersionMismatch, Version: f.Version,
			Detail: fmt.Sprintf("The resource is at version %d, not %d. Read it again and decide anew.", f.Version, *w.IfVersion)}
	}
	return FencedValue{Key: w.Key, Lock: w.Lock, Token: w.Token, Version: f.Version + 1, Value: w.Value, WrittenAt: now}, nil
}

func (w FencedWrite) repeats(f FencedValue) bool {
	return f.Version == *w.IfVersion+1 && f.Token == w.Token && f.Lock == w.Lock && bytes.Equal(f.Value, w.Value)
}
