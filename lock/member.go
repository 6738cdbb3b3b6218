package lock

// A Member is one of the locks that an Acquire asks for, all or none. They have one LeaseID, and their leases begin and
// end at the same instants. While they are waited for, none of them is held: the call has a place in the queue of each
// lock, and is granted all locks in one decision, when it is next at each of them. All leases have one token, which is
// greater than all earlier tokens of each lock; only a shared lease that joins other readers has their token.
//
// First come, first served holds at each lock. While a call is first in the queue of a free lock and waits for its
// other locks, the waiters behind it wait, too.
type Member struct {
	Name     string
	Mode     Mode // zero: Exclusive
	Capacity int  // number of permits that there are, 1 to MaxHolders; Permit only. Zero: that of a [Rule]
	// Permits is how many permits are asked for, up to the Capacity; Permit only. They are one lease with one token and
	// several slots: all are granted, or none, and they end together. Zero: one.
	Permits int
}

// One returns the lock of that name, to be acquired alone and exclusively.
func One(name string) []Member { return []Member{{Name: name}} }

// permits returns how many permits are asked for.
func (m Member) permits() int { return max(m.Permits, 1) }
