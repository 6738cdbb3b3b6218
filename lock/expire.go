package lock

// Expire writes down that the leases of Name which are over have ended. It
// decides nothing that any other command would not: it makes it prompt.
type Expire struct {
	Name string
}

// Names returns the lock's name.
func (e Expire) Names() []string { return []string{e.Name} }

// Refs returns nothing: expiry shows no lease_id.
func (e Expire) Refs() []LeaseRef { return nil }

// Draws allows for the end of the lease.
func (e Expire) Draws() (tokens, events int) { return 0, 1 }

// Apply ends the leases that are over, and no other.
func (e Expire) Apply(v View) Decision { return begin(v).decided(nil) }
