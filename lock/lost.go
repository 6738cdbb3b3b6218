package lock

import "slices"

// endOf returns how the lease ended, if it did within what is known: in this
// turn, or before it. To have given up a place is not to have had a lease.
func (t *decider) endOf(id LeaseID) (Event, bool) {
	e, ok := t.lastEvent(id)
	return e, ok && e.Kind != Dequeued
}

// placeReleased is whether the last that is known of the lease id is that its place in
// the queue was given up.
func (t *decider) placeReleased(id LeaseID) bool {
	e, ok := t.lastEvent(id)
	return ok && e.Kind == Dequeued
}

// lastEvent returns the last event that refers to the lease.
func (t *decider) lastEvent(id LeaseID) (Event, bool) {
	ref := RefOf(t.record.Name, id)
	for _, e := range slices.Backward(t.events) {
		if e.Ref == ref {
			return e, true
		}
	}
	e, ok := t.view.Ended[ref]
	return e, ok
}

// errLost returns the refusal of a call that shows a lease which is not there.
func (t *decider) errLost(id LeaseID) error {
	e, known := t.endOf(id)
	if !known {
		return &Error{Code: ErrLeaseLost, Detail: "No lease of this lock has that lease_id, as far back as is remembered. " +
			"Stop the work; check name and lease_id, or acquire with a new lease_id."}
	}
	return leaseLost(e)
}

func leaseLost(e Event) error {
	what := map[Kind]string{Released: "was released", Expired: "expired", Revoked: "was revoked by an operator"}[e.Kind]
	return &Error{
		Code: ErrLeaseLost, Ended: e.Kind, EndedAt: e.At, Reason: e.Reason, Token: e.Token,
		Detail: "The lease " + what + ". Stop the work; to go on, acquire with a new lease_id and use the new token.",
	}
}
