package lock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Kind says which transition an event records.
type Kind int16

// The kinds of events. Released, Expired, Revoked and Withdrawn end a lease.
const (
	Granted Kind = iota + 1
	Released
	Expired
	// Revoked: an operator ended the lease. A second event of this kind for the same lease, without a Ref, means that
	// an operator skipped the rest of its grace.
	Revoked
	// Queued: a call joined the queue at Place.
	Queued
	// Dequeued: a waiter was removed from the queue without a grant; Reason says why.
	Dequeued
	// Withdrawn: a grant was taken back before a client knew of it; Reason says why. Its lease_id may be granted
	// again.
	Withdrawn
	// MetadataUpdated: a renewal replaced the metadata of the lease.
	MetadataUpdated
	// Refused: a resource has refused a stale token, see ReportStale. It changes no lease. Slot, Mode and Holder are
	// those of the lease that had the token; if it is unknown, the mode is Exclusive and the holder empty.
	Refused
	// Frozen: an operator has frozen the locks of a scope, whose name is that of the event. Reason says why; Until is the
	// end, if the freeze has one. It has no other event then.
	Frozen
	// Thawed: an operator has ended a freeze.
	Thawed
	// Opened: an operator has opened a lock that was closed by a Release; Reason says why.
	Opened
	// Suspected: a lease that stays was not renewed in time. The lock is suspect, and granted to no other client until the
	// holder renews or releases the lease, or an operator revokes it.
	Suspected
)

var kindNames = [...]string{
	Granted: "granted", Released: "released", Expired: "expired", Revoked: "revoked",
	Queued: "queued", Dequeued: "dequeued", Withdrawn: "withdrawn", MetadataUpdated: "metadata_updated",
	Refused: "refused", Frozen: "frozen", Thawed: "thawed", Opened: "opened",
	Suspected: "suspected",
}

// String returns the kind's name on the wire, "unknown" for an invalid kind.
func (k Kind) String() string {
	if k < Granted || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// ByOperator reports whether an operator causes the events of this kind.
func (k Kind) ByOperator() bool { return k == Revoked || k == Frozen || k == Thawed || k == Opened }

// KindOf returns the Kind whose name on the wire is name, zero if there is none.
func KindOf(name string) Kind {
	for k := Granted; int(k) < len(kindNames); k++ {
		if kindNames[k] == name {
			return k
		}
	}
	return 0
}

// KindNames returns the names of all kinds on the wire, in a list for error messages.
func KindNames() string { return strings.Join(kindNames[Granted:], ", ") }

// An Event is one transition of one lock. A renewal is a transition only if it replaces the metadata. In the order of
// their IDs, the events of a lock have consecutive revisions until the lock is pruned. An Event contains no secret.
type Event struct {
	ID       int64 // assigned by the store; the events of one lock have increasing IDs
	Cell     int   // the position of the cell that has the event, in a list of the events of several cells
	At       time.Time
	Name     string
	Slot     int
	Slots    Slots // of several permits; otherwise empty
	Revision int64 // of the lock, after the event
	Kind     Kind
	Mode     Mode
	Holder   string
	Token    Token // zero for Queued and Dequeued
	// Place is the waiter's place, in Queued, Dequeued and Granted, or the place to which the waiter returns, in
	// Withdrawn. It is zero for none.
	Place  int64
	Reason string // of Revoked, Dequeued, Withdrawn, Frozen and Opened; in Refused, what refused the token
	// Until is when the lock opens again, in a Released that has closed it, or when a freeze ends by itself, in Frozen.
	Until time.Time
	// Caller is that of the call that caused the event; of a grant, the call that asked for the lock. It is zero for what
	// time or the service did.
	Caller Caller
	// Session is that of the lease or the waiter, zero for none.
	Session SessionRef
	// Set names the locks that were asked for together, in order; nil if the lock was asked for alone. It is shared, so
	// never modify it in place.
	Set []string
	// Ref identifies the lease that ended, in Released, Expired and the first Revoked. In Dequeued, it identifies the
	// request whose place a Release has removed. It is zero in all other events.
	Ref LeaseRef
	// Cycle is the circle of the deadlock that the waiter was removed for, in Dequeued. It is empty if that has more than
	// MaxCycleSteps.
	Cycle Cycle

	// The next fields are those of Refused.
	Newest Token         // the newest token of the lock
	Late   time.Duration // since the end of the lease that had the token; zero if that is unknown
	HeldBy string        // the holder of an active lease, empty if there was none
}

// EventJump and TokenJump are the least by which the ids of events, and tokens, continue above all known ones when
// the database was failed over or restored: more than can have been lost. No service makes so many in a lifetime
// otherwise, so a reader of events finds each such place. There is room for 32 thousand jumps of ids below 2⁵³, above
// which JavaScript does not represent each of them, and for half a million jumps of tokens below MaxToken.
const (
	EventJump int64 = 1 << 38
	TokenJump Token = 1 << 34
)

// BeginsEpoch reports whether an epoch began between before and e, which the same database has made.
func (e Event) BeginsEpoch(before Event) bool { return e.ID-before.ID >= EventJump }

// SetTokens replaces the provisional tokens of the event by known ones, see [Token.Known].
func (e *Event) SetTokens(first Token) {
	e.Token, e.Newest = e.Token.Known(first), e.Newest.Known(first)
}

// Explanation returns what people want to know of the event beside its kind, its holder, its token and its caller: the
// reason, the circle of a deadlock, until when a lock is frozen or closed, and for Refused how late the write was and who
// held the lock then. Holders are quoted: they may be any text.
func (e Event) Explanation() string {
	if steps := e.Cycle.Steps(); steps != nil {
		return e.Reason + ": " + textOf(steps)
	}
	switch {
	case e.Kind == Released && !e.Until.IsZero():
		return "closed until " + e.Until.UTC().Format(time.RFC3339)
	case e.Kind == Frozen && !e.Until.IsZero():
		return e.Reason + ", until " + e.Until.UTC().Format(time.RFC3339)
	case e.Kind != Refused:
		return e.Reason
	}
	text := "after the end of its lease"
	if e.Late > 0 {
		text = InWords(e.Late) + " " + text
	}
	if e.HeldBy != "" {
		text += "; " + strconv.Quote(e.HeldBy) + " held the lock then"
	}
	text += fmt.Sprintf("; newest token %d", e.Newest)
	if e.Reason != "" {
		text += "; " + e.Reason
	}
	return text
}

// RevokedBy returns the name of the API key that revoked the lease, in Revoked; otherwise it is empty.
func (e Event) RevokedBy() string {
	if e.Kind != Revoked {
		return ""
	}
	return e.Caller.Name
}

// IsDeadlock reports whether the waiter was removed from the queue to break a deadlock.
func (e Event) IsDeadlock() bool { return e.Kind == Dequeued && e.Reason == reasonDeadlock }

// Circumstances returns what the lease or the waiter belonged to, and in which trace the event was caused, such as
// "in session 7bb9f2a32ab6969f, with accounts:42"; empty for none.
func (e Event) Circumstances() string {
	var parts []string
	if e.Session != 0 {
		parts = append(parts, "in session "+e.Session.String())
	}
	if others := slices.DeleteFunc(slices.Clone(e.Set), func(name string) bool { return name == e.Name }); len(others) > 0 {
		parts = append(parts, "with "+strings.Join(others, " and "))
	}
	if e.Caller.Trace != "" {
		parts = append(parts, "trace "+e.Caller.Trace)
	}
	return strings.Join(parts, ", ")
}

// ReasonUnclaimed is the Reason of a Withdrawn event when the grant was not claimed within ClaimTimeout: time alone
// ended the lease.
const ReasonUnclaimed = "grant not claimed in time"

// The other reasons of Dequeued and Withdrawn events.
const (
	reasonWaitEnded     = "wait ended"
	reasonDisconnected  = "client disconnected"
	reasonCallLost      = "call ended without an answer"
	reasonPlaceReleased = "place released"
	reasonPlaceLapsed   = "its client did not come back in time"
	reasonAlreadyDone   = "already done"
)

// The reasons of events about the leases and places of a session that has ended.
const (
	reasonSessionExpired = "session expired"
	reasonSessionClosed  = "session closed"
	reasonSessionRevoked = "session revoked"
)

// reasonDeadlock is the reason of the event that removes the victim of a deadlock from a queue.
const reasonDeadlock = "deadlock"
