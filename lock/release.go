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

// Draws allows for the end of the lease.
func (r Release) Draws() (tokens, events int) { return 0, 1 }

// Apply ends the lease.
func (r Release) Apply(v View) Decision {
	t := begin(v)
	l, ok := t.lease(r.LeaseID)
	if ok {
		t.end(l, Released, "")
		t.promote()
		return t.decided(nil)
	}
	if w, waits := t.waiter(r.LeaseID); waits {
		t.leave(w, givenUp)
		return t.decided(nil)
	}
	if e, over := t.ending(r.LeaseID); over && e.Kind == Released || t.gaveUp(r.LeaseID) {
		return t.decided(nil)
	}
	return t.decided(t.lost(r.LeaseID))
}
