package lock

import (
	"slices"
	"time"
)

// A Command is something that may happen to locks.
type Command interface {
	// Names returns the locks that the command must see, without duplicates.
	Names() []string
	// Refs returns the leases whose endings the command must see.
	Refs() []LeaseRef
	// Draws returns the greatest numbers of tokens and of events that the
	// decision may use.
	Draws() (tokens, events int)
	// Apply decides. It changes nothing that it is given.
	Apply(View) Decision
}

// A View is what a command sees when its turn comes.
type View struct {
	Now    time.Time          // the database's clock, read while nobody else could decide on these locks
	Locks  []State            // those of Names, in that order
	Ended  map[LeaseRef]Event // how the leases of Refs ended, those that did
	Tokens func() Token       // draws the next token, greater than all before
}

// A Decision is what a command made of what it saw.
type Decision struct {
	Now     time.Time // the instant of the decision: the View's, but never before the lock's last transition
	Locks   []State   // those of the View, as they are from now on
	Changed bool      // whether Locks differ from those of the View
	Events  []Event   // what happened, in order
	Grant   Lease     // what Acquire and Renew gave
	Replay  bool      // Acquire: whether Grant is of an earlier call
	Err     error     // the refusal. Locks may have changed all the same: a lease found to be over is ended
}

// A turn is a command on its way to a decision about a single lock.
type turn struct {
	now     time.Time
	state   State
	changed bool
	events  []Event
}

// begin starts a turn at the view's one lock by ending the leases that are over.
// The lock's time does not run backwards, should the database's clock be set back.
func begin(v View) *turn {
	t := &turn{now: v.Now, state: v.Locks[0]}
	if t.now.Before(t.state.ChangedAt) {
		t.now = t.state.ChangedAt
	}
	for _, l := range t.state.Leases {
		if !t.now.Before(l.OverAt()) {
			t.end(l, Expired, "")
		}
	}
	return t
}

// decided returns the turn's outcome: a refusal unless err is nil.
func (t *turn) decided(err error) Decision {
	return Decision{Now: t.now, Locks: []State{t.state}, Changed: t.changed, Events: t.events, Err: err}
}

// lease returns the lease that id proves.
func (t *turn) lease(id LeaseID) (Lease, bool) {
	i := slices.IndexFunc(t.state.Leases, func(l Lease) bool { return l.ID == id })
	if i < 0 {
		return Lease{}, false
	}
	return t.state.Leases[i], true
}

// grant adds the lease.
func (t *turn) grant(l Lease) {
	t.state.Leases = append(slices.Clone(t.state.Leases), l)
	t.state.Token, t.state.End = l.Token, 0
	t.record(l, Granted, "")
}

// replace puts l where the lease with its ID is. It is not a transition.
func (t *turn) replace(l Lease) {
	leases := slices.Clone(t.state.Leases)
	leases[slices.IndexFunc(leases, func(o Lease) bool { return o.ID == l.ID })] = l
	t.state.Leases, t.changed = leases, true
}

// end takes the lease away.
func (t *turn) end(l Lease, how Kind, reason string) {
	t.state.Leases = slices.DeleteFunc(slices.Clone(t.state.Leases), func(o Lease) bool { return o.ID == l.ID })
	if l.Token == t.state.Token {
		t.state.End = how
	}
	t.record(l, how, reason)
}

func (t *turn) record(l Lease, kind Kind, reason string) {
	t.state.Revision++
	t.state.ChangedAt = t.now
	t.changed = true
	e := Event{
		At: t.now, Name: t.state.Name, Slot: l.Slot, Revision: t.state.Revision,
		Kind: kind, Mode: l.Mode, Holder: l.Holder, Token: l.Token, Reason: reason,
	}
	if kind != Granted {
		e.Ref = RefOf(t.state.Name, l.ID)
	}
	t.events = append(t.events, e)
}

// ending returns how the lease ended, if it did within what is known: in this
// turn, or before it.
func (t *turn) ending(v View, id LeaseID) (Event, bool) {
	ref := RefOf(t.state.Name, id)
	for _, e := range t.events {
		if e.Ref == ref {
			return e, true
		}
	}
	e, ok := v.Ended[ref]
	return e, ok
}

// lost returns the refusal of a call that shows a lease which is not there.
func (t *turn) lost(v View, id LeaseID) error {
	e, known := t.ending(v, id)
	if !known {
		return &Error{Code: ErrLeaseLost, Detail: "No lease of this lock has that lease_id, as far back as is remembered. " +
			"Stop the work; check name and lease_id, or acquire with a new lease_id."}
	}
	return lostTo(e)
}

func lostTo(e Event) error {
	what := map[Kind]string{Released: "was released", Expired: "expired", Revoked: "was revoked by an operator"}[e.Kind]
	return &Error{
		Code: ErrLeaseLost, Ended: e.Kind, EndedAt: e.At, Reason: e.Reason, Token: e.Token,
		Detail: "The lease " + what + ". Stop the work; to go on, acquire with a new lease_id and use the new token.",
	}
}
