package verify

import (
	"errors"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// readStep is that the lock was as it was seen. A plain read may be of before a grant
// whose instant is earlier than its own, so it moves nobody's time.
func (t *lockHistory) readStep(seen lock.Lock) step {
	return func(s lock.Record) (lock.Record, bool) {
		is, open := s.Lock(seen.AsOf), 0
		for _, l := range s.ActiveLeases(seen.AsOf) {
			if endUnknown(l) {
				open++
			}
		}
		if is.Token != seen.Token || open == 0 && is.State != seen.State || len(seen.Leases) > len(is.Leases) {
			return s, false
		}
		matched := 0
		for _, l := range s.ActiveLeases(seen.AsOf) {
			h, ok := leaseInSlot(seen, l.Slot)
			switch {
			case !ok && endUnknown(l):
			case !ok || h.Token != l.Token || h.Holder != l.Holder || h.Mode != l.Mode || h.Revoked != l.Revoked():
				return s, false
			case !endUnknown(l) && !h.AcquiredAt.Equal(l.AcquiredAt), !endUnknown(l) && !h.ExpiresAt.Equal(l.ExpiresAt) && !unclaimed(l, h):
				return s, false
			default:
				matched++
			}
		}
		return s, matched == len(seen.Leases)
	}
}

// unclaimed is whether the lease was seen before it was fetched, which it was in the
// instant in which it was granted.
func unclaimed(l lock.Lease, h lock.LeaseInfo) bool {
	return l.Place != 0 && h.ExpiresAt.Equal(h.AcquiredAt.Add(lock.ClaimTimeout))
}

func leaseInSlot(l lock.Lock, slot int) (lock.LeaseInfo, bool) {
	for _, h := range l.Leases {
		if h.Slot == slot {
			return h, true
		}
	}
	return lock.LeaseInfo{}, false
}

// verifyStep is that a token stood as was answered. It is exact: what it says to be over
// stays over.
func verifyStep(v lock.Verify, got lock.Verification) step {
	return func(s lock.Record) (lock.Record, bool) {
		is := v.Check(s, got.CheckedAt)
		for _, l := range s.ActiveLeases(got.CheckedAt) {
			if l.Token == v.Token && endUnknown(l) {
				over := got.Status == lock.Ended && v.Token == s.Token || got.Status == lock.Stale && v.Token < s.Token
				return s, is.Newest == got.Newest && (got.Status == lock.Current || over)
			}
		}
		left := len(s.Leases) != 1 || near(is.Remaining, got.Remaining) ||
			s.Leases[0].Place != 0 && near(lock.ClaimTimeout, got.Remaining) // it was not fetched yet, in the instant of its grant
		return afterVerification(s, v, got), is.Status == got.Status && is.Newest == got.Newest && left
	}
}

// afterVerification returns the lock after a verdict. A token that was verified to hold the lock no
// longer cannot be renewed any more, whatever the instant of the renewal: its lease has
// reached the longest that it may be held. That moves no clock: grants that follow may
// have been decided a moment before.
func afterVerification(s lock.Record, v lock.Verify, got lock.Verification) lock.Record {
	live := s.ActiveLeases(got.CheckedAt)
	for i, l := range s.Leases {
		if l.Token != v.Token || v.Slot != nil && *v.Slot != l.Slot || endUnknown(l) ||
			slices.ContainsFunc(live, func(o lock.Lease) bool { return o.Slot == l.Slot }) {
			continue
		}
		l.MaxHold = max(l.ExpiresAt.Sub(l.AcquiredAt), 1)
		s = withLease(s, i, l)
	}
	return s
}

// near is whether two durations are the same, when one has come over the wire in
// milliseconds.
func near(a, b time.Duration) bool { return (a - b).Abs() <= time.Millisecond }

// writeStep is that a fenced write was let in, or not, by its token.
func (t *lockHistory) writeStep(c *Call, w lock.FencedWrite) step {
	passed := c.Outcome() == Done || errors.Is(c.Err, lock.ErrVersionMismatch)
	if w.Slot != 0 && !passed {
		return nil // what slots remember is too little to say so
	}
	var e *lock.Error
	errors.As(c.Err, &e)
	switch {
	case passed:
		return func(s lock.Record) (lock.Record, bool) {
			newest, err := w.Newest(s, s.ChangedAt)
			return s, err == nil && lock.CheckFence(w.Token, 0, newest) == nil
		}
	case errors.Is(c.Err, lock.ErrStaleToken):
		return func(s lock.Record) (lock.Record, bool) { return s, s.Token > w.Token || e.Newest > s.Token }
	case errors.Is(c.Err, lock.ErrUnknownToken):
		return func(s lock.Record) (lock.Record, bool) {
			return s, w.Token > s.Token && (e.Newest == 0 || e.Newest == s.Token)
		}
	}
	return nil
}
