package sim

import "github.com/paddock-lock/paddock/lock"

// A Variant is a way to lock. The variants differ in nothing but what their fields say:
// load, network, pauses and clocks are the seed's.
type Variant struct {
	Name string
	Says string // how it locks
	Harm Kind   // what it lets happen; none for Paddock

	fenced     bool // the register checks tokens
	clocks     bool // those of all servers count, not the database's alone
	memory     bool // what a server forgets that dies counts
	everything bool // workers use all that package guard offers, not Do alone
	locker     func(*world) locker
	draw       func(w *world, server int) lock.Token // a token, by the server that grants; nil for Paddock's
}

// Proof is Paddock, with all that its guards offer.
func Proof() Variant {
	return Variant{Name: "Paddock, all its guards", fenced: true, everything: true, locker: newPaddock}
}

// Paddock is Paddock under the load of the other variants.
func Paddock() Variant {
	return Variant{Name: "Paddock", fenced: true, locker: newPaddock,
		Says: "Leases by one database's clock, tokens by its sequence, and a register that checks them."}
}

// Unfenced is Paddock with a register that does not look at tokens: the lock alone is to
// protect it. Source: Kleppmann, "How to do distributed locking" (2016).
func Unfenced() Variant {
	return Variant{Name: "without fencing", Harm: LostUpdate, locker: newPaddock,
		Says: "The same leases. The register does not look at tokens."}
}

// Majority is majority voting over independent servers, see the type majority.
func Majority() Variant {
	return Variant{Name: "majority voting", Harm: TwoHolders, clocks: true, memory: true, locker: newMajority,
		Says: "Five independent servers vote; who has three votes has the lock. There are no tokens."}
}

// Sharded is Paddock with tokens that each server draws for itself, see the function sharded.
func Sharded() Variant {
	return Variant{Name: "sharded tokens", Harm: RefusedRightful, fenced: true, locker: newPaddock, draw: sharded,
		Says: "The same leases. The server that grants draws the token from a counter of its own, beneath its number."}
}

// Clocked is Paddock with tokens that are instants, see the function clocked.
func Clocked() Variant {
	return Variant{Name: "clock-made tokens", Harm: RefusedRightful, fenced: true, locker: newPaddock, clocks: true, draw: clocked,
		Says: "The same leases. The token is the time by the clock of the server that grants."}
}

// Variants returns Paddock and then the usual recipes.
func Variants() []Variant {
	return []Variant{Paddock(), Unfenced(), Majority(), Sharded(), Clocked()}
}
