package wire

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// LeaseSetOf returns the model of the grant of a set, or of one lock. ExpiresInMs is the remaining time as of now, so
// call it just before encoding.
func LeaseSetOf(g lock.Grant) api.LeaseSet {
	members := g.Members
	if members == nil {
		members = []lock.Lease{g.Lease}
	}
	return api.LeaseSet{
		LeaseID: [16]byte(g.ID), Holder: g.Holder, Locks: MapSlice(members, setLeaseOf), TTLMs: g.TTL.Milliseconds(),
		GraceMs: g.Grace.Milliseconds(), MaxHoldMs: UnlessZero(g.MaxHold.Milliseconds()), AcquiredAt: g.AcquiredAt.UTC(),
		ExpiresAt: g.ExpiresAt.UTC(), ExpiresInMs: nonNegativeMs(time.Until(g.Until)), Metadata: g.Metadata,
		Session: sessionName(g.Session),
	}
}

func setLeaseOf(l lock.Lease) api.SetLease {
	return api.SetLease{Name: l.Name, Mode: modeOf(l.Mode), Slot: l.Slot, FencingToken: int64(l.Token)}
}

// toLeaseSet returns the grant, which has no Members if the set is one lock. Its Until is sent plus the remaining time,
// as that of a [Lease]. The set must have a lock.
func toLeaseSet(s api.LeaseSet, sent time.Time) lock.Grant {
	common := lock.Lease{
		ID: lock.LeaseID(s.LeaseID), Holder: s.Holder, TTL: nonNegative(s.TTLMs), Grace: nonNegative(s.GraceMs),
		MaxHold: nonNegative(ValueOf(s.MaxHoldMs)), AcquiredAt: s.AcquiredAt, ExpiresAt: s.ExpiresAt,
		Metadata: metadataOf(s.Metadata), Session: sessionRefOf(s.Session),
	}
	if len(s.Locks) > 1 {
		common.Set = namesOf(s)
	}
	members := MapSlice(s.Locks, func(l api.SetLease) lock.Lease {
		m := common
		m.Name, m.Slot, m.Mode, m.Token = l.Name, l.Slot, lock.ModeOf(string(l.Mode)), lock.Token(l.FencingToken)
		return m
	})
	out := lock.Grant{Lease: members[0], Until: sent.Add(nonNegative(s.ExpiresInMs))}
	if len(members) > 1 {
		out.Members = members
	}
	return out
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
	for _, l := range append(g.Members, g.Lease) {
		if !isAnswer(c, l) {
			return lock.Grant{}, ErrNotTheAnswer
		}
	}
	return g, nil
}

// setOf returns the locks of a command on a set, nil if it is on one lock.
func setOf(c lock.Command) []string {
	switch c := c.(type) {
	case lock.Acquire:
		if len(c.Set) > 0 {
			return c.Names()
		}
	case lock.Renew:
		return c.Set
	case lock.Release:
		return c.Set
	}
	return nil
}

// appendLocks appends the locks of an acquire.
func appendLocks(b []byte, set []lock.Member) []byte {
	b = append(b, `,"locks":[`...)
	for i, m := range set {
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
		b = append(appendText(append(b, `"name":`...), m.Name), '}')
	}
	return append(b, ']')
}

// appendNames appends the locks of a renewal or a release, unless there are none.
func appendNames(b []byte, names []string) []byte {
	if len(names) == 0 {
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
		Ahead: UnlessZero(b.Ahead),
	}
}

// toBlockedLock returns the lock.
func toBlockedLock(b api.BlockedLock) lock.BlockedLock {
	return lock.BlockedLock{
		Name: b.Name, Holder: ValueOf(b.Holder), RetryAfter: nonNegative(b.RetryAfterMs), Ahead: ValueOf(b.Ahead),
	}
}

func deadlockStepOf(s lock.DeadlockStep) api.DeadlockStep {
	return api.DeadlockStep{Name: s.Name, Holder: s.Holder, WaitsFor: s.WaitsFor, Ahead: UnlessZero(s.Ahead)}
}

// toDeadlockStep returns the step.
func toDeadlockStep(s api.DeadlockStep) lock.DeadlockStep {
	return lock.DeadlockStep{Name: s.Name, Holder: s.Holder, WaitsFor: s.WaitsFor, Ahead: ValueOf(s.Ahead)}
}

// mapOptional is MapSlice for a member that is absent if there are no items.
func mapOptional[In, Out any](items []In, of func(In) Out) []Out {
	if len(items) == 0 {
		return nil
	}
	return MapSlice(items, of)
}
