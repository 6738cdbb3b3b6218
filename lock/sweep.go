package lock

// Sweep writes down what time alone has changed about the lock Name: leases that
// are over, grants that nobody came for, places that nobody kept; and it promotes
// who may then have the lock. It decides nothing that any other command would
// not: it makes it prompt.
type Sweep struct {
	Name string
}

// Names returns the lock's name.
func (s Sweep) Names() []string { return []string{s.Name} }

// Refs returns nothing: a sweep shows no lease_id.
func (s Sweep) Refs() []LeaseRef { return nil }

// Needs allows for the end of the lease.
func (s Sweep) Needs() (tokens, events int) { return 0, 1 }

// Apply does what every command does first.
func (s Sweep) Apply(v View) Decision { return newDecider(v).finish(nil) }
