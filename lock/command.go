package lock

import "time"

// A Command is something that may happen to locks.
type Command interface {
	// Names returns the locks that the command must see, without duplicates.
	Names() []string
	// Refs returns the leases whose endings the command must see.
	Refs() []LeaseRef
	// Needs returns how many tokens and events the decision takes at a lock for
	// which nobody waits. What it promotes, or ends beside that, comes on top.
	Needs() (tokens, events int)
	// Apply decides. It changes nothing that it is given.
	Apply(View) Decision
}

// A View is what a command sees when its turn comes.
type View struct {
	Now   time.Time          // the database's clock, read while nobody else could decide on these locks
	Self  Replica            // who decides; it serves those that wait with it
	Locks []Record           // those of Names, in that order
	Ended map[LeaseRef]Event // how the leases of Refs ended, those that did
	// GrantsPausedUntil: before that nothing may be granted, since there may be leases that
	// nobody here knows of. Renewals, releases and what was granted before go on.
	GrantsPausedUntil time.Time
	Tokens            func() Token // draws the next token, greater than all before
}

// A Decision is what a command made of what it saw.
type Decision struct {
	Now     time.Time // the instant of the decision: the View's, but never before the lock's last transition
	Locks   []Record  // those of the View, as they are from now on
	Changed bool      // whether Locks differ from those of the View
	Events  []Event   // what happened, in order
	Err     error     // the refusal. Locks may have changed all the same: a lease found to be over is ended

	Grant    Lease    // what Acquire, Claim, Renew and Leave gave
	Replay   bool     // Acquire: whether Grant is of an earlier call
	Queued   bool     // Acquire and Claim: whether the call waits from now on, or still does
	Promoted []Waiter // who got the lock out of the queue: to be told, with the lease of that ID in Locks
	// Due is when time alone will have changed the locks, should nobody else; a
	// Sweep then finds something to do, or the next such instant. Zero: never.
	Due time.Time
}
