package request

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// The bodies of calls. The method command of each converts it to its command.

type (
	// Acquire is the body of an acquire of one lock.
	Acquire api.AcquireRequest
	// Renew is the body of a renewal of one lease.
	Renew api.RenewRequest
	// Release is the body of a release of one lease.
	Release api.ReleaseRequest
	// Revoke is the body of the revocation of a lease.
	Revoke api.RevokeRequest
	// AcquireSet is the body of an acquire of several locks.
	AcquireSet api.AcquireSetRequest
	// RenewSet is the body of a renewal of the leases of a set.
	RenewSet api.RenewSetRequest
	// ReleaseSet is the body of a release of the leases of a set.
	ReleaseSet api.ReleaseSetRequest
	// OpenSession is the body of the opening of a session.
	OpenSession api.OpenSessionRequest
	// RenewSession is the body of a session's heartbeat.
	RenewSession api.RenewSessionRequest
	// CloseSession is the body of the closing of a session.
	CloseSession api.CloseSessionRequest
	// RevokeSession is the body of the revocation of a session.
	RevokeSession api.RevokeSessionRequest
	// Verify is the body of the verification of a token.
	Verify api.VerifyRequest
	// ReportStale is the body of the report of a stale token.
	ReportStale api.ReportRequest
	// FencedWrite is the body of a fenced write.
	FencedWrite api.FencedWrite
	// Freeze is the body of a freeze.
	Freeze api.FreezeRequest
	// Rule is the body of a rule.
	Rule api.RuleRequest
	// WaitForEvents is the body of a call that waits for events.
	WaitForEvents api.WaitForEventsRequest
)

// command returns a pointer, since the stack of a call that may wait should stay small.
func (m Acquire) command(name string) (*lock.Acquire, error) {
	return &lock.Acquire{
			Locks: []lock.Member{{
				Name: name, Mode: mode(m.Mode), Capacity: wire.ValueOf(m.Capacity), Permits: wire.ValueOf(m.Permits),
			}},
			Grace: duration(m.GraceMs), Holder: m.Holder,
			KeepPlace: wire.ValueOf(m.KeepPlace), LeaseID: lock.LeaseID(wire.ValueOf(m.LeaseID)), MaxHold: duration(m.MaxHoldMs), Stays: wire.StaysOf(m.OnExpiry),
			Metadata: m.Metadata, SessionID: lock.SessionID(wire.ValueOf(m.SessionID)),
			Once: wire.ValueOf(m.Once), Task: lock.TaskID(wire.ValueOf(m.TaskID)), TTL: duration(m.TTLMs), Wait: duration(m.WaitMs),
		}, cmp.Or(
			checkCapacity("", m.Mode, m.Capacity, m.Permits), checkGrace(m.GraceMs), checkID("lease_id", m.LeaseID, "a random UUID"),
			checkMs("max_hold_ms", m.MaxHoldMs, lock.MinTTL, lock.MaxHold), checkOnExpiry(m.OnExpiry),
			checkID("session_id", m.SessionID, "that of an open session"), checkTTL(m.TTLMs), checkMs("wait_ms", m.WaitMs, 0, lock.MaxWait),
		)
}

func checkOnExpiry(o *api.OnExpiry) error {
	if o != nil && !o.Valid() {
		return lock.Invalid("on_expiry", "is invalid; use expire or hold")
	}
	return nil
}

func (m Renew) command(name string) (lock.Renew, error) {
	return lock.Renew{Locks: []string{name}, LeaseID: lock.LeaseID(m.LeaseID), Metadata: m.Metadata, TTL: duration(m.TTLMs)}, checkTTL(m.TTLMs)
}

func (m Release) command(name string) (lock.Release, error) {
	return lock.Release{
		Locks: []string{name}, LeaseID: lock.LeaseID(m.LeaseID),
		Closed: lock.Closing{For: duration(m.ClosedMs), Period: lock.Period(wire.ValueOf(m.OncePer)), Zone: wire.ValueOf(m.TimeZone)},
	}, cmp.Or(checkMs("closed_ms", m.ClosedMs, 0, lock.MaxClosed), checkOncePer(m.OncePer))
}

// checkOncePer refuses an empty period, which would leave the lock open. The domain checks the others.
func checkOncePer(p *api.Period) error {
	if p != nil && *p == "" {
		return lock.Invalid("once_per", "is empty; use minute, hour, day, week or month, or leave it out")
	}
	return nil
}

func (m Revoke) command(name string) (lock.Revoke, error) {
	return lock.Revoke{
		Name: name, AcquiredAt: wire.ValueOf(m.AcquiredAt), Token: lock.Token(m.FencingToken), Reason: m.Reason,
		SkipGrace: wire.ValueOf(m.SkipGrace), Slot: m.Slot,
	}, nil
}

func (m AcquireSet) command(string) (*lock.Acquire, error) {
	a, err := Acquire{
		GraceMs: m.GraceMs, Holder: m.Holder, KeepPlace: m.KeepPlace, LeaseID: m.LeaseID, MaxHoldMs: m.MaxHoldMs,
		Metadata: m.Metadata, Once: m.Once, OnExpiry: m.OnExpiry, SessionID: m.SessionID, TaskID: m.TaskID, TTLMs: m.TTLMs, WaitMs: m.WaitMs,
	}.command("")
	err = cmp.Or(err, checkList("locks", m.Locks))
	a.Locks = a.Locks[:0]
	for i, l := range m.Locks {
		at := fmt.Sprintf("locks/%d/", i)
		if l.Name == "" && len(m.Locks) <= lock.MaxSetSize { // more are too many, whatever their names
			err = cmp.Or(err, lock.Invalid(at+"name", "is missing or empty; give 1 to %d characters", lock.MaxNameLength))
		}
		err = cmp.Or(err, checkCapacity(at, l.Mode, l.Capacity, l.Permits))
		a.Locks = append(a.Locks, lock.Member{
			Name: l.Name, Mode: mode(l.Mode), Capacity: wire.ValueOf(l.Capacity), Permits: wire.ValueOf(l.Permits),
		})
	}
	return a, err
}

func (m RenewSet) command(string) (lock.Renew, error) {
	r, err := Renew{LeaseID: m.LeaseID, Metadata: m.Metadata, TTLMs: m.TTLMs}.command("")
	r.Locks = m.Names
	return r, cmp.Or(err, checkList("names", m.Names))
}

func (m ReleaseSet) command(string) (lock.Release, error) {
	r, err := Release{LeaseID: m.LeaseID, ClosedMs: m.ClosedMs, OncePer: m.OncePer, TimeZone: m.TimeZone}.command("")
	r.Locks = m.Names
	return r, cmp.Or(err, checkList("names", m.Names))
}

func (m OpenSession) command(string) (lock.OpenSession, error) {
	return lock.OpenSession{
		ID: lock.SessionID(wire.ValueOf(m.SessionID)), Holder: m.Holder, TTL: duration(m.TTLMs), Grace: duration(m.GraceMs),
		Metadata: m.Metadata,
	}, cmp.Or(checkID("session_id", m.SessionID, "a random UUID"), checkTTL(m.TTLMs), checkGrace(m.GraceMs))
}

func (m RenewSession) command(string) (lock.RenewSession, error) {
	return lock.RenewSession{ID: lock.SessionID(m.SessionID), TTL: duration(m.TTLMs)}, checkTTL(m.TTLMs)
}

func (m CloseSession) command(string) (lock.CloseSession, error) {
	return lock.CloseSession{ID: lock.SessionID(m.SessionID)}, nil
}

func (m RevokeSession) command(session string) (lock.RevokeSession, error) {
	ref, err := lock.ParseSessionRef("session", session)
	return lock.RevokeSession{Ref: ref, Reason: m.Reason, SkipGrace: wire.ValueOf(m.SkipGrace)}, err
}

func (m Verify) command(string) (lock.Verify, error) {
	return lock.Verify{Token: lock.Token(m.FencingToken), Name: m.Name, Slot: m.Slot}, nil
}

func (m ReportStale) command(string) (lock.ReportStale, error) {
	return lock.ReportStale{Token: lock.Token(m.FencingToken), Name: m.Name, Slot: m.Slot, Where: wire.ValueOf(m.Where)}, nil
}

func (m FencedWrite) command(key string) (lock.FencedWrite, error) {
	if m.OperationID != nil && *m.OperationID == "" { // in a FencedWrite it would mean that there is none
		return lock.FencedWrite{}, lock.Invalid("operation_id", "is empty; give 1 to %d characters", lock.MaxOperationIDLength)
	}
	return lock.FencedWrite{
		Key: key, Lock: m.Lock, Token: lock.Token(m.FencingToken), Slot: wire.ValueOf(m.Slot), Value: m.Value, IfVersion: m.IfVersion,
		OperationID: wire.ValueOf(m.OperationID),
	}, checkNumber("slot", m.Slot, 1, lock.MaxHolders)
}

func (m Freeze) command(scope string) (lock.FreezeRequest, error) {
	return lock.FreezeRequest{Scope: lock.Scope(scope), Reason: m.Reason, For: duration(m.ForMs)},
		checkMs("for_ms", m.ForMs, 0, lock.MaxFreeze)
}

func (m Rule) command(scope string) (lock.Rule, error) {
	return lock.Rule{
			Scope: lock.Scope(scope), MaxTTL: duration(m.MaxTTLMs), MaxHold: duration(m.MaxHoldMs), MinGrace: duration(m.MinGraceMs),
			Capacity: wire.ValueOf(m.Capacity), MaxLeases: wire.ValueOf(m.MaxLeases),
		}, cmp.Or(
			checkMs("max_ttl_ms", m.MaxTTLMs, lock.MinTTL, lock.MaxTTL), checkMs("max_hold_ms", m.MaxHoldMs, lock.MinTTL, lock.MaxHold),
			checkMs("min_grace_ms", m.MinGraceMs, 0, lock.MaxGrace), checkNumber("capacity", m.Capacity, 1, lock.MaxHolders),
			checkNumber("max_leases", m.MaxLeases, 1, lock.MaxRuleLeases),
		)
}

func (m WaitForEvents) command(string) (q paddock.EventQuery, err error) {
	q = paddock.EventQuery{
		Names: m.Locks, Cursor: cmp.Or(wire.ValueOf(m.Cursor), paddock.CursorNow), Wait: duration(m.WaitMs),
	}
	err = checkMs("wait_ms", m.WaitMs, 0, lock.MaxWait)
	if len(q.Names) == 1 {
		err = cmp.Or(err, lock.CheckNameOf("locks/0", q.Names[0]))
	}
	for i, name := range m.Sessions {
		ref, bad := lock.ParseSessionRef(fmt.Sprintf("sessions/%d", i), name)
		q.Sessions, err = append(q.Sessions, ref), cmp.Or(err, bad)
	}
	for i, name := range m.Kinds {
		kind := lock.KindOf(string(name))
		if kind == 0 {
			err = cmp.Or(err, lock.Invalid(fmt.Sprintf("kinds/%d", i), "is unknown; give %s", lock.KindNames()))
		}
		q.Kinds = append(q.Kinds, kind)
	}
	if len(q.Names)+len(q.Sessions) == 0 { // a query without either selects the events of all locks
		err = cmp.Or(err, lock.Invalid("locks", "and sessions are both empty; name at least one lock or one session"))
	}
	return q, err
}

func duration(ms *int64) time.Duration { return wire.DurationOf(wire.ValueOf(ms)) }

// mode returns the mode, zero if missing, and -1 for an unknown mode, which package lock refuses.
func mode(m *api.Mode) lock.Mode {
	if m == nil {
		return 0
	}
	return cmp.Or(lock.ModeOf(string(*m)), -1)
}

func checkTTL(ms *int64) error { return checkMs("ttl_ms", ms, lock.MinTTL, lock.MaxTTL) }

func checkGrace(ms *int64) error { return checkMs("grace_ms", ms, 0, lock.MaxGrace) }

func checkMs(name string, ms *int64, least, greatest time.Duration) error {
	return checkNumber(name, ms, least.Milliseconds(), greatest.Milliseconds())
}

// checkNumber checks the bounds of an optional number. To package lock a zero would be a missing number, and a number
// of milliseconds may be too large for a Duration.
func checkNumber[Int int | int64](name string, n *Int, least, greatest Int) error {
	if n == nil || least <= *n && *n <= greatest {
		return nil
	}
	return lock.Invalid(name, "is %d; give %d to %d, or leave it out", *n, least, greatest)
}

// checkCapacity refuses a capacity and a number of permits of zero, which to package lock would be missing. at is the path
// to them.
func checkCapacity(at string, m *api.Mode, capacity, permits *int) error {
	isZero := func(n *int) bool { return n != nil && *n == 0 }
	name := at + "capacity"
	if !isZero(capacity) {
		name = at + "permits"
	}
	switch {
	case !isZero(capacity) && !isZero(permits):
		return nil
	case mode(m) != lock.Permit:
		return lock.Invalid(name, "is only valid with mode permit; leave it out")
	case isZero(capacity):
		return lock.Invalid(name, "is 0; give 1 to %d, the number of permits", lock.MaxHolders)
	}
	return lock.Invalid(name, "is 0; give 1 to the capacity, or leave it out")
}

// checkID refuses a UUID of zeros, which to package lock would be a missing one. The error names what to give instead.
func checkID(name string, id *uuid.UUID, instead string) error {
	if id == nil || *id != uuid.Nil {
		return nil
	}
	return lock.Invalid(name, "is all zeros; give %s, or leave it out", instead)
}

func checkList[T any](name string, list []T) error {
	if len(list) > 0 {
		return nil
	}
	return lock.Invalid(name, "has 0 items; give 1 to %d", lock.MaxSetSize)
}
