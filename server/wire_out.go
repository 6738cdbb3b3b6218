package server

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// What callers are told. Instants are shown in UTC, durations in whole
// milliseconds; what is left is rounded down.

// leaseOf returns the lease with what is left of it now, which is when it is written.
func leaseOf(g lock.Grant) openapi.Lease {
	return openapi.Lease{
		Name: g.Name, LeaseID: [16]byte(g.ID), FencingToken: int64(g.Token), Slot: g.Slot, Mode: modeOf(g.Mode), Holder: g.Holder,
		TTLMs: g.TTL.Milliseconds(), GraceMs: g.Grace.Milliseconds(), MaxHoldMs: unlessZero(g.MaxHold.Milliseconds()),
		AcquiredAt: g.AcquiredAt.UTC(), ExpiresAt: g.ExpiresAt.UTC(), ExpiresInMs: left(time.Until(g.Until)),
		Metadata: g.Metadata,
	}
}

func lockOf(l lock.Lock) openapi.Lock {
	return openapi.Lock{
		Name: l.Name, State: openapi.State(l.State), Revision: l.Revision, FencingToken: int64(l.Token),
		AsOf: l.AsOf.UTC(), ChangedAt: instant(l.ChangedAt), Capacity: unlessZero(l.Capacity), Waiters: l.Waiters,
		Leases: each(l.Leases, holdingOf),
	}
}

func queueOf(q lock.QueueInfo) openapi.Queue {
	return openapi.Queue{Name: q.Name, Revision: q.Revision, AsOf: q.AsOf.UTC(), Waiters: each(q.Waiters, waiterOf)}
}

func waiterOf(w lock.WaiterInfo) openapi.Waiter {
	out := openapi.Waiter{
		Position: w.Position, Place: w.Place, Mode: modeOf(w.Mode), Capacity: unlessZero(w.Capacity), Holder: w.Holder,
		JoinedAt: w.JoinedAt.UTC(), WaitedMs: left(w.Waited), Attached: w.Attached, Ahead: w.Ahead,
		BlockedBy: openapi.WaiterBlockedBy(w.BlockedBy), Leases: each(w.Leases, holdingOf),
	}
	if !w.Attached {
		out.PlaceKeptMs = new(left(w.KeptFor))
	}
	return out
}

func holdingOf(h lock.LeaseInfo) openapi.LeaseInfo {
	return openapi.LeaseInfo{
		Slot: h.Slot, Mode: modeOf(h.Mode), Holder: h.Holder, FencingToken: int64(h.Token),
		AcquiredAt: h.AcquiredAt.UTC(), ExpiresAt: h.ExpiresAt.UTC(), ExpiresInMs: left(h.Remaining),
		GraceMs: h.Grace.Milliseconds(), Metadata: h.Metadata, Revoked: unlessZero(h.Revoked),
	}
}

func lockPageOf(p lock.Page[lock.Lock]) openapi.LockPage {
	return openapi.LockPage{Locks: each(p.Items, lockOf), NextCursor: unlessZero(p.Next)}
}

func eventPageOf(p lock.Page[lock.Event]) openapi.EventPage {
	return openapi.EventPage{Events: each(p.Items, eventOf), NextCursor: p.Next, Gap: unlessZero(p.Gap)}
}

func eventOf(e lock.Event) openapi.Event {
	return openapi.Event{
		ID: e.ID, At: e.At.UTC(), Lock: e.Name, Slot: e.Slot, Revision: e.Revision,
		Kind: openapi.EventKind(e.Kind.String()), Mode: modeOf(e.Mode), Holder: e.Holder,
		FencingToken: unlessZero(int64(e.Token)), Place: unlessZero(e.Place), Reason: unlessZero(e.Reason),
	}
}

func verdictOf(v lock.Verification) openapi.TokenVerification {
	out := openapi.TokenVerification{
		Name: v.Name, FencingToken: int64(v.Token), Status: openapi.TokenVerificationStatus(v.Status),
		Current: v.Status == lock.Current, NewestToken: int64(v.Newest), CheckedAt: v.CheckedAt.UTC(),
	}
	if out.Current {
		out.ExpiresInMs = new(left(v.Remaining))
	}
	return out
}

func fencedOf(f lock.FencedValue) openapi.FencedValue {
	return openapi.FencedValue{
		Key: f.Key, Lock: f.Lock, FencingToken: int64(f.Token), Version: f.Version, Value: &f.Value, WrittenAt: f.WrittenAt.UTC(),
	}
}

func modeOf(m lock.Mode) openapi.Mode { return openapi.Mode(m.String()) }

// each returns what of makes of every item; never nil, so that JSON has a list.
func each[In, Out any](items []In, of func(In) Out) []Out {
	out := make([]Out, len(items))
	for i, item := range items {
		out[i] = of(item)
	}
	return out
}

func left(d time.Duration) int64 { return max(d.Milliseconds(), 0) }

// instant returns nil for the zero Time, which is none.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func unlessZero[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
