package lock

import "cmp"

// Release gives a lease up, or the place in the queue that its LeaseID has. Releasing what has been released already succeeds
// and changes nothing; a lease that ended otherwise is refused with
// ErrLeaseLost, so that its holder learns that the work may have overlapped.
type Release struct {
	Name    string
	LeaseID LeaseID
}

// Resolve returns r, or an ErrInvalid error that names the field that breaks a bound.
func (r Release) Resolve() (Release, error) {
	return r, cmp.Or(CheckName(r.Name), checkLeaseID(r.LeaseID))
}

// Names returns the lock's name.
func (r Release) Names() []string { return []string{r.Name} }

// Refs returns the lease of r.
func (r Release) Refs() []LeaseRef { return []LeaseRef{RefOf(r.Name, r.LeaseID)} }

// Needs allows for the end of the lease.
func (r Release) Needs() (tokens, events int) { return 0, 1 }

// Apply ends the lease.
func (r Release) Apply(v View) Decision {
	t := newDecider(v)
	l, ok := t.lease(r.LeaseID)
	if ok {
		t.endLease(l, Released, "")
		t.promote()
		return t.finish(nil)
	}
	if w, waits := t.waiter(r.LeaseID); waits {
		t.dequeue(w, reasonPlaceReleased)
		return t.finish(nil)
	}
	if e, over := t.endOf(r.LeaseID); over && e.Kind == Released || t.placeReleased(r.LeaseID) {
		return t.finish(nil)
	}
	return t.finish(t.errLost(r.LeaseID))
}
