package lock

// A NoteFreeze records in the history that a freeze has begun or ended: in an event of the lock that has the name of its
// scope.
type NoteFreeze struct {
	Freeze Freeze
	Thawed bool
}

// Names returns the scope.
func (n NoteFreeze) Names() []string { return []string{string(n.Freeze.Scope)} }

// Traits returns those of a command about no lease.
func (n NoteFreeze) Traits() Traits { return Traits{} }

// In returns n.
func (n NoteFreeze) In(*Policy) (Command, error) { return n, nil }

// Apply emits the event.
func (n NoteFreeze) Apply(v View) Decision {
	d := begin(v, nil)
	d.applyTime()
	e := Event{Kind: Frozen, Reason: n.Freeze.Reason, Until: n.Freeze.Until, Caller: v.Caller}
	if n.Thawed {
		e = Event{Kind: Thawed, Caller: v.Caller}
	}
	d.locks[0].emit(e, Lease{Mode: Exclusive})
	return d.finish(nil)
}
