package sim

// A Variant is a way to lock. Variants differ in their fields only: load, network, pauses and clocks follow from the
// seed.
type Variant struct {
	Name        string
	Description string // how it locks
	Failure     Kind   // what it lets happen; empty for Paddock

	fenced    bool // the register checks tokens
	allClocks bool // the clocks of all servers matter, not only the database's
	forgetful bool // it matters that a server that dies forgets
	allGuards bool // workers use all that package guard offers, not only Do
	locker    func(*world) locker
	tokens    tokenSource // nil for Paddock's sequence
}

// PaddockAllGuards is Paddock with all that its guards offer.
func PaddockAllGuards() Variant {
	return Variant{Name: "Paddock, all guards", fenced: true, allGuards: true, locker: newPaddock}
}

// Paddock is Paddock under the load of the other variants.
func Paddock() Variant {
	return Variant{Name: "Paddock", fenced: true, locker: newPaddock,
		Description: "Leases by one database's clock, tokens from its sequence, and a register that checks them."}
}

// Unfenced is Paddock with a register that ignores tokens: only the lock protects it. Source: Kleppmann, "How to do
// distributed locking" (2016).
func Unfenced() Variant {
	return Variant{Name: "without fencing", Failure: LostUpdate, locker: newPaddock,
		Description: "The same leases. The register ignores tokens."}
}

// Majority is majority voting over independent servers, see the type majority.
func Majority() Variant {
	return Variant{Name: "majority voting", Failure: TwoHolders, allClocks: true, forgetful: true, locker: newMajority,
		Description: "Five independent servers vote; three votes are the lock. There are no tokens."}
}

// Sharded is Paddock with tokens that each server issues by itself, see the function sharded.
func Sharded() Variant {
	return Variant{Name: "sharded tokens", Failure: HolderRefused, fenced: true, locker: newPaddock, tokens: sharded,
		Description: "The same leases. The server that grants takes the token from its own counter, below its number."}
}

// Blocks is Paddock with tokens that servers take from a common sequence in blocks, see the function blocks.
func Blocks() Variant {
	return Variant{Name: "token blocks", Failure: HolderRefused, fenced: true, locker: newPaddock, tokens: blocks,
		Description: "The same leases. Each server takes blocks of a hundred tokens from a common sequence."}
}

// LeaderDriven is Paddock with tokens that an elected leader issues from memory, see the function leaderDriven.
func LeaderDriven() Variant {
	return Variant{Name: "leader-driven tokens", Failure: HolderRefused, fenced: true, locker: newPaddock, allClocks: true,
		forgetful: true, tokens: leaderDriven,
		Description: "The same leases. A leader, elected by a lease, issues tokens from memory, below its term."}
}

// ClockBased is Paddock with tokens that are instants, see the function clockBased.
func ClockBased() Variant {
	return Variant{Name: "clock-based tokens", Failure: HolderRefused, fenced: true, locker: newPaddock, allClocks: true,
		tokens: clockBased, Description: "The same leases. The token is the time on the clock of the server that grants."}
}

// Variants returns Paddock and then the usual recipes.
func Variants() []Variant {
	return []Variant{Paddock(), Unfenced(), Majority(), Sharded(), Blocks(), LeaderDriven(), ClockBased()}
}
