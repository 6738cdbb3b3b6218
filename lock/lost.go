package lock

import "slices"

// ending returns how the lease ended, if it did within what is known: in this
// turn, or before it. To have given up a place is not to have had a lease.
func (t *turn) ending(id LeaseID) (Event, bool) {
	e, ok := t.last(id)
	return e, ok && e.Kind != Dequeued
}

// gaveUp is whether the last that is known of the lease id is that its place in
// the queue was given up.
func (t *turn) gaveUp(id LeaseID) bool {
	e, ok := t.last(id)
	return ok && e.Kind == Dequeued
}

// last returns the last event that refers to the lease.
func (t *turn) last(id LeaseID) (Event, bool) {
	ref := RefOf(t.state.Name, id)
	for _, e := range slices.Backward(t.events) {
		if e.Ref == ref {
			return e, true
		}
	}
	e, ok := t.view.Ended[ref]
	return e, ok
}

// lost returns the refusal of a call that shows a lease which is not there.
func (t *turn) lost(id LeaseID) error {
	e, known := t.ending(id)
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
