package lock

import "time"

// A Kind says which transition an event records.
type Kind int16

// The kinds of events. Released, Expired, Revoked and Withdrawn end a lease.
const (
	Granted Kind = iota + 1
	Released
	Expired
	// Revoked: an operator has ended the lease. The same lease has a second event of this
	// kind, without a Ref, if an operator then skips the rest of its grace.
	Revoked
	// Queued: a call has begun to wait; Place is where.
	Queued
	// Dequeued: a waiter has left the queue without a grant; Reason says why.
	Dequeued
	// Withdrawn: a grant to a call that waited was taken back before anybody was
	// told of it; Reason says why. Its lease_id may be granted again.
	Withdrawn
	// MetadataUpdated: a renewal has put other metadata on the lease.
	MetadataUpdated
)

var kindNames = [...]string{
	Granted: "granted", Released: "released", Expired: "expired", Revoked: "revoked",
	Queued: "queued", Dequeued: "dequeued", Withdrawn: "withdrawn", MetadataUpdated: "metadata_updated",
}

// String returns the kind's name on the wire, "unknown" for what is none.
func (k Kind) String() string {
	if k < Granted || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// KindOf returns the Kind whose name on the wire is name, zero if there is none.
func KindOf(name string) Kind {
	for k := Granted; int(k) < len(kindNames); k++ {
		if kindNames[k] == name {
			return k
		}
	}
	return 0
}

// An Event is one transition of one lock. Renewals are none,
// unless they bring other metadata. The events of a
// lock, in the order of their ids, have revisions without gaps for as long as
// the lock is not pruned. An Event holds no secret.
type Event struct {
	ID       int64 // given by the store, growing in the order of what happened to a lock
	At       time.Time
	Name     string
	Slot     int
	Revision int64 // of the lock, after this
	Kind     Kind
	Mode     Mode
	Holder   string
	Token    Token    // zero on Queued and Left
	Place    int64    // in the queue: the one taken, left, granted from, or on Withdrawn had again; else zero
	Reason   string   // of Revoked, Left and Withdrawn
	Ref      LeaseRef // of the lease that ended, on Released, Expired and the first Revoked; on Left, of a place given up by Release
}
