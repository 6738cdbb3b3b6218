package wire

import (
	"encoding/json"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// SessionOf returns the model of a session for its holder. ExpiresInMs is the remaining time as of now, so call it
// just before encoding.
func SessionOf(g lock.SessionGrant) api.Session {
	return api.Session{
		SessionID: [16]byte(g.ID), Session: g.ID.Ref().String(), Holder: g.Holder, TTLMs: g.TTL.Milliseconds(),
		GraceMs: g.Grace.Milliseconds(), OpenedAt: g.OpenedAt.UTC(), ExpiresAt: g.ExpiresAt.UTC(),
		ExpiresInMs: nonNegativeMs(time.Until(g.Until)), RevokedLeases: g.RevokedLeases, Metadata: g.Metadata,
	}
}

// toSession returns the session. Its Until is sent plus the remaining time, as that of a [Lease].
func toSession(s api.Session, sent time.Time) lock.SessionGrant {
	return lock.SessionGrant{
		Session: lock.Session{
			ID: lock.SessionID(s.SessionID), Holder: s.Holder, TTL: nonNegative(s.TTLMs), Grace: nonNegative(s.GraceMs),
			Metadata: metadataOf(s.Metadata), OpenedAt: s.OpenedAt, ExpiresAt: s.ExpiresAt, RevokedLeases: s.RevokedLeases,
		},
		Until: sent.Add(nonNegative(s.ExpiresInMs)),
	}
}

// ParseSession decodes the answer to a call of the holder of a session. sent is when the request was sent.
func ParseSession(text []byte, id lock.SessionID, sent time.Time) (lock.SessionGrant, error) {
	var s api.Session
	if err := json.Unmarshal(text, &s); err != nil {
		return lock.SessionGrant{}, err
	}
	if s.SessionID != [16]byte(id) || sessionRefOf(&s.Session) != id.Ref() {
		return lock.SessionGrant{}, ErrNotTheAnswer
	}
	return toSession(s, sent), nil
}

// SessionInfoOf returns the model of a session with its leases and places.
func SessionInfoOf(s lock.SessionInfo) api.SessionInfo {
	out := SessionItemOf(s)
	out.Locks = new(MapSlice(s.Locks, sessionLockOf))
	return out
}

// SessionItemOf returns the model of a session in a list.
func SessionItemOf(s lock.SessionInfo) api.SessionInfo {
	out := api.SessionInfo{
		Session: s.Ref.String(), Holder: s.Holder, TTLMs: s.TTL.Milliseconds(), GraceMs: s.Grace.Milliseconds(),
		OpenedAt: s.OpenedAt.UTC(), ExpiresAt: s.ExpiresAt.UTC(), ExpiresInMs: nonNegativeMs(s.Remaining), AsOf: s.AsOf.UTC(),
		EndedAt: instantOf(s.EndedAt), Reason: UnlessZero(s.Reason), RevokedBy: UnlessZero(s.RevokedBy), Leases: s.Leases, Places: s.Places, Metadata: s.Metadata,
	}
	if s.Ended != 0 {
		out.Ended = new(api.SessionInfoEnded(s.Ended.String()))
	}
	return out
}

// ToSessionInfo returns the session. Its Locks are nil if the answer has none.
func ToSessionInfo(s api.SessionInfo) lock.SessionInfo {
	out := lock.SessionInfo{
		Ref: sessionRefOf(&s.Session), Holder: s.Holder, TTL: nonNegative(s.TTLMs), Grace: nonNegative(s.GraceMs),
		Metadata: metadataOf(s.Metadata), OpenedAt: s.OpenedAt, ExpiresAt: s.ExpiresAt, Remaining: nonNegative(s.ExpiresInMs),
		Ended: lock.KindOf(string(ValueOf(s.Ended))), EndedAt: ValueOf(s.EndedAt), Reason: ValueOf(s.Reason), RevokedBy: ValueOf(s.RevokedBy), AsOf: s.AsOf,
		Leases: s.Leases, Places: s.Places,
	}
	if s.Locks != nil {
		out.Locks = MapSlice(*s.Locks, toSessionLock)
	}
	return out
}

func sessionLockOf(l lock.SessionLock) api.SessionLock {
	out := api.SessionLock{
		Name: l.Name, Mode: modeOf(l.Mode), FencingToken: UnlessZero(int64(l.Token)), Place: UnlessZero(l.Place),
	}
	if out.FencingToken != nil {
		out.Slots = slotsOf(l.Slots)
		out.Slot = &l.Slot // also zero, which is the slot of an exclusive lease
	}
	return out
}

// toSessionLock returns the lease or the place.
func toSessionLock(l api.SessionLock) lock.SessionLock {
	return lock.SessionLock{
		Name: l.Name, Mode: lock.ModeOf(string(l.Mode)), Slot: ValueOf(l.Slot), Slots: lock.SlotsOf(l.Slots), Token: lock.Token(ValueOf(l.FencingToken)),
		Place: ValueOf(l.Place),
	}
}

// SessionPageOf returns the model of a page of sessions.
func SessionPageOf(p paddock.Page[lock.SessionInfo]) api.SessionPage {
	return api.SessionPage{
		Sessions: MapSlice(p.Items, SessionItemOf), NextCursor: UnlessZero(p.Next), Unreadable: mapOptional(p.Unreadable, UnreadableOf),
	}
}

// ToSessionPage returns the page.
func ToSessionPage(p api.SessionPage) paddock.Page[lock.SessionInfo] {
	return paddock.Page[lock.SessionInfo]{
		Items: MapSlice(p.Sessions, ToSessionInfo), Next: ValueOf(p.NextCursor),
		Unreadable: mapOptional(p.Unreadable, ToUnreadable),
	}
}

// sessionName returns the public name of a session, nil for none.
func sessionName(ref lock.SessionRef) *string {
	if ref == 0 {
		return nil
	}
	return new(ref.String())
}

// sessionRefOf returns the session of this public name, zero if there is no name or it is invalid.
func sessionRefOf(name *string) lock.SessionRef {
	ref, err := lock.ParseSessionRef("session", ValueOf(name))
	if err != nil {
		return 0
	}
	return ref
}
