package wire

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// LeaseOf returns the model of a grant. ExpiresInMs is the remaining time as of now, so call it just before encoding.
func LeaseOf(g lock.Grant) api.Lease {
	return api.Lease{
		Name: g.Name, LeaseID: [16]byte(g.ID), FencingToken: int64(g.Token), Slot: g.Slot,
		Slots: slotsOf(g.Slots), Mode: modeOf(g.Mode),
		Holder: g.Holder, TTLMs: g.TTL.Milliseconds(), GraceMs: g.Grace.Milliseconds(),
		MaxHoldMs: UnlessZero(g.MaxHold.Milliseconds()), AcquiredAt: g.AcquiredAt.UTC(), ExpiresAt: g.ExpiresAt.UTC(),
		ExpiresInMs: nonNegativeMs(time.Until(g.Until)), Metadata: g.Metadata, Session: sessionName(g.Session),
		OnExpiry: onExpiryOf(g.Stays),
	}
}

// onExpiryOf returns the model, nil for a lease that ends by itself.
func onExpiryOf(stays bool) *api.OnExpiry {
	if !stays {
		return nil
	}
	hold := api.OnExpiryHold
	return &hold
}

// StaysOf reports whether a lease stays.
func StaysOf(o *api.OnExpiry) bool { return ValueOf(o) == api.OnExpiryHold }

// toLease returns the grant. Its Until is sent plus the remaining time. sent is when the request was sent, so that
// Until is never too late.
func toLease(l api.Lease, sent time.Time) lock.Grant {
	lease := lock.Lease{
		ID: lock.LeaseID(l.LeaseID), Name: l.Name, Slot: l.Slot, Slots: lock.SlotsOf(l.Slots), Mode: lock.ModeOf(string(l.Mode)), Holder: l.Holder,
		Token: lock.Token(l.FencingToken), TTL: nonNegative(l.TTLMs), Grace: nonNegative(l.GraceMs),
		MaxHold: nonNegative(ValueOf(l.MaxHoldMs)), AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt,
		Metadata: metadataOf(l.Metadata), Session: sessionRefOf(l.Session), Stays: StaysOf(l.OnExpiry),
	}
	return lock.Grant{Lease: lease, Leases: []lock.Lease{lease}, Until: sent.Add(nonNegative(l.ExpiresInMs))}
}

// slotsOf returns the model of the slots, nil for a lease with one slot.
func slotsOf(s lock.Slots) api.Slots {
	if s == "" {
		return nil
	}
	return s.All(0)
}

// LockOf returns the model of a lock.
func LockOf(l lock.Lock) api.Lock {
	return api.Lock{
		Name: l.Name, State: api.State(l.State), Revision: l.Revision, FencingToken: int64(l.Token),
		AsOf: l.AsOf.UTC(), ChangedAt: instantOf(l.ChangedAt), Capacity: UnlessZero(l.Capacity), Waiters: l.Waiters, WaitersBelow: UnlessZero(l.WaitersBelow),
		Closed: optionalOf(l.Closed, closureOf), Frozen: optionalOf(l.Frozen, freezeOf),
		Leases: MapSlice(l.Leases, leaseInfoOf), Above: mapSome(l.Above, leaseInfoOf), Below: mapSome(l.Below, leaseInfoOf),
	}
}

// ToLock returns the lock.
func ToLock(l api.Lock) lock.Lock {
	return lock.Lock{
		Name: l.Name, State: lock.State(l.State), Revision: l.Revision, Token: lock.Token(l.FencingToken),
		ChangedAt: ValueOf(l.ChangedAt), AsOf: l.AsOf, Capacity: ValueOf(l.Capacity), Waiters: l.Waiters, WaitersBelow: ValueOf(l.WaitersBelow),
		Closed: optionalOf(l.Closed, toClosure), Frozen: optionalOf(l.Frozen, toFreeze),
		Leases: MapSlice(l.Leases, toLeaseInfo), Above: mapSome(l.Above, toLeaseInfo),
		Below: mapSome(l.Below, toLeaseInfo),
	}
}

// TreeOf returns the model of a tree.
func TreeOf(t lock.Tree) api.Tree { return api.Tree{Root: t.Root, DeclaredAt: t.DeclaredAt.UTC()} }

// ToTree returns the tree.
func ToTree(t api.Tree) lock.Tree { return lock.Tree{Root: t.Root, DeclaredAt: t.DeclaredAt} }

// TreeListOf returns the model of a list of trees.
func TreeListOf(all []lock.Tree) api.TreeList { return api.TreeList{Trees: MapSlice(all, TreeOf)} }

// ToTreeList returns the trees.
func ToTreeList(l api.TreeList) []lock.Tree { return MapSlice(l.Trees, ToTree) }

// LockPageOf returns the model of a page of locks.
func LockPageOf(p paddock.Page[lock.Lock]) api.LockPage {
	return api.LockPage{Locks: MapSlice(p.Items, LockOf), NextCursor: UnlessZero(p.Next), Unreadable: mapOptional(p.Unreadable, UnreadableOf)}
}

// ToLockPage returns the page.
func ToLockPage(p api.LockPage) paddock.Page[lock.Lock] {
	return paddock.Page[lock.Lock]{
		Items: MapSlice(p.Locks, ToLock), Next: ValueOf(p.NextCursor), Unreadable: mapOptional(p.Unreadable, ToUnreadable),
	}
}

// UnreadableOf returns the model of a row that cannot be read.
func UnreadableOf(u paddock.Unreadable) api.Unreadable {
	return api.Unreadable{Name: UnlessZero(u.Name), Detail: u.Detail}
}

// ToUnreadable returns the row.
func ToUnreadable(u api.Unreadable) paddock.Unreadable {
	return paddock.Unreadable{Name: ValueOf(u.Name), Detail: u.Detail}
}

func leaseInfoOf(l lock.LeaseInfo) api.LeaseInfo {
	return api.LeaseInfo{
		Slot: l.Slot, Slots: slotsOf(l.Slots), Mode: modeOf(l.Mode), Holder: l.Holder, FencingToken: int64(l.Token),
		AcquiredAt: l.AcquiredAt.UTC(), ExpiresAt: l.ExpiresAt.UTC(), ExpiresInMs: nonNegativeMs(l.Remaining),
		GraceMs: l.Grace.Milliseconds(), Metadata: l.Metadata, Revoked: UnlessZero(l.Revoked),
		OnExpiry: onExpiryOf(l.Stays), Suspect: UnlessZero(l.Suspect),
		Session: sessionName(l.Session), Set: l.Set, Name: UnlessZero(l.Name),
	}
}

// toLeaseInfo returns the public part of a lease.
func toLeaseInfo(l api.LeaseInfo) lock.LeaseInfo {
	return lock.LeaseInfo{
		Slot: l.Slot, Slots: lock.SlotsOf(l.Slots), Mode: lock.ModeOf(string(l.Mode)), Holder: l.Holder, Token: lock.Token(l.FencingToken),
		AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt, Remaining: nonNegative(l.ExpiresInMs),
		Grace: nonNegative(l.GraceMs), Metadata: metadataOf(l.Metadata), Revoked: ValueOf(l.Revoked),
		Stays: StaysOf(l.OnExpiry), Suspect: ValueOf(l.Suspect),
		Session: sessionRefOf(l.Session), Set: l.Set, Name: ValueOf(l.Name),
	}
}

// QueueOf returns the model of a queue.
func QueueOf(q lock.QueueInfo) api.Queue {
	out := api.Queue{Name: q.Name, Revision: q.Revision, AsOf: q.AsOf.UTC(), Waiters: MapSlice(q.Waiters, waiterOf)}
	if q.Chain != nil {
		out.Chain = &api.WaitChain{Steps: MapSlice(q.Chain.Steps, deadlockStepOf), End: api.WaitChainEnd(q.Chain.End)}
	}
	return out
}

// ToQueue returns the queue.
func ToQueue(q api.Queue) lock.QueueInfo {
	out := lock.QueueInfo{Name: q.Name, Revision: q.Revision, AsOf: q.AsOf, Waiters: MapSlice(q.Waiters, toWaiter)}
	if q.Chain != nil {
		out.Chain = &lock.WaitChain{Steps: MapSlice(q.Chain.Steps, toDeadlockStep), End: lock.ChainEnd(q.Chain.End)}
	}
	return out
}

func waiterOf(w lock.WaiterInfo) api.Waiter {
	out := api.Waiter{
		Position: w.Position, Place: w.Place, Mode: modeOf(w.Mode), Capacity: UnlessZero(w.Capacity), Permits: UnlessZero(w.Permits), Holder: w.Holder,
		JoinedAt: w.JoinedAt.UTC(), WaitedMs: nonNegativeMs(w.Waited), Attached: w.Attached, Ahead: w.Ahead,
		BlockedBy: api.WaiterBlockedBy(w.BlockedBy), Leases: MapSlice(w.Leases, leaseInfoOf), Set: w.Set, Name: UnlessZero(w.Name),
		BlockedAt: UnlessZero(w.BlockedAt),
	}
	if !w.Attached {
		out.PlaceKeptMs = new(nonNegativeMs(w.KeptFor))
	}
	return out
}

// toWaiter returns the waiter.
func toWaiter(w api.Waiter) lock.WaiterInfo {
	return lock.WaiterInfo{
		Position: w.Position, Place: w.Place, Mode: lock.ModeOf(string(w.Mode)), Capacity: ValueOf(w.Capacity), Permits: ValueOf(w.Permits),
		Holder: w.Holder, JoinedAt: w.JoinedAt, Waited: nonNegative(w.WaitedMs), Attached: w.Attached,
		KeptFor: nonNegative(ValueOf(w.PlaceKeptMs)), BlockedBy: lock.Blocker(w.BlockedBy),
		Leases: MapSlice(w.Leases, toLeaseInfo), Ahead: w.Ahead, Set: w.Set, Name: ValueOf(w.Name), BlockedAt: ValueOf(w.BlockedAt),
	}
}

// EventPageOf returns the model of a page of events.
func EventPageOf(p paddock.Page[lock.Event]) api.EventPage {
	return api.EventPage{
		Events: MapSlice(p.Items, EventOf), NextCursor: UnlessZero(p.Next), Gap: UnlessZero(p.Gap), SearchedTo: instantOf(p.SearchedTo),
		Unreadable: mapOptional(p.Unreadable, UnreadableOf), EndedSessions: mapOptional(p.EndedSessions, lock.SessionRef.String),
	}
}

// ToEventPage returns the page.
func ToEventPage(p api.EventPage) paddock.Page[lock.Event] {
	return paddock.Page[lock.Event]{
		Items: MapSlice(p.Events, ToEvent), Next: ValueOf(p.NextCursor), Gap: ValueOf(p.Gap), SearchedTo: ValueOf(p.SearchedTo),
		Unreadable: mapOptional(p.Unreadable, ToUnreadable), EndedSessions: mapOptional(p.EndedSessions, func(name string) lock.SessionRef { return sessionRefOf(&name) }),
	}
}

// EventOf returns the model of an event.
func EventOf(e lock.Event) api.Event {
	return api.Event{
		ID: e.ID, At: e.At.UTC(), Lock: e.Name, Slot: e.Slot, Slots: slotsOf(e.Slots), Revision: e.Revision,
		Kind: api.EventKind(e.Kind.String()), Mode: modeOf(e.Mode), Holder: e.Holder,
		FencingToken: UnlessZero(int64(e.Token)), Place: UnlessZero(e.Place), Reason: UnlessZero(e.Reason),
		Until: instantOf(e.Until), By: UnlessZero(e.Caller.Name), TraceID: UnlessZero(e.Caller.Trace),
		Session: sessionName(e.Session), Set: e.Set,
		NewestToken: UnlessZero(int64(e.Newest)), LateMs: lateOf(e), HeldBy: UnlessZero(e.HeldBy),
		Cycle: mapOptional(e.Cycle.Steps(), deadlockStepOf),
	}
}

// lateOf returns how late a refused token was, nil if that is unknown.
func lateOf(e lock.Event) *int64 {
	if e.Late == 0 {
		return nil
	}
	return new(e.Late.Milliseconds())
}

// ToEvent returns the event.
func ToEvent(e api.Event) lock.Event {
	return lock.Event{
		ID: e.ID, At: e.At, Name: e.Lock, Slot: e.Slot, Slots: lock.SlotsOf(e.Slots), Revision: e.Revision, Kind: lock.KindOf(string(e.Kind)),
		Mode: lock.ModeOf(string(e.Mode)), Holder: e.Holder, Token: lock.Token(ValueOf(e.FencingToken)),
		Place: ValueOf(e.Place), Reason: ValueOf(e.Reason), Until: ValueOf(e.Until),
		Caller:  lock.Caller{Name: ValueOf(e.By), Trace: ValueOf(e.TraceID)},
		Session: sessionRefOf(e.Session), Set: e.Set,
		Newest: lock.Token(ValueOf(e.NewestToken)), Late: nonNegative(ValueOf(e.LateMs)), HeldBy: ValueOf(e.HeldBy),
		Cycle: lock.CycleOf(MapSlice(e.Cycle, toDeadlockStep)),
	}
}

// ReportResultOf returns the model of the answer to a report.
func ReportResultOf(recorded bool) api.ReportResult { return api.ReportResult{Recorded: recorded} }

// ToReportResult returns whether the report was recorded.
func ToReportResult(r api.ReportResult) bool { return r.Recorded }

// HoldListOf returns the model of a list of holds.
func HoldListOf(l paddock.HoldList) api.HoldList {
	return api.HoldList{Name: l.Name, Holds: MapSlice(l.Holds, holdOf), Complete: l.Complete}
}

// ToHoldList returns the list.
func ToHoldList(l api.HoldList) paddock.HoldList {
	return paddock.HoldList{Name: l.Name, Holds: MapSlice(l.Holds, toHold), Complete: l.Complete}
}

func holdOf(h lock.Hold) api.Hold {
	out := api.Hold{
		Slot: h.Slot, Slots: slotsOf(h.Slots), Mode: modeOf(h.Mode), Holder: h.Holder, FencingToken: int64(h.Token),
		GrantedAt: instantOf(h.GrantedAt), EndedAt: instantOf(h.EndedAt), Reason: UnlessZero(h.Reason),
		RevokedBy: UnlessZero(h.RevokedBy),
	}
	if h.End != 0 {
		out.End = new(api.HoldEnd(h.End.String()))
	}
	return out
}

// toHold returns the hold.
func toHold(h api.Hold) lock.Hold {
	return lock.Hold{
		Slot: h.Slot, Slots: lock.SlotsOf(h.Slots), Mode: lock.ModeOf(string(h.Mode)), Holder: h.Holder, Token: lock.Token(h.FencingToken),
		GrantedAt: ValueOf(h.GrantedAt), EndedAt: ValueOf(h.EndedAt), End: lock.KindOf(string(ValueOf(h.End))),
		Reason: ValueOf(h.Reason), RevokedBy: ValueOf(h.RevokedBy),
	}
}

// VerificationOf returns the model of a verification.
func VerificationOf(v lock.Verification) api.TokenVerification {
	out := api.TokenVerification{
		Name: v.Name, FencingToken: int64(v.Token), Status: api.TokenVerificationStatus(v.Status),
		Current: v.Status == lock.Current, NewestToken: int64(v.Newest), CheckedAt: v.CheckedAt.UTC(),
	}
	if out.Current {
		out.ExpiresInMs = new(nonNegativeMs(v.Remaining))
	}
	return out
}

// ToVerification returns the verification.
func ToVerification(v api.TokenVerification) lock.Verification {
	return lock.Verification{
		Name: v.Name, Token: lock.Token(v.FencingToken), Status: lock.TokenStatus(v.Status),
		Newest: lock.Token(v.NewestToken), CheckedAt: v.CheckedAt, Remaining: nonNegative(ValueOf(v.ExpiresInMs)),
	}
}

// FencedValueOf returns the model of a resource.
func FencedValueOf(f lock.FencedValue) api.FencedValue {
	return api.FencedValue{
		Key: f.Key, Lock: f.Lock, FencingToken: int64(f.Token), Version: f.Version, Value: f.Value,
		WrittenAt: f.WrittenAt.UTC(),
	}
}

// ToFencedValue returns the resource.
func ToFencedValue(f api.FencedValue) lock.FencedValue {
	return lock.FencedValue{
		Key: f.Key, Lock: f.Lock, Token: lock.Token(f.FencingToken), Version: f.Version, Value: f.Value,
		WrittenAt: f.WrittenAt,
	}
}

// ProblemOf returns the model of e. The caller sets the members that depend on HTTP: type, title, status, pointer and
// request_id.
func ProblemOf(e *lock.Error) api.Problem {
	p := api.Problem{
		Code: api.Code(e.Code), Detail: e.Detail, Holder: UnlessZero(e.Holder), Reason: UnlessZero(e.Reason),
		RevokedBy: UnlessZero(e.RevokedBy), FrozenBy: UnlessZero(e.FrozenBy), FrozenUntil: instantOf(e.FrozenUntil), DoneAt: instantOf(e.DoneAt),
		EndedAt: instantOf(e.EndedAt), FencingToken: UnlessZero(int64(e.Token)),
		NewestToken: UnlessZero(int64(e.Newest)), Version: UnlessZero(e.Version), WaitersAhead: UnlessZero(e.Ahead),
		Suspect: UnlessZero(e.Suspect), PlaceKeptMs: UnlessZero(nonNegativeMs(e.KeptFor)), Capacity: UnlessZero(e.Capacity),
		Blockers: mapOptional(e.Blocked, blockedLockOf), Set: e.Set,
		Cycle: mapOptional(e.Cycle, deadlockStepOf),
	}
	if e.RetryAfter > 0 {
		p.RetryAfterMs = new(RoundUp(e.RetryAfter, time.Millisecond))
	}
	p.GraceLeftMs = UnlessZero(nonNegativeMs(e.GraceLeft))
	if e.Ended != 0 {
		p.Ended = new(api.ProblemEnded(e.Ended.String()))
	}
	switch e.Code {
	case lock.ErrTokenMismatch, lock.ErrUnknownToken:
		p.NewestToken = new(int64(e.Newest)) // also zero, which means that no token was granted
	case lock.ErrVersionMismatch:
		p.Version = &e.Version // also zero, which means that nothing was written
	}
	return p
}

// ToError returns the error, without a Cause.
func ToError(p api.Problem) *lock.Error {
	return &lock.Error{
		Code: lock.Code(p.Code), Detail: p.Detail, Field: strings.TrimPrefix(ValueOf(p.Pointer), "/"),
		Holder: ValueOf(p.Holder), RetryAfter: nonNegative(ValueOf(p.RetryAfterMs)), Ahead: ValueOf(p.WaitersAhead),
		Suspect: ValueOf(p.Suspect), KeptFor: nonNegative(ValueOf(p.PlaceKeptMs)), Capacity: ValueOf(p.Capacity),
		Token: lock.Token(ValueOf(p.FencingToken)), Newest: lock.Token(ValueOf(p.NewestToken)),
		Version: ValueOf(p.Version), Ended: lock.KindOf(string(ValueOf(p.Ended))), EndedAt: ValueOf(p.EndedAt),
		DoneAt: ValueOf(p.DoneAt), FrozenBy: ValueOf(p.FrozenBy), FrozenUntil: ValueOf(p.FrozenUntil),
		Reason: ValueOf(p.Reason), RevokedBy: ValueOf(p.RevokedBy), GraceLeft: nonNegative(ValueOf(p.GraceLeftMs)),
		Blocked: mapOptional(p.Blockers, toBlockedLock), Set: p.Set,
		Cycle: mapOptional(p.Cycle, toDeadlockStep),
	}
}

// metadataOf returns the metadata of an answer, in which null means that there is none.
func metadataOf(m json.RawMessage) json.RawMessage {
	if string(m) == "null" {
		return nil
	}
	return m
}

func modeOf(m lock.Mode) api.Mode { return api.Mode(m.String()) }

// MapSlice returns of(item) for each item. The result is never nil, so that its JSON is a list.
func MapSlice[In, Out any](items []In, of func(In) Out) []Out {
	out := make([]Out, len(items))
	for i, item := range items {
		out[i] = of(item)
	}
	return out
}

// mapSome is MapSlice for a field that is absent if it has no items.
func mapSome[In, Out any](items []In, of func(In) Out) []Out {
	if len(items) == 0 {
		return nil
	}
	return MapSlice(items, of)
}

// optionalOf returns a pointer to of(*p), nil if p is nil.
func optionalOf[In, Out any](p *In, of func(In) Out) *Out {
	if p == nil {
		return nil
	}
	return new(of(*p))
}

// ValueOf returns *p, or the zero value if p is nil.
func ValueOf[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// DurationOf returns milliseconds as a Duration; those out of range become the nearest one.
func DurationOf(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(ms, -most), most)) * time.Millisecond
}

// nonNegative returns the milliseconds of an answer as a Duration, zero if they are negative.
func nonNegative(ms int64) time.Duration { return DurationOf(max(ms, 0)) }

// RoundUp returns d in units, rounded up.
func RoundUp(d, unit time.Duration) int64 {
	if d > math.MaxInt64-unit {
		return int64(d / unit)
	}
	return int64((d + unit - 1) / unit)
}

// nonNegativeMs returns d in milliseconds, zero if it is negative.
func nonNegativeMs(d time.Duration) int64 { return max(d.Milliseconds(), 0) }

// instantOf returns nil for the zero Time.
func instantOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// UnlessZero returns a pointer to v, or nil if v is zero.
func UnlessZero[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
