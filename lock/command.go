package lock

import (
	"errors"
	"time"
)

// A Command is a request to read or change locks.
type Command interface {
	// Names returns the locks that the command needs, without duplicates.
	Names() []string
	// Traits returns what else is to be known of the command before it is decided.
	Traits() Traits
	// In returns the command as it is decided under the policy: with the ancestors of the locks that a request names in
	// trees, and with what rules say about it. The error is the refusal of a request that is refused whatever the
	// state of its locks.
	In(*Policy) (Command, error)
	// Apply decides. It does not modify the View.
	Apply(View) Decision
}

// Traits describe a command of any kind, as far as is needed to order it, to read for it, and to store its Decision.
type Traits struct {
	// Lease is the lease that the command is about, or will be; zero for none. Except for a claim, the command must not
	// overtake earlier ones about it.
	Lease   LeaseID
	Session SessionRef // that the command needs, zero for none
	Queue   QueueUse
	Wait    time.Duration // for which the command waits at most; zero unless it Joins
	// Grants: the command may grant new leases. So its locks need not exist, its session must be open, and its lease must
	// not have ended.
	Grants bool
	Length time.Duration // of the leases that it asks for, TTL and grace; zero if that is not known
	NewID  bool          // no lease can have had the ID, so it has no end event
	// TellsEnd: the answer tells when an existing lease ends; for a lease of a session, when the session ends.
	TellsEnd bool
	// ReadsToken: the newest token of the lock must not be provisional.
	ReadsToken bool
	ShowsQueue bool // the answer contains the queue
	// NeedsRule: without a rule the command is refused, so it is to be passed to In even if there is none.
	NeedsRule bool
	NoAnswer  bool // no caller relies on its success, so nothing is stored if nothing has changed
}

// A QueueUse says what a command has to do with a place in a queue.
type QueueUse int8

// The uses of a queue.
const (
	NoQueue QueueUse = iota
	Joins            // it may join the queue, and wait
	Claims           // it asks whether a place has been granted the lock
	Leaves           // it ends the wait at a place
)

// Refs returns the leases of a command on these locks whose end events it needs, in the order of the names. Those are the
// locks that the command names before [Command.In]: an intention at an ancestor has no event.
func (t Traits) Refs(names []string) []LeaseRef {
	if t.NewID || t.Lease == (LeaseID{}) {
		return nil
	}
	refs := make([]LeaseRef, len(names))
	for i, name := range names {
		refs[i] = RefOf(name, t.Lease)
	}
	return refs
}

// A View is the input of a decision.
type View struct {
	Now time.Time // the database's clock, or a little less
	// Caller made the call that the command is of; zero if there is none.
	Caller Caller
	Self   Replica            // the replica that decides; it knows which of its own waiters are attached
	Locks  []Record           // those of Names, in the same order. The sessions of their leases were read after them
	Ended  map[LeaseRef]Event // the end events of the leases of [Traits.Refs] that have ended
	// GrantsPausedUntil: no lease is granted before this instant, because the database may have lost leases that are
	// still in use. Existing leases can be renewed and released.
	GrantsPausedUntil time.Time
	// LeasesMayBeLost: a fail-over of the database may forget leases, and no operator has accepted that. Then no lease
	// that stays is granted: nothing would show that it was lost, and another client would get the lock.
	LeasesMayBeLost bool
	// Policy is the one that the command was passed to In with, nil for none.
	Policy *Policy
	// Tokens returns the next token, greater than all before; it may be provisional. A decision calls it MaxTokens times
	// at most.
	Tokens func() Token
	// Sessions are those of the commands that have one. They were read after the locks, and none is Undecided.
	Sessions map[SessionRef]Session
}

// A Decision is the result of a Command.
type Decision struct {
	Now     time.Time    // the time of the decision: the View's, but never before the last transition of a lock
	Locks   []Record     // the new state of the View's locks
	Changed bool         // whether Locks differ from those of the View
	Events  []Event      // the transitions, in order
	Err     error        // the refusal, or nil. A refusal may change Locks, too: every decision ends expired leases
	Ended   []EndedLease // by this decision, in order
	// SessionLosses are the leases that a Revoke has taken from sessions. Add one to the RevokedLeases of the session for each.
	SessionLosses []SessionLoss

	Leases   []Lease // for Acquire, Claim, Renew and Leave: one of each lock that was asked for, in order
	Replayed bool    // Acquire: whether the Leases were already granted by an earlier call
	Renewed  bool    // by Renew
	// Left is how much of the lease a Renew found left, negative in its grace.
	Left time.Duration
	// Claimed is how long the grant was unclaimed, if this decision has claimed it.
	Claimed  time.Duration
	Queued   bool     // Acquire and Claim: whether the call is waiting
	Promoted []Waiter // the waiters that were granted the lock; their leases are in Locks, by ID. Notify their calls
	// Ousted are the waiters that were removed because their session has ended. Wake their calls.
	Ousted []Waiter
	// ReadySets are the waiting sets that have become next and compatible at one of the locks, see Lease.Set. Send a
	// Sweep of each: it grants the set if it is next and compatible at its other locks, too.
	ReadySets [][]string
	// FollowUp is the command that ends what this one has left: the leases of a set, which must end together, so that
	// the decision needs all of their locks. Apply it next, and its FollowUp, until that is nil. Only a Revoke and an
	// EndSession have one.
	FollowUp Command
	// Due is when the locks may next change without a request: a Sweep at this instant ends a lease, promotes a
	// waiter, or returns a later Due. Zero means never.
	Due time.Time
}

// An EndedLease describes a lease that a decision has ended, and how: Released, Expired, Revoked or Withdrawn.
type EndedLease struct {
	ID    LeaseID
	Token Token
	Mode  Mode
	How   Kind
	Held  time.Duration // from its grant to its end
}

// A SessionLoss is a lease of a lock that a session has lost, while it goes on.
type SessionLoss struct {
	Name    string // of the lock
	Session SessionRef
}

// SetTokens replaces all provisional tokens of the decision by known ones, see [Token.Known].
func (d *Decision) SetTokens(first Token) {
	for i := range d.Locks {
		d.Locks[i].SetTokens(first)
	}
	for i := range d.Events {
		d.Events[i].SetTokens(first)
	}
	for i := range d.Ended {
		d.Ended[i].Token = d.Ended[i].Token.Known(first)
	}
	setTokens(d.Leases, first)
	if e := (*Error)(nil); errors.As(d.Err, &e) {
		e.Token, e.Newest = e.Token.Known(first), e.Newest.Known(first) // a Detail has no token that may be provisional
	}
}
