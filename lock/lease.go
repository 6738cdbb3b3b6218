package lock

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"
)

// A Token is a fencing token. Of two grants of one name that conflict, the later
// has the greater token. Tokens are positive and at most 2⁵³−1, so that
// JavaScript counts them exactly. Gaps are normal.
type Token int64

// MaxToken is the greatest token there can be.
const MaxToken Token = 1<<53 - 1

// A LeaseID is the secret UUID that proves a lease to be mine. The zero LeaseID
// means that none was chosen. It does not show itself when printed.
type LeaseID [16]byte

// String returns a placeholder: a lease_id must not get into a log by accident.
func (LeaseID) String() string { return "(lease_id)" }

// GoString returns what String does, for %#v.
func (LeaseID) GoString() string { return "(lease_id)" }

// A LeaseRef stands for a lease where its secret must not be: 63 bits of a
// SHA-256 over name and lease_id. It cannot be turned back.
type LeaseRef int64

// RefOf returns the reference of the lease id of the lock name.
func RefOf(name string, id LeaseID) LeaseRef {
	sum := sha256.Sum256(append([]byte(name), id[:]...))
	return LeaseRef(binary.BigEndian.Uint64(sum[:]) >> 1)
}

// A Mode says who may hold a lock together. The zero Mode is not one.
type Mode int16

// The modes. Leases of different modes conflict.
const (
	// Exclusive leases conflict with every other lease of the name.
	Exclusive Mode = iota + 1
	// Shared leases do not conflict with each other: readers.
	Shared
	// Permit leases do not conflict up to a capacity: a semaphore.
	Permit
)

var modeNames = [...]string{Exclusive: "exclusive", Shared: "shared", Permit: "permit"}

// String returns the mode's name on the wire, "unknown" for what is none.
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

// A Lease is one grant of a lock to a holder. Instants are of the database's clock.
type Lease struct {
	ID         LeaseID
	Name       string
	Slot       int // 0 for exclusive leases, from 1 on for others
	Mode       Mode
	Holder     string
	Token      Token
	TTL        time.Duration // asked for; each renewal gives it anew
	Grace      time.Duration // after ExpiresAt: still mine to renew, nobody else's
	MaxHold    time.Duration // since AcquiredAt, no renewal goes beyond; zero for no bound
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Metadata   json.RawMessage // a JSON object, or nil

	// Place is the place in the queue that the lease came from; zero if from none.
	Place int64
	// Attachment is the call that waited for the lease; zero if none did, or if
	// another has asked for it since.
	Attachment Attachment
	// ClaimDeadline is when the grant is withdrawn, unless the replica that serves the
	// call has fetched it. Zero once somebody has, and for grants that are told at once.
	ClaimDeadline time.Time
}

// request returns what the lease was to be when it was asked for.
func (l Lease) request() Lease {
	return Lease{
		ID: l.ID, Name: l.Name, Mode: l.Mode, Holder: l.Holder, TTL: l.TTL, Grace: l.Grace, MaxHold: l.MaxHold, Metadata: l.Metadata,
	}
}

// Unclaimed is whether the grant has not been fetched by the replica that is to
// tell of it: nobody knows of the lease yet.
func (l Lease) Unclaimed() bool { return !l.ClaimDeadline.IsZero() }

// revokedTTL is the TTL of a revoked lease in its grace. No other lease has it: the
// least TTL is ShortestTTL.
const revokedTTL = 0

// Revoked reports whether an operator has revoked the lease. It has ended, and its
// holder cannot renew or release it, but it blocks conflicting grants until OverAt.
func (l Lease) Revoked() bool { return l.TTL == revokedTTL }

// revokedAt returns l as a revoked lease. Its grace begins at now, or began earlier if
// the lease had expired before.
func (l Lease) revokedAt(now time.Time) Lease {
	if now.Before(l.ExpiresAt) {
		l.ExpiresAt = now
	}
	l.TTL = revokedTTL
	return l
}

// EndsAt returns the instant from which the lock may be somebody else's.
func (l Lease) EndsAt() time.Time {
	if l.Unclaimed() {
		return l.ClaimDeadline
	}
	return l.ExpiresAt.Add(l.Grace)
}

// expiryFrom returns the end that a grant or a renewal at now gives: a TTL away,
// never before the end that there is, never beyond the greatest hold.
func (l Lease) expiryFrom(now time.Time) time.Time {
	end := now.Add(l.TTL)
	if end.Before(l.ExpiresAt) {
		end = l.ExpiresAt
	}
	if last := l.AcquiredAt.Add(l.MaxHold); l.MaxHold > 0 && end.After(last) {
		end = last
	}
	return end
}

// A Grant is a lease as its holder is told of it.
type Grant struct {
	Lease
	// Until is the instant on this process's own clock by which the holder must
	// have stopped or renewed. It is never later than the lease's end: the time
	// that the answer was on its way is already taken off.
	Until time.Time
	// Replayed is whether the lease had been granted by an earlier call with the
	// same lease_id.
	Replayed bool
}
