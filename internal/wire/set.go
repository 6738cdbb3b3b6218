package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// HTTP has two forms of an acquire, a renewal and a release: that of one lock, whose name is in the path, and that of a
// list of locks in the body, which may be a list of one. Each form has its answer. Elsewhere there are only lists. The
// client sends a list of one in the form of one lock.

// LeaseSetOf returns the model of a grant in the form of a list. ExpiresInMs is the remaining time as of now, so call it
// just before encoding.
func LeaseSetOf(g lock.Grant) api.LeaseSet {
	return api.LeaseSet{
		LeaseID: [16]byte(g.ID), Holder: g.Holder, Locks: MapSlice(g.Leases, setLeaseOf), TTLMs: g.TTL.Milliseconds(),
		GraceMs: g.Grace.Milliseconds(), MaxHoldMs: UnlessZero(g.MaxHold.Milliseconds()), AcquiredAt: g.AcquiredAt.UTC(),
		ExpiresAt: g.ExpiresAt.UTC(), ExpiresInMs: nonNegativeMs(time.Until(g.Until)), Metadata: g.Metadata,
		Session: sessionName(g.Session), OnExpiry: onExpiryOf(g.Stays),
	}
}

func setLeaseOf(l lock.Lease) api.SetLease {
	return api.SetLease{Name: l.Name, Mode: modeOf(l.Mode), Slot: l.Slot, Slots: slotsOf(l.Slots), FencingToken: int64(l.Token)}
}

// toLeaseSet returns the grant. Its Until is sent plus the remaining time, as in toLease. The set must have a lock.
func toLeaseSet(s api.LeaseSet, sent time.Time) lock.Grant {
	common := lock.Lease{
		ID: lock.LeaseID(s.LeaseID), Holder: s.Holder, TTL: nonNegative(s.TTLMs), Grace: nonNegative(s.GraceMs),
		MaxHold: nonNegative(ValueOf(s.MaxHoldMs)), AcquiredAt: s.AcquiredAt, ExpiresAt: s.ExpiresAt,
		Metadata: metadataOf(s.Metadata), Session: sessionRefOf(s.Session), Stays: StaysOf(s.OnExpiry),
	}
	if len(s.Locks) > 1 {
		common.Set = namesOf(s)
	}
	leases := MapSlice(s.Locks, func(l api.SetLease) lock.Lease {
		m := common
		m.Name, m.Mode, m.Token = l.Name, lock.ModeOf(string(l.Mode)), lock.Token(l.FencingToken)
		m.Slot, m.Slots = l.Slot, lock.SlotsOf(l.Slots)
		return m
	})
	return lock.Grant{Lease: leases[0], Leases: leases, Until: sent.Add(nonNegative(s.ExpiresInMs))}
}

func namesOf(s api.LeaseSet) []string {
	return MapSlice(s.Locks, func(l api.SetLease) string { return l.Name })
}

// parseSet decodes the answer to c, an acquire or a renewal of these locks.
func parseSet(text []byte, c lock.Command, names []string, sent time.Time) (lock.Grant, error) {
	var s api.LeaseSet
	if err := json.Unmarshal(text, &s); err != nil {
		return lock.Grant{}, err
	}
	if !slices.Equal(namesOf(s), slices.Sorted(slices.Values(names))) {
		return lock.Grant{}, ErrNotTheAnswer
	}
	g := toLeaseSet(s, sent)
	for _, l := range g.Leases {
		if !isAnswer(c, l) {
			return lock.Grant{}, ErrNotTheAnswer
		}
	}
	return g, nil
}

// ListError returns the refusal of a call in the form of a list. To the domain, a fault of the only lock is one of its
// name, mode, capacity or permits. In this form that is a member of the first item, or that item itself in a list of names.
func ListError(err error, list string) error {
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != lock.ErrInvalid || !slices.Contains([]string{"name", "mode", "capacity", "permits"}, e.Field) {
		return err
	}
	at := list + "/0"
	if list == "locks" {
		at += "/" + e.Field
	}
	return &lock.Error{Code: e.Code, Field: at, Detail: at + strings.TrimPrefix(e.Detail, e.Field)}
}

// appendLocks appends the locks of an acquire, in the form of a list.
func appendLocks(b []byte, locks []lock.Member) []byte {
	b = append(b, `,"locks":[`...)
	for i, m := range locks {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if m.Capacity != 0 {
			b = append(strconv.AppendInt(append(b, `"capacity":`...), int64(m.Capacity), 10), ',')
		}
		if m.Mode != 0 {
			b = append(appendText(append(b, `"mode":`...), m.Mode.String()), ',')
		}
		b = appendText(append(b, `"name":`...), m.Name)
		if m.Permits != 0 {
			b = strconv.AppendInt(append(b, `,"permits":`...), int64(m.Permits), 10)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendNames appends the locks of a renewal or a release in the form of a list, nothing in that of one lock.
func appendNames(b []byte, names []string) []byte {
	if len(names) == 1 {
		return b
	}
	b = append(b, `,"names":[`...)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, name)
	}
	return append(b, ']')
}

func blockedLockOf(b lock.BlockedLock) api.BlockedLock {
	return api.BlockedLock{
		Name: b.Name, Holder: UnlessZero(b.Holder), RetryAfterMs: RoundUp(max(b.RetryAfter, 0), time.Millisecond),
		Suspect: UnlessZero(b.Suspect), Ahead: UnlessZero(b.Ahead),
	}
}

// toBlockedLock returns the lock.
func toBlockedLock(b api.BlockedLock) lock.BlockedLock {
	return lock.BlockedLock{
		Name: b.Name, Holder: ValueOf(b.Holder), RetryAfter: nonNegative(b.RetryAfterMs), Suspect: ValueOf(b.Suspect), Ahead: ValueOf(b.Ahead),
	}
}

func deadlockStepOf(s lock.DeadlockStep) api.DeadlockStep {
	return api.DeadlockStep{Name: s.Name, Holder: s.Holder, WaitsFor: s.WaitsFor, At: UnlessZero(s.At), Ahead: UnlessZero(s.Ahead)}
}

// toDeadlockStep returns the step.
func toDeadlockStep(s api.DeadlockStep) lock.DeadlockStep {
	return lock.DeadlockStep{Name: s.Name, Holder: s.Holder, WaitsFor: s.WaitsFor, At: ValueOf(s.At), Ahead: ValueOf(s.Ahead)}
}

// mapOptional is MapSlice for a member that is absent if there are no items.
func mapOptional[In, Out any](items []In, of func(In) Out) []Out {
	if len(items) == 0 {
		return nil
	}
	return MapSlice(items, of)
}
