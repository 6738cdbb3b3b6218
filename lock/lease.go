package lock

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// A LeaseID is the secret UUID that proves ownership of a lease. The zero LeaseID means none. Printing it shows a
// placeholder.
type LeaseID [16]byte

// String returns a placeholder, so that no lease_id gets into a log by accident.
func (LeaseID) String() string { return "(lease_id)" }

// GoString returns the same placeholder, for %#v.
func (LeaseID) GoString() string { return "(lease_id)" }

// A LeaseRef identifies a lease without revealing its lease_id: 63 bits of the SHA-256 of name and lease_id.
type LeaseRef int64

// RefOf returns the reference of a lease of the lock name.
func RefOf(name string, id LeaseID) LeaseRef {
	sum := sha256.Sum256(append([]byte(name), id[:]...))
	return LeaseRef(binary.BigEndian.Uint64(sum[:]) >> 1)
}

// A Token is a fencing token. A grant that was requested after another grant was answered has the greater token, at
// whatever locks, and of two conflicting grants of a lock the later one has. Only a shared lease that joins others has
// their token. Tokens are positive and at most MaxToken, and have gaps.
type Token int64

const (
	// MaxToken is the greatest token: 2⁵³−1, which JavaScript can represent exactly.
	MaxToken Token = 1<<53 - 1
	// MaxTokens is the most tokens that one decision grants.
	MaxTokens = 256
)

// Provisional returns the n-th provisional token, n from 0 on. It stands for a token that is not known until the
// decision is stored: it is greater than every token, and grows with n. See [Decision.SetTokens].
func Provisional(n int) Token { return MaxToken + 1 + Token(n) }

// IsProvisional reports whether the token is provisional.
func (t Token) IsProvisional() bool { return t > MaxToken }

// Known returns the token that a provisional one stands for if first is that of Provisional(0), and other tokens as
// they are.
func (t Token) Known(first Token) Token {
	if t.IsProvisional() {
		return first + t - Provisional(0)
	}
	return t
}

// An Attachment is the random number that identifies one waiting call. A place belongs to the lease_id; the
// attachment identifies the call that waits there now, so that an abandoned call cannot affect the call that replaced
// it. The zero Attachment is none.
type Attachment int64

// A Mode says which leases of a lock are compatible. The zero Mode is invalid.
type Mode int16

// The modes. Leases of different modes conflict.
const (
	// Exclusive leases conflict with every other lease of the name.
	Exclusive Mode = iota + 1
	// Shared leases do not conflict with each other: readers.
	Shared
	// Permit leases do not conflict with each other up to a capacity: a semaphore.
	Permit
	// IntentionShared and IntentionExclusive leases stand for one of a lock below, see [Trees]. No request has such a
	// mode.
	IntentionShared
	IntentionExclusive
)

var modeNames = [...]string{Exclusive: "exclusive", Shared: "shared", Permit: "permit"}

// MaxMode is the last of the modes.
const MaxMode = IntentionExclusive

// String returns the mode's name on the wire, "unknown" for an invalid mode.
func (m Mode) String() string {
	if m < Exclusive || int(m) >= len(modeNames) {
		return "unknown"
	}
	return modeNames[m]
}

// ModeOf returns the Mode whose name on the wire is name, zero if there is none.
func ModeOf(name string) Mode {
	for m := Exclusive; int(m) < len(modeNames); m++ {
		if modeNames[m] == name {
			return m
		}
	}
	return 0
}

// IsIntention reports whether leases of the mode only stand for one of a lock below, see [Trees].
func (m Mode) IsIntention() bool { return m == IntentionShared || m == IntentionExclusive }

// intentionFor returns the mode at the ancestors of a lock that is acquired in the mode.
func intentionFor(m Mode) Mode {
	if m == Shared {
		return IntentionShared
	}
	return IntentionExclusive
}

// compatibleInTree reports whether leases of the two modes are compatible in a tree.
func (m Mode) compatibleInTree(o Mode) bool {
	switch {
	case m == Exclusive || o == Exclusive:
		return false
	case m == IntentionExclusive || o == IntentionExclusive:
		return m.IsIntention() && o.IsIntention()
	}
	return true
}

// mayOvertake reports whether a waiter of mode m may be granted a lock before an earlier waiter of mode o.
func (m Mode) mayOvertake(o Mode) bool {
	return (m.IsIntention() || o.IsIntention()) && m.compatibleInTree(o)
}

// A Lease is one grant of a lock to a holder. Instants are of the database's clock.
type Lease struct {
	ID         LeaseID
	Name       string
	Slot       int   // 0 for exclusive leases, from 1 on for others; of several permits, the first
	Slots      Slots // of several permits; otherwise empty
	Mode       Mode
	Holder     string
	Token      Token
	TTL        time.Duration // as requested, or MaxHold if that is shorter; a renewal extends the lease by it
	Left       time.Duration // until ExpiresAt from the last renewal, if that had a TTL that is shorter; otherwise zero
	Grace      time.Duration // after ExpiresAt: the holder may still renew, and no other client is granted the lock
	MaxHold    time.Duration // since AcquiredAt; limits renewals. Zero: unlimited
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Metadata   json.RawMessage // a JSON object, or nil
	// Stays says that the lease does not end by itself: it is suspect when its grace is over, see doc.go. Suspect says that
	// this is recorded.
	Stays   bool
	Suspect bool
	// Session keeps the lease alive, zero for none. Then TTL, Grace and ExpiresAt are those of the session when the
	// lease was read, and ExpiresAt is no later than the MaxHold allows. A revoked lease belongs to no session any
	// more.
	Session SessionRef

	// Key is the name of the API key whose MaxLeases the lease counts for, empty if there is no such rule.
	Key string
	// Task is the thread of work that holds the lease or waits for it, see [Acquire.Thread]; empty if it is not known.
	Task TaskID
	// Set names the locks, in order, that were acquired together with this one: all of them have a lease with this ID,
	// and these leases end together. It is nil if the lock was acquired alone. It is shared, so never modify it in
	// place.
	Set []string
	// Below names those locks of the Set that were asked for, in order, if others of the Set are their ancestors in
	// trees; otherwise it is nil. It is shared, too.
	Below []string

	// Place is the place in the queue that the lease was granted from; zero for none.
	Place int64
	// Attachment identifies the waiting call that was granted the lease. It is zero if the call did not wait, and
	// after another call has requested the same lease.
	Attachment Attachment
	// ClaimDeadline is when an unclaimed grant is withdrawn. It is zero once the grant is claimed. It is always zero
	// if the replica that decided the grant also serves the call: such a grant needs no claim.
	ClaimDeadline time.Time
}

// asRequested returns the lease as it was requested, without what the grant added.
func (l Lease) asRequested() Lease {
	asked := Lease{
		ID: l.ID, Key: l.Key, Name: l.Name, Mode: l.Mode, Holder: l.Holder, TTL: l.TTL, Grace: l.Grace,
		MaxHold: l.MaxHold, Metadata: l.Metadata, Stays: l.Stays, Session: l.Session, Set: l.Set, Below: l.Below, Task: l.Task,
	}
	if l.Session != 0 {
		asked.ExpiresAt = l.ExpiresAt
	}
	return asked
}

// Requested returns the names that the lease was asked for: its lock, or those of its set, without the ancestors in trees.
func (l *Lease) Requested() []string {
	switch {
	case l.Below != nil:
		return l.Below
	case l.Set != nil:
		return l.Set
	}
	return []string{l.Name}
}

// together returns the locks that the lease was asked for together with, its own included; nil if that is the only one.
func (l *Lease) together() []string {
	if asked := l.Requested(); len(asked) > 1 {
		return asked
	}
	return nil
}

// Permits returns how many permits the lease has: one unless an Acquire asked for several.
func (l *Lease) Permits() int { return l.Slots.Count() }

// hasSlot reports whether the slot is one of the lease's, or nil.
func (l *Lease) hasSlot(slot *int) bool { return slot == nil || l.Slots.Include(l.Slot, *slot) }

// modeAt returns a mode with which a freeze of the lock, one of the Set, has the same effect as with that of its lease.
func (l *Lease) modeAt(name string) Mode {
	if slices.Contains(l.Requested(), name) {
		return Exclusive
	}
	return IntentionExclusive
}

// heldName returns the first name of the lease that is the lock or below it.
func (l *Lease) heldName(at string) string {
	for _, name := range l.Requested() {
		if name == at || strings.HasPrefix(name, at+":") {
			return name
		}
	}
	return at
}

// Unclaimed reports whether the replica of the waiting call has not claimed the grant yet. No client knows of it.
func (l Lease) Unclaimed() bool { return !l.ClaimDeadline.IsZero() }

// revokedTTL is the TTL of a revoked lease. Other leases have at least MinTTL.
const revokedTTL = 0

// Revoked reports whether an operator has revoked the lease. Its holder cannot renew or release it, but it blocks
// conflicting grants until EndsAt.
func (l Lease) Revoked() bool { return l.TTL == revokedTTL }

// revokedAt returns l as a revoked lease. Its grace starts at now, or at its expiry if that was earlier.
func (l Lease) revokedAt(now time.Time) Lease {
	if now.Before(l.ExpiresAt) {
		l.ExpiresAt = now
	}
	l.TTL, l.Left, l.Session = revokedTTL, 0, 0
	return l
}

// never is when a lease that stays ends by itself. It is an instant, so that it can be compared and stored like others.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// stays reports whether the lease becomes suspect instead of ending by itself.
func (l *Lease) stays() bool { return l.Stays && !l.Revoked() && !l.Unclaimed() }

// IsSuspect reports whether the lease is suspect at now: it would have ended, but it stays.
func (l *Lease) IsSuspect(now time.Time) bool {
	return l.stays() && !now.Before(l.ExpiresAt.Add(l.Grace))
}

// EndsAt returns when the lease stops blocking others: at the end of its grace, or when an unclaimed grant is
// withdrawn; in the year 9999 if it stays.
func (l *Lease) EndsAt() time.Time {
	if l.stays() {
		return never
	}
	end := l.ExpiresAt.Add(l.Grace)
	if l.Unclaimed() && (l.Session == 0 || l.ClaimDeadline.Before(end)) {
		return l.ClaimDeadline
	}
	return end
}

// OwnExpiry returns when the lease expires by itself, whatever its session does: zero for never, and for a waiter's
// lease.
func (l *Lease) OwnExpiry() time.Time {
	switch {
	case l.Session == 0:
		return l.ExpiresAt
	case l.MaxHold == 0 || l.AcquiredAt.IsZero():
		return time.Time{}
	}
	return l.AcquiredAt.Add(l.MaxHold)
}

// In returns l with the end of its session, if it has one. The session is nil if it is not known any more; then the
// lease is over.
func (l Lease) In(s *Session) Lease {
	if l.Session == 0 {
		return l
	}
	own := l.OwnExpiry()
	l.ExpiresAt = time.Time{}
	if s != nil {
		l.TTL, l.Grace, l.ExpiresAt = s.TTL, s.Grace, s.ExpiresAt
	}
	if !own.IsZero() && own.Before(l.ExpiresAt) {
		l.ExpiresAt = own
	}
	return l
}

// isDue reports whether the lease has ended by itself at now, or has become suspect.
func (l *Lease) isDue(now time.Time) bool {
	due := l.due()
	return !due.IsZero() && !now.Before(due)
}

// due returns when the lease may end by itself or become suspect, zero for never. That a session ends is not noticed at each of its
// locks, but once: see [EndSession].
func (l *Lease) due() time.Time {
	own := l.OwnExpiry()
	switch {
	case l.Unclaimed():
		return l.ClaimDeadline
	case own.IsZero():
		return own
	case l.stays() && l.Suspect:
		return time.Time{}
	}
	return own.Add(l.Grace)
}

// startedAt returns the lease as it is after a grant at now, with its first expiry.
func (l Lease) startedAt(now time.Time) Lease {
	if l.AcquiredAt = now; l.Session == 0 {
		l.ExpiresAt = time.Time{}
	}
	l.capTTL()
	l.ExpiresAt = l.expiryFrom(now)
	return l
}

// capTTL shortens the TTL to the MaxHold: no lease lasts longer, and its holder may plan its renewals by the TTL. That of
// a session's lease is the session's.
func (l *Lease) capTTL() {
	if l.MaxHold > 0 && l.Session == 0 {
		l.TTL = min(l.TTL, l.MaxHold)
	}
}

// expiryFrom returns the expiry after a grant or renewal at now: a TTL from now, but not before the current expiry,
// and not after the max hold. That of a session's lease is moved only by the session.
func (l *Lease) expiryFrom(now time.Time) time.Time {
	end := now.Add(l.TTL)
	if l.Session != 0 || end.Before(l.ExpiresAt) {
		end = l.ExpiresAt
	}
	if last := l.AcquiredAt.Add(l.MaxHold); l.MaxHold > 0 && end.After(last) {
		end = last
	}
	return end
}

// Length returns how long the lease lasts from its grant or last renewal: after a fail-over it has so long again.
func (l *Lease) Length() time.Duration { return max(l.TTL, l.Left) }

// A Grant is the leases of a request, as returned to their holder. They have all but the lock, the slot, the mode and the
// token in common.
type Grant struct {
	Lease
	// Leases has one of each lock that was acquired, in the order of their names; the Lease is the first.
	Leases []Lease
	// Until is the instant on this process's own clock by which the holder must have stopped or renewed. It is never
	// after the end of the lease: the time that the answer took is already subtracted.
	Until time.Time
	// Replayed reports whether an earlier call with the same lease_id was granted the lease.
	Replayed bool
}

// hasToken reports whether the token was granted with the lease. That of an intention is the token of a lock below.
func (l *Lease) hasToken(t Token) bool { return l.Token == t && !l.Mode.IsIntention() }

// setTokens replaces provisional tokens. It writes nothing else: other records may share the leases.
func setTokens(leases []Lease, first Token) {
	for i := range leases {
		if l := &leases[i]; l.Token.IsProvisional() {
			l.Token = l.Token.Known(first)
		}
	}
}
