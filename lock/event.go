package lock

import "time"

// A Kind says which transition an event records.
type Kind int16

// The kinds of events. All but Granted end a lease.
const (
	Granted Kind = iota + 1
	Released
	Expired
	Revoked
)

var kindNames = [...]string{Granted: "granted", Released: "released", Expired: "expired", Revoked: "revoked"}

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

// An Event is one transition of one lock. Renewals are none. The events of a
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
	Token    Token
	Reason   string   // of a revocation
	Ref      LeaseRef // of the lease that ended; zero on Granted
}
