package main

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// What -o json prints: the same members as the service's own answers have, see
// openapi.yaml. Instants are UTC; what is left is counted when it is printed.

type wireLease struct {
	Name         string          `json:"name"`
	LeaseID      uuid.UUID       `json:"lease_id"`
	FencingToken lock.Token      `json:"fencing_token"`
	Slot         int             `json:"slot"`
	Mode         string          `json:"mode"`
	Holder       string          `json:"holder"`
	TTLMs        int64           `json:"ttl_ms"`
	GraceMs      int64           `json:"grace_ms"`
	MaxHoldMs    int64           `json:"max_hold_ms,omitempty"`
	AcquiredAt   time.Time       `json:"acquired_at"`
	ExpiresAt    time.Time       `json:"expires_at"`
	ExpiresInMs  int64           `json:"expires_in_ms"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
}

func leaseTo(g lock.Grant) wireLease {
	return wireLease{
		Name: g.Name, LeaseID: uuid.UUID(g.ID), FencingToken: g.Token, Slot: g.Slot, Mode: g.Mode.String(), Holder: g.Holder,
		TTLMs: g.TTL.Milliseconds(), GraceMs: g.Grace.Milliseconds(), MaxHoldMs: g.MaxHold.Milliseconds(),
		AcquiredAt: g.AcquiredAt.UTC(), ExpiresAt: g.ExpiresAt.UTC(), ExpiresInMs: left(g).Milliseconds(), Metadata: g.Metadata,
	}
}

// left returns for how long the holder may still count on the lease.
func left(g lock.Grant) time.Duration { return max(time.Until(g.Until), 0) }

type wireLock struct {
	Name         string        `json:"name"`
	State        lock.State    `json:"state"`
	Revision     int64         `json:"revision"`
	FencingToken lock.Token    `json:"fencing_token"`
	AsOf         time.Time     `json:"as_of"`
	ChangedAt    *time.Time    `json:"changed_at,omitempty"`
	Capacity     int           `json:"capacity,omitempty"`
	Waiters      int           `json:"waiters"`
	Leases       []wireHolding `json:"leases"`
}

func lockTo(l lock.Lock) wireLock {
	w := wireLock{
		Name: l.Name, State: l.State, Revision: l.Revision, FencingToken: l.Token, AsOf: l.AsOf.UTC(), Capacity: l.Capacity,
		Waiters: l.Waiters, Leases: each(l.Leases, holdingTo),
	}
	if !l.ChangedAt.IsZero() {
		w.ChangedAt = new(l.ChangedAt.UTC())
	}
	return w
}

type wireHolding struct {
	Slot         int             `json:"slot"`
	Mode         string          `json:"mode"`
	Holder       string          `json:"holder"`
	FencingToken lock.Token      `json:"fencing_token"`
	AcquiredAt   time.Time       `json:"acquired_at"`
	ExpiresAt    time.Time       `json:"expires_at"`
	ExpiresInMs  int64           `json:"expires_in_ms"`
	GraceMs      int64           `json:"grace_ms"`
	Revoked      bool            `json:"revoked,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
}

func holdingTo(h lock.LeaseInfo) wireHolding {
	return wireHolding{
		Slot: h.Slot, Mode: h.Mode.String(), Holder: h.Holder, FencingToken: h.Token, AcquiredAt: h.AcquiredAt.UTC(),
		ExpiresAt: h.ExpiresAt.UTC(), ExpiresInMs: h.Remaining.Milliseconds(), GraceMs: h.Grace.Milliseconds(), Metadata: h.Metadata,
		Revoked: h.Revoked,
	}
}

type wireQueue struct {
	Name     string       `json:"name"`
	Revision int64        `json:"revision"`
	AsOf     time.Time    `json:"as_of"`
	Waiters  []wireWaiter `json:"waiters"`
}

func queueTo(q lock.QueueInfo) wireQueue {
	return wireQueue{Name: q.Name, Revision: q.Revision, AsOf: q.AsOf.UTC(), Waiters: each(q.Waiters, waiterTo)}
}

type wireWaiter struct {
	Position    int           `json:"position"`
	Place       int64         `json:"place"`
	Mode        string        `json:"mode"`
	Capacity    int           `json:"capacity,omitempty"`
	Holder      string        `json:"holder"`
	JoinedAt    time.Time     `json:"joined_at"`
	WaitedMs    int64         `json:"waited_ms"`
	Attached    bool          `json:"attached"`
	PlaceKeptMs *int64        `json:"place_kept_ms,omitempty"`
	Ahead       int           `json:"ahead"`
	BlockedBy   lock.Blocker  `json:"blocked_by"`
	Leases      []wireHolding `json:"leases"`
}

func waiterTo(w lock.WaiterInfo) wireWaiter {
	out := wireWaiter{
		Position: w.Position, Place: w.Place, Mode: w.Mode.String(), Capacity: w.Capacity, Holder: w.Holder, JoinedAt: w.JoinedAt.UTC(),
		WaitedMs: w.Waited.Milliseconds(), Attached: w.Attached, Ahead: w.Ahead, BlockedBy: w.BlockedBy, Leases: each(w.Leases, holdingTo),
	}
	if !w.Attached {
		out.PlaceKeptMs = new(w.KeptFor.Milliseconds())
	}
	return out
}

type wireEvent struct {
	ID           int64      `json:"id"`
	At           time.Time  `json:"at"`
	Lock         string     `json:"lock"`
	Slot         int        `json:"slot"`
	Revision     int64      `json:"revision"`
	Kind         string     `json:"kind"`
	Mode         string     `json:"mode"`
	Holder       string     `json:"holder"`
	FencingToken lock.Token `json:"fencing_token,omitempty"`
	Place        int64      `json:"place,omitempty"`
	Reason       string     `json:"reason,omitempty"`
}

func eventTo(e lock.Event) wireEvent {
	return wireEvent{
		ID: e.ID, At: e.At.UTC(), Lock: e.Name, Slot: e.Slot, Revision: e.Revision, Kind: e.Kind.String(), Mode: e.Mode.String(),
		Holder: e.Holder, FencingToken: e.Token, Place: e.Place, Reason: e.Reason,
	}
}

// each returns what to makes of every item; never nil, so that JSON has a list.
func each[From, To any](items []From, to func(From) To) []To {
	out := make([]To, len(items))
	for i, item := range items {
		out[i] = to(item)
	}
	return out
}
