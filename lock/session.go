package lock

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A SessionID is the secret UUID that proves ownership of a session. The zero SessionID means none. Printing it shows
// a placeholder.
type SessionID [16]byte

// String returns a placeholder, so that no session_id gets into a log by accident.
func (SessionID) String() string { return "(session_id)" }

// GoString returns the same placeholder, for %#v.
func (SessionID) GoString() string { return "(session_id)" }

// Ref returns the public name of the session, zero for the zero SessionID.
func (id SessionID) Ref() SessionRef {
	if id == (SessionID{}) {
		return 0
	}
	sum := sha256.Sum256(id[:])
	return SessionRef(binary.BigEndian.Uint64(sum[:])>>1 | 1)
}

// A SessionRef is the public name of a session: 63 bits of the SHA-256 of its SessionID. It proves nothing. Zero is
// none.
type SessionRef int64

// String returns the name on the wire: 16 hexadecimal digits, or "" for none.
func (r SessionRef) String() string {
	if r == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", int64(r))
}

// ParseSessionRef returns the SessionRef whose name on the wire is text, or an ErrInvalid error for the field.
func ParseSessionRef(field, text string) (SessionRef, error) {
	n, err := strconv.ParseInt(text, 16, 64)
	if r := SessionRef(n); err == nil && n > 0 && r.String() == text {
		return r, nil
	}
	return 0, Invalid(field, "is invalid; give the 16 hexadecimal digits that name a session, not its session_id")
}

// A Session keeps the leases of one client alive: they have no end of their own, and end together with the session.
// Instants are of the database's clock.
//
//	        Renew                      time                  time
//	open ──────────▶ open ───────────────────────▶ grace ──────────▶ expired
//	 │                ▲            Renew             │ │
//	 │                └──────────────────────────────┘ │
//	 └──────────────── Close, Revoke ──────────────────┴───────────▶ closed, revoked
//
// The end of a session is recorded before it has an effect on a lock. A recorded end is final. Until it is recorded,
// a session that has expired by the clock may still be renewed by a call that was decided in time. A session that is
// closed or revoked cannot be renewed or used any more; its leases are then ended one by one, see [EndSession].
type Session struct {
	ID        SessionID
	Holder    string
	TTL       time.Duration // a renewal extends the session by it
	Left      time.Duration // as that of a Lease
	Grace     time.Duration // after ExpiresAt: the session may still be renewed, and its leases still count
	Metadata  json.RawMessage
	OpenedAt  time.Time
	ExpiresAt time.Time
	Ended     Kind // Released if its holder has closed it, Expired or Revoked; zero while it is open
	EndedAt   time.Time
	Reason    string // of a revocation
	EndedBy   Caller // who closed or revoked it
	SkipGrace bool   // the revocation has skipped the grace
	// Cells are the cells in which the session is used, in a service of several; a row of each of them has all of them.
	Cells CellSet
	// RevokedLeases is how many of its leases a [Revoke] has ended. It is increased by far more than that when the
	// database may have lost leases. A holder who sees it grow must find out which leases are left.
	RevokedLeases int64
}

// A CellSet is a set of cells, see package cell: bit n is the cell at position n. It is zero
// in a service without cells. The sign bit says that a session is only registered where its row is: a client opens it
// before it names a lock, so before it is known which cells will use it. A registered session cannot have leases.
type CellSet int64

// MaxCells is the greatest number of cells: a CellSet has a bit for each, beside that of Registered.
const MaxCells = 63

// Registered is the CellSet of a session that no cell uses.
const Registered CellSet = -1 << 63

// With returns the union of the sets. It is Registered only if both are.
func (c CellSet) With(o CellSet) CellSet { return (c|o)&^Registered | c&o&Registered }

// Has reports whether the cell at the position is in the set.
func (c CellSet) Has(position int) bool { return c>>position&1 == 1 }

// Length returns how long the session lasts from its opening or last renewal: after a fail-over it has so long again.
func (s *Session) Length() time.Duration { return max(s.TTL, s.Left) }

// EndsAt returns when the leases of the session end unless it is renewed, or have ended.
func (s Session) EndsAt() time.Time { return s.ExpiresAt.Add(s.Grace) }

// IsOver reports whether no lease of the session can be active at now.
func (s Session) IsOver(now time.Time) bool { return !now.Before(s.EndsAt()) }

// Undecided reports whether the session is over by the clock at now, but its end is not recorded. Do not decide about
// its leases then: a renewal may have been decided in time. Expire records the end.
func (s Session) Undecided(now time.Time) bool { return s.Ended == 0 && s.IsOver(now) }

// Expire returns s with its end recorded, if it is over at now. The caller must lock the session from reading s until
// it has stored the result.
func (s Session) Expire(now time.Time) (after Session, expired bool) {
	if !s.Undecided(now) {
		return s, false
	}
	return s.end(Expired, s.EndsAt()), true
}

func (s Session) end(how Kind, at time.Time) Session {
	s.Ended, s.EndedAt = how, at
	return s
}

// errLost returns the refusal of a call with a session that has ended, or is over at now.
func (s Session) errLost(now time.Time) *Error {
	how, at := s.Ended, s.EndedAt
	if how == 0 {
		how, at = Expired, s.EndsAt()
	}
	what := map[Kind]string{Released: "was closed", Expired: "expired", Revoked: "ended"}[how]
	return &Error{Code: ErrSessionLost, Ended: how, EndedAt: at, Reason: s.Reason, RevokedBy: s.revokedBy(), GraceLeft: s.graceLeft(now), Detail: fmt.Sprintf(
		"The session %s %s ago, and its leases end with it. %sStop the work; to continue, open a session with a new session_id.",
		what, InWords(now.Sub(at)), revocation(how, s.Reason, s.revokedBy()))}
}

// revokedBy returns the name of the API key that revoked the session; empty for none.
func (s *Session) revokedBy() string {
	if s.Ended != Revoked {
		return ""
	}
	return s.EndedBy.Name
}

// graceLeft returns how long the grace of a revoked session still keeps others from its locks.
func (s Session) graceLeft(now time.Time) time.Duration {
	if s.Ended != Revoked || s.SkipGrace {
		return 0
	}
	from := s.EndedAt
	if s.ExpiresAt.Before(from) { // its grace was running
		from = s.ExpiresAt
	}
	return max(from.Add(s.Grace).Sub(now), 0)
}

// NoSession returns the refusal of a call with a session_id that no session has.
func NoSession() *Error {
	return &Error{Code: ErrSessionLost, Detail: "There is no session with that session_id, and no record of its end. " +
		"Stop the work; check the session_id, or open a session with a new one."}
}

// usable returns the refusal of a call with the session_id, or nil if the session can be used at now. The session is
// nil if there is none.
func (s *Session) usable(id SessionID, now time.Time) error {
	switch {
	case s == nil || s.ID != id:
		return NoSession()
	case s.Ended != 0 || s.IsOver(now):
		return s.errLost(now)
	}
	return nil
}

// A SessionGrant is a session as returned to its holder.
type SessionGrant struct {
	Session
	// Until is the instant on this process's own clock by which the holder must have stopped or renewed, like that of
	// a [Grant].
	Until    time.Time
	Replayed bool // OpenSession: whether an earlier call has opened it
}

// A SessionInfo is the public view of a session at one instant. It contains no secret.
type SessionInfo struct {
	Ref       SessionRef
	Holder    string
	TTL       time.Duration
	Grace     time.Duration
	Metadata  json.RawMessage
	OpenedAt  time.Time
	ExpiresAt time.Time
	Remaining time.Duration // from AsOf until ExpiresAt, never negative
	Ended     Kind          // see Session; Expired also if the end is not recorded yet
	EndedAt   time.Time
	Reason    string
	RevokedBy string    // the name of the API key that revoked it; empty in a service without keys
	AsOf      time.Time // on the database's clock
	Cells     CellSet   // see Session
	Leases    int       // their number, and that of places in queues
	Places    int
	Locks     []SessionLock // the leases and the places, in the order of their locks; only if one session was asked for
}

// A SessionLock is a lease or a place of a session.
type SessionLock struct {
	Name  string
	Mode  Mode
	Slot  int
	Slots Slots // of several permits; otherwise empty
	Token Token // zero for a place
	Place int64 // zero for a lease
}

// Compare orders leases and places by their locks: the leases of a lock in the order of slots, then the places.
func (l SessionLock) Compare(o SessionLock) int {
	return cmp.Or(strings.Compare(l.Name, o.Name), cmp.Compare(l.Place, o.Place), cmp.Compare(l.Slot, o.Slot))
}

// CountSessionLocks returns the numbers of leases and of places.
func CountSessionLocks(all []SessionLock) (leases, places int) {
	for _, l := range all {
		if l.Place > 0 {
			places++
		}
	}
	return len(all) - places, places
}

// MaxSessionLocks is how many leases and places a SessionInfo lists at most.
const MaxSessionLocks = 1000

// Info returns the public view of s at now, without what it keeps alive.
func (s Session) Info(now time.Time) SessionInfo {
	if after, expired := s.Expire(now); expired {
		s = after
	}
	return SessionInfo{
		Ref: s.ID.Ref(), Holder: s.Holder, TTL: s.TTL, Grace: s.Grace, Metadata: s.Metadata, OpenedAt: s.OpenedAt,
		ExpiresAt: s.ExpiresAt, Remaining: max(s.ExpiresAt.Sub(now), 0), Ended: s.Ended, EndedAt: s.EndedAt, Reason: s.Reason,
		RevokedBy: s.revokedBy(),
		AsOf:      now, Cells: s.Cells,
	}
}

// A SessionChange opens, renews, closes or revokes a session.
type SessionChange interface {
	// Session returns the session that is changed.
	Session() SessionRef
	// Change decides at now and returns the changed session. The given session is nil if there is none; it is not
	// modified. The caller must lock the session, then read it and the clock, and hold the lock until the result is
	// stored. stored is false if there is nothing to store. A repeated call that succeeds stores the session
	// unchanged, so that its answer is as durable as the first one.
	Change(s *Session, now time.Time) (after Session, stored bool, err error)
}

// OpenSession opens a session. If a session with this ID is open already, it returns that session, with its remaining
// time.
type OpenSession struct {
	ID       SessionID     // zero: the service generates one, and the request cannot be retried
	Holder   string        // free text for people: 1 to MaxHolderLength characters
	TTL      time.Duration // within the Bounds; zero: their default
	Grace    time.Duration // within the Bounds
	Metadata json.RawMessage
	Cells    CellSet // added to those of the session. Services set it
}

// Resolve returns o with its defaults filled in, or an ErrInvalid error that names the invalid field.
func (o OpenSession) Resolve(b Bounds) (OpenSession, error) {
	o.TTL = cmp.Or(o.TTL, b.DefaultTTL)
	return o, cmp.Or(
		checkText("holder", o.Holder, 1, MaxHolderLength),
		CheckDuration("ttl_ms", o.TTL, b.MinTTL, b.MaxTTL),
		CheckDuration("grace_ms", o.Grace, 0, b.MaxGrace),
		checkMetadata(o.Metadata),
	)
}

// Session returns the session.
func (o OpenSession) Session() SessionRef { return o.ID.Ref() }

// Change opens the session, or finds it. A session_id whose session has ended is never used again.
func (o OpenSession) Change(s *Session, now time.Time) (Session, bool, error) {
	if s == nil {
		return Session{
			ID: o.ID, Holder: o.Holder, TTL: o.TTL, Grace: o.Grace, Metadata: o.Metadata, OpenedAt: now,
			ExpiresAt: now.Add(o.TTL), Cells: o.Cells,
		}, true, nil
	}
	if err := s.usable(o.ID, now); err != nil {
		return Session{}, false, err
	}
	if s.Holder != o.Holder {
		return Session{}, false, &Error{Code: ErrSessionIDInUse, Detail: "The session_id belongs to a session with another holder. " +
			"Use a new random UUID for each session."}
	}
	after := *s
	after.Cells = s.Cells.With(o.Cells)
	return after, true, nil // stored, so that what the answer confirms is as durable as the opening
}

// RenewSession sets the expiry of a session to now plus its TTL, but never to an earlier one than it has. It works
// until the end of the grace. It does not revive a session that has ended.
type RenewSession struct {
	ID  SessionID
	TTL time.Duration // the session's new TTL, within the Bounds; zero: unchanged
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r RenewSession) Resolve(b Bounds) (RenewSession, error) {
	if r.TTL != 0 {
		if err := CheckDuration("ttl_ms", r.TTL, b.MinTTL, b.MaxTTL); err != nil {
			return r, err
		}
	}
	return r, checkSessionID(r.ID)
}

// Session returns the session.
func (r RenewSession) Session() SessionRef { return r.ID.Ref() }

// Change extends the session, or refuses with ErrSessionLost.
func (r RenewSession) Change(s *Session, now time.Time) (Session, bool, error) {
	if err := s.usable(r.ID, now); err != nil {
		return Session{}, false, err
	}
	after := *s
	after.TTL, after.Left = cmp.Or(r.TTL, s.TTL), 0
	if end := now.Add(after.TTL); end.Before(s.ExpiresAt) {
		after.Left = s.ExpiresAt.Sub(now)
	} else {
		after.ExpiresAt = end
	}
	return after, true, nil
}

// CloseSession ends a session, its leases and its places in queues. Closing it again succeeds and changes nothing. A
// session that ended in another way is refused with ErrSessionLost, because the work may have overlapped with another
// holder's.
type CloseSession struct {
	ID SessionID
	By Caller // services set it
}

// Resolve returns c, or an ErrInvalid error that names the invalid field.
func (c CloseSession) Resolve() (CloseSession, error) { return c, checkSessionID(c.ID) }

// Session returns the session.
func (c CloseSession) Session() SessionRef { return c.ID.Ref() }

// Change marks the session as closed. Each lease still blocks others until an EndSession has ended it.
func (c CloseSession) Change(s *Session, now time.Time) (Session, bool, error) {
	if s != nil && s.ID == c.ID && s.Ended == Released {
		return *s, true, nil
	}
	if err := s.usable(c.ID, now); err != nil {
		return Session{}, false, err
	}
	after := s.end(Released, now)
	after.EndedBy = c.By
	return after, true, nil
}

// RevokeSession ends a session, its leases and its places in queues, on behalf of an operator. The leases are revoked
// like those of a [Revoke]: conflicting grants wait until the grace of the session is over, unless SkipGrace is set.
type RevokeSession struct {
	Ref       SessionRef
	Reason    string // for people: 1 to MaxReasonLength characters
	SkipGrace bool
	By        Caller // services set it
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r RevokeSession) Resolve() (RevokeSession, error) {
	return r, checkText("reason", r.Reason, 1, MaxReasonLength)
}

// Session returns the session.
func (r RevokeSession) Session() SessionRef { return r.Ref }

// Change marks the session as revoked, or refuses with ErrNotFound. Revoking it again changes nothing, except that it
// may skip the grace.
func (r RevokeSession) Change(s *Session, now time.Time) (Session, bool, error) {
	switch {
	case s == nil:
		return Session{}, false, UnknownSession()
	case s.Ended == Revoked:
		after := *s
		after.SkipGrace = s.SkipGrace || r.SkipGrace
		return after, true, nil
	case s.Ended != 0 || s.IsOver(now):
		return Session{}, false, s.errLost(now)
	}
	after := s.end(Revoked, now)
	after.Reason, after.EndedBy, after.SkipGrace = r.Reason, r.By, r.SkipGrace
	return after, true, nil
}

// UnknownSession returns the error of a call about a session that does not exist, or was deleted long after its end.
func UnknownSession() error {
	return &Error{Code: ErrNotFound, Detail: "There is no session of that name, or it ended long ago. List the sessions to find its name."}
}

func checkSessionID(id SessionID) error {
	if id == (SessionID{}) {
		return Invalid("session_id", "is missing; send the UUID with which the session was opened")
	}
	return nil
}
