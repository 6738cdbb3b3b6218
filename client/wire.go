package client

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

func acquireTo(a lock.Acquire) openapi.AcquireRequest {
	w := openapi.AcquireRequest{
		LeaseID: new(uuid.UUID(a.LeaseID)), Holder: a.Holder, Metadata: a.Metadata,
		TTLMs: toMs(a.TTL), GraceMs: toMs(a.Grace), MaxHoldMs: toMs(a.MaxHold),
		Capacity: ifGiven(a.Capacity), WaitMs: toMs(a.Wait), KeepPlace: ifGiven(a.KeepPlace),
	}
	if a.Mode != 0 {
		w.Mode = new(openapi.Mode(a.Mode.String()))
	}
	return w
}

// grantFrom returns the grant that an answer tells of, its Until counted from
// the instant at which the request was sent.
func grantFrom(a answer[openapi.Lease]) lock.Grant {
	l := a.value
	return lock.Grant{
		Lease: lock.Lease{
			ID: lock.LeaseID(l.LeaseID), Name: l.Name, Slot: l.Slot, Mode: modeFrom(l.Mode), Holder: l.Holder,
			Token: lock.Token(l.FencingToken), TTL: fromMs(l.TTLMs), Grace: fromMs(l.GraceMs),
			MaxHold: fromMs(given(l.MaxHoldMs)), AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt,
			Metadata: l.Metadata,
		},
		Until: a.sent.Add(fromMs(l.ExpiresInMs)),
	}
}

// isLease returns whether an answer tells of that lease of that lock.
func isLease(name string, id lock.LeaseID) func(openapi.Lease) bool {
	return func(l openapi.Lease) bool {
		return l.Name == name && lock.LeaseID(l.LeaseID) == id && l.FencingToken > 0
	}
}

func lockFrom(l openapi.Lock) lock.Lock {
	return lock.Lock{
		Name: l.Name, State: lock.State(l.State), Revision: l.Revision, Token: lock.Token(l.FencingToken),
		ChangedAt: given(l.ChangedAt), AsOf: l.AsOf, Capacity: given(l.Capacity), Waiters: l.Waiters,
		Leases: each(l.Leases, holdingFrom),
	}
}

// isLock returns whether an answer tells of the lock of that name.
func isLock(name string) func(openapi.Lock) bool {
	return func(l openapi.Lock) bool { return l.Name == name && l.State != "" }
}

func holdingFrom(h openapi.LeaseInfo) lock.LeaseInfo {
	return lock.LeaseInfo{
		Slot: h.Slot, Mode: modeFrom(h.Mode), Holder: h.Holder, Token: lock.Token(h.FencingToken),
		AcquiredAt: h.AcquiredAt, ExpiresAt: h.ExpiresAt, Remaining: fromMs(h.ExpiresInMs),
		Grace: fromMs(h.GraceMs), Metadata: h.Metadata, Revoked: given(h.Revoked),
	}
}

func queueFrom(q openapi.Queue) lock.QueueInfo {
	return lock.QueueInfo{Name: q.Name, Revision: q.Revision, AsOf: q.AsOf, Waiters: each(q.Waiters, waitingFrom)}
}

// isQueue returns whether an answer tells of the queue of the lock of that name.
func isQueue(name string) func(openapi.Queue) bool {
	return func(q openapi.Queue) bool { return q.Name == name && q.Waiters != nil }
}

func waitingFrom(w openapi.Waiter) lock.WaiterInfo {
	return lock.WaiterInfo{
		Position: w.Position, Place: w.Place, Mode: modeFrom(w.Mode), Capacity: given(w.Capacity), Holder: w.Holder,
		JoinedAt: w.JoinedAt, Waited: fromMs(w.WaitedMs), Attached: w.Attached, KeptFor: fromMs(given(w.PlaceKeptMs)),
		BlockedBy: lock.Blocker(w.BlockedBy), Leases: each(w.Leases, holdingFrom), Ahead: w.Ahead,
	}
}

func eventFrom(e openapi.Event) lock.Event {
	return lock.Event{
		ID: e.ID, At: e.At, Name: e.Lock, Slot: e.Slot, Revision: e.Revision, Kind: lock.KindOf(string(e.Kind)),
		Mode: modeFrom(e.Mode), Holder: e.Holder, Token: lock.Token(given(e.FencingToken)), Place: given(e.Place),
		Reason: given(e.Reason),
	}
}

func verdictFrom(v openapi.TokenVerification) lock.Verification {
	return lock.Verification{
		Name: v.Name, Token: lock.Token(v.FencingToken), Status: lock.TokenStatus(v.Status),
		Newest: lock.Token(v.NewestToken), CheckedAt: v.CheckedAt, Remaining: fromMs(given(v.ExpiresInMs)),
	}
}

func fencedFrom(f openapi.FencedValue) lock.FencedValue {
	value := json.RawMessage("null") // which the decoder shows as if there were no value
	if f.Value != nil {
		value = *f.Value
	}
	return lock.FencedValue{
		Key: f.Key, Lock: f.Lock, Token: lock.Token(f.FencingToken), Version: f.Version,
		Value: value, WrittenAt: f.WrittenAt,
	}
}

// isFenced returns whether an answer tells of the resource of that key.
func isFenced(key string) func(openapi.FencedValue) bool {
	return func(f openapi.FencedValue) bool { return f.Key == key && f.Version > 0 }
}

// modeFrom returns the mode of that name, zero for one that is not known here.
func modeFrom(m openapi.Mode) lock.Mode { return lock.ModeOf(string(m)) }

func each[From, To any](list []From, one func(From) To) []To {
	to := make([]To, len(list))
	for i, from := range list {
		to[i] = one(from)
	}
	return to
}
