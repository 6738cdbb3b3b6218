package server

import (
	"cmp"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// What callers send, as commands and queries of the domain. A zero that was sent
// is refused here where the domain would take it for nothing sent; all other
// bounds are the domain's.

func acquireFrom(name string, in openapi.AcquireRequest) (lock.Acquire, error) {
	a := lock.Acquire{
		Name: name, Holder: in.Holder, Mode: modeFrom(in.Mode), Capacity: value(in.Capacity), Metadata: in.Metadata,
		TTL: duration(in.TTLMs), Grace: duration(in.GraceMs), MaxHold: duration(in.MaxHoldMs),
		Wait: duration(in.WaitMs), KeepPlace: value(in.KeepPlace),
	}
	if in.LeaseID != nil {
		a.LeaseID = lock.LeaseID(*in.LeaseID)
	}
	return a, cmp.Or(
		checkChosen(in.LeaseID), checkPositive("ttl_ms", in.TTLMs), checkPositive("max_hold_ms", in.MaxHoldMs),
		checkCounted("capacity", in.Capacity, lock.MaxHolders),
	)
}

func renewFrom(name string, in openapi.RenewRequest) (lock.Renew, error) {
	return lock.Renew{Name: name, LeaseID: lock.LeaseID(in.LeaseID), TTL: duration(in.TTLMs), Metadata: in.Metadata}, checkPositive("ttl_ms", in.TTLMs)
}

func releaseFrom(name string, in openapi.ReleaseRequest) (lock.Release, error) {
	return lock.Release{Name: name, LeaseID: lock.LeaseID(in.LeaseID)}, nil
}

func revokeFrom(name string, in openapi.RevokeRequest) (lock.Revoke, error) {
	return lock.Revoke{
		Name: name, Token: lock.Token(in.FencingToken), Slot: in.Slot, AcquiredAt: value(in.AcquiredAt), Reason: in.Reason,
		SkipGrace: value(in.SkipGrace),
	}, nil
}

func verifyFrom(_ string, in openapi.VerifyRequest) (lock.Verify, error) {
	return lock.Verify{Name: in.Name, Token: lock.Token(in.FencingToken), Slot: in.Slot}, nil
}

func writeFrom(key string, in openapi.FencedWrite) (lock.FencedWrite, error) {
	return lock.FencedWrite{
		Key: key, Lock: in.Lock, Token: lock.Token(in.FencingToken), Slot: value(in.Slot), Value: *in.Value, IfVersion: in.IfVersion,
	}, checkCounted("slot", in.Slot, lock.MaxHolders)
}

// watchFrom checks its bounds at once, since a call that has seen nothing need
// not watch.
func watchFrom(name string, in openapi.GetLockParams) (lock.Watch, error) {
	return lock.Watch{Name: name, Wait: duration(in.WaitMs)}.Resolve()
}

func lockQueryFrom(in openapi.ListLocksParams) (lock.LockQuery, error) {
	q := lock.LockQuery{
		Prefix: value(in.Prefix), State: lock.State(value(in.State)), Holder: value(in.Holder),
		Limit: value(in.Limit), Cursor: value(in.Cursor),
	}
	return q, cmp.Or(checkGiven("state", in.State), checkGiven("holder", in.Holder), checkCounted("limit", in.Limit, lock.MaxLimit))
}

func eventQueryFrom(in openapi.ListEventsParams) (lock.EventQuery, error) {
	q := lock.EventQuery{
		Name: value(in.Lock), Prefix: value(in.Prefix), Limit: value(in.Limit), Cursor: value(in.Cursor), Wait: duration(in.WaitMs),
	}
	return q, cmp.Or(checkGiven("lock", in.Lock), checkCounted("limit", in.Limit, lock.MaxLimit))
}

// streamQueryFrom begins where the caller was last time, else where it wants to
// begin, else now.
func streamQueryFrom(in openapi.StreamEventsParams) (lock.EventQuery, error) {
	q := lock.EventQuery{Name: value(in.Lock), Prefix: value(in.Prefix), Limit: streamPage, Cursor: lock.CursorNow}
	if in.Cursor != nil {
		q.Cursor = *in.Cursor
	}
	q.Cursor = cmp.Or(value(in.LastEventID), q.Cursor)
	return q, checkGiven("lock", in.Lock)
}

// modeFrom returns the mode of that name; for one that there is not, a mode that
// the domain refuses.
func modeFrom(m *openapi.Mode) lock.Mode {
	if m == nil {
		return 0
	}
	return cmp.Or(lock.ModeOf(string(*m)), -1)
}

// duration returns the milliseconds as a Duration, or the nearest there is.
func duration(ms *int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(value(ms), -most), most)) * time.Millisecond
}

func checkPositive(field string, ms *int64) error {
	if ms != nil && *ms <= 0 {
		return lock.Invalid(field, "is %d; give %d or more (milliseconds), or leave it out", *ms, lock.MinTTL.Milliseconds())
	}
	return nil
}

func checkChosen(id *uuid.UUID) error {
	if id != nil && *id == uuid.Nil {
		return lock.Invalid("lease_id", "is all zeros; give a random UUID, or leave it out")
	}
	return nil
}

func checkCounted(field string, n *int, most int) error {
	if n != nil && *n == 0 {
		return lock.Invalid(field, "is 0; give 1 to %d, or leave it out", most)
	}
	return nil
}

// checkGiven refuses the empty text of a parameter that selects: it would select
// all, which is hardly what the caller's empty variable was to say.
func checkGiven[T ~string](name string, text *T) error {
	if text != nil && *text == "" {
		return lock.Invalid(name, "is empty; give it a value or leave it out")
	}
	return nil
}

// value returns what p points to, zero for nil.
func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
